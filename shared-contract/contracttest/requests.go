package contracttest

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func requestTests() []contractTest {
	return []contractTest{
		{name: "RequestFaults", runEach: requestFaults},
		{name: "DeadlinePast", runEach: deadlinePast},
		{name: "DeadlineFromContext", run: deadlineFromContext},
		{name: "Canceled", runEach: canceled},
	}
}

// requestFaults: what cannot be asked is an error with no outcome, and spends nothing. Casebook 10
// (no deadline anywhere), 11 and 15 (costs).
func requestFaults(h *harness, k kind) {
	config := k.config("asked", 10, year)
	config.MaxCost = 4
	p := h.policy(config)
	l := h.b.New(h, p)
	subject := h.subject(0)
	good := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subject, Cost: 1, Deadline: h.future()}
	cases := []struct {
		name  string
		fault ratelimit.RequestFault
		edit  func(*ratelimit.RateLimitRequest)
	}{
		{"unknown policy", ratelimit.FaultUnknownPolicy, func(r *ratelimit.RateLimitRequest) { r.PolicyID = "other" }},
		{"no policy", ratelimit.FaultUnknownPolicy, func(r *ratelimit.RateLimitRequest) { r.PolicyID = "" }},
		{"policy in other case", ratelimit.FaultUnknownPolicy, func(r *ratelimit.RateLimitRequest) { r.PolicyID = "Asked" }},
		{"no subject", ratelimit.FaultSubject, func(r *ratelimit.RateLimitRequest) { r.Subject = ratelimit.SubjectDigest{} }},
		{"cost 0", ratelimit.FaultCost, func(r *ratelimit.RateLimitRequest) { r.Cost = 0 }},
		{"cost -1", ratelimit.FaultCost, func(r *ratelimit.RateLimitRequest) { r.Cost = -1 }},
		{"least cost", ratelimit.FaultCost, func(r *ratelimit.RateLimitRequest) { r.Cost = math.MinInt64 }},
		{"cost above the maximum", ratelimit.FaultCost, func(r *ratelimit.RateLimitRequest) { r.Cost = 5 }},
		{"greatest cost", ratelimit.FaultCost, func(r *ratelimit.RateLimitRequest) { r.Cost = math.MaxInt64 }},
		{"evaluation ID", ratelimit.FaultEvaluationID, func(r *ratelimit.RateLimitRequest) { r.EvaluationID = "again" }},
		{"no deadline", ratelimit.FaultDeadline, func(r *ratelimit.RateLimitRequest) { r.Deadline = time.Time{} }},
	}
	for _, c := range cases {
		request := good
		c.edit(&request)
		outcome, err := l.Evaluate(context.Background(), request)
		var invalid *ratelimit.InvalidRequestError
		if !errors.As(err, &invalid) || invalid.Fault != c.fault {
			h.Errorf("%s: error %v, want the fault %v", c.name, err, c.fault)
			continue
		}
		if outcome != nil || ratelimit.Allows(outcome) {
			h.Errorf("%s: outcome %+v beside the error", c.name, outcome)
		}
		if strings.Contains(err.Error(), subject.String()) {
			h.Errorf("%s: the error names the subject: %v", c.name, err)
		}
	}
	if s := h.state(p, subject); s != "" {
		h.Errorf("refused requests left the state %q", s)
	}
	h.admitted(l, p, subject, 4, 6)
}

// deadlinePast: a request whose time is over is Unavailable, whichever deadline says so, and spends
// nothing.
func deadlinePast(h *harness, k kind) {
	p := h.policy(k.config("late", 10, year))
	l := h.b.New(h, p)
	subject := h.subject(0)
	over, stop := context.WithDeadline(context.Background(), h.past())
	defer stop()
	open, stopOpen := context.WithDeadline(context.Background(), h.future())
	defer stopOpen()
	cases := []struct {
		name     string
		ctx      context.Context
		deadline time.Time
	}{
		{"the request's", context.Background(), h.past()},
		{"the request's, before the context's", open, h.past()},
		{"the context's", over, time.Time{}},
		{"the context's, before the request's", over, h.future()},
		{"a minute after the epoch", context.Background(), time.Unix(60, 0)},
	}
	for _, c := range cases {
		outcome, err := l.Evaluate(c.ctx, ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subject, Cost: 1, Deadline: c.deadline})
		h.unavailable(p, c.name, outcome, err, ratelimit.UnavailableDeadline)
	}
	if s := h.state(p, subject); s != "" {
		h.Errorf("late requests left the state %q", s)
	}
	h.admitted(l, p, subject, 1, 9)
}

// unavailable requires Unavailable of one category.
func (h *harness) unavailable(p *ratelimit.RateLimitPolicy, name string, outcome ratelimit.Outcome, err error, category ratelimit.UnavailableCategory) {
	h.Helper()
	u, ok := outcome.(ratelimit.Unavailable)
	if err != nil || !ok || u.Category != category {
		h.Errorf("%s: %+v and error %v, want Unavailable %v", name, outcome, err, category)
		return
	}
	if err := h.wellFormed(p, outcome); err != nil {
		h.Errorf("%s: %v", name, err)
	}
}

// deadlineFromContext: the context's deadline alone is enough.
func deadlineFromContext(h *harness) {
	p := h.policy(kinds()[0].config("context", 10, year))
	l := h.b.New(h, p)
	ctx, stop := context.WithDeadline(context.Background(), h.future())
	defer stop()
	outcome, err := l.Evaluate(ctx, ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: h.subject(0), Cost: 1})
	if err != nil || !ratelimit.Allows(outcome) {
		h.Fatalf("%+v and error %v, want it allowed", outcome, err)
	}
}

// canceled: a caller that has gone spends nothing.
func canceled(h *harness, k kind) {
	p := h.policy(k.config("gone", 10, year))
	l := h.b.New(h, p)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	subject := h.subject(0)
	outcome, err := l.Evaluate(ctx, ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subject, Cost: 1, Deadline: h.future()})
	h.unavailable(p, "canceled context", outcome, err, ratelimit.UnavailableCanceled)
	if s := h.state(p, subject); s != "" {
		h.Errorf("a canceled request left the state %q", s)
	}
	h.admitted(l, p, subject, 1, 9)
}
