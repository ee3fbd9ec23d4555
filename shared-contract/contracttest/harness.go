package contracttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// harness is one subtest with its backend.
type harness struct {
	*testing.T
	b *Backend
}

func newHarness(t *testing.T, factory Factory) *harness {
	t.Helper()
	return &harness{T: t, b: factory(t)}
}

const (
	year  = 365 * 24 * time.Hour
	month = 30 * 24 * time.Hour

	defaultGrace      = time.Minute
	defaultRegression = 2 * time.Second
)

// kind is an algorithm that grants limit units in each window.
type kind struct {
	name       string
	algorithm  ratelimit.Algorithm
	parameters func(limit int64, window time.Duration) ratelimit.Parameters
	// mostLimit is the greatest limit that the algorithm takes, as far as these tests go.
	mostLimit int64
	// aligned means that the state's expiry moves with the first admission in an aligned window alone.
	aligned bool
}

// anyLimit is above every limit that these tests use with any algorithm.
const anyLimit = 9_000_000_000

func kinds() []kind {
	return []kind{
		{"fixed-window", ratelimit.AlgorithmFixedWindow, func(limit int64, window time.Duration) ratelimit.Parameters {
			return ratelimit.FixedWindowParameters{Limit: limit, Window: window}
		}, anyLimit, true},
		{"sliding-window-counter", ratelimit.AlgorithmSlidingWindowCounter, func(limit int64, window time.Duration) ratelimit.Parameters {
			return ratelimit.SlidingWindowCounterParameters{Limit: limit, Window: window}
		}, anyLimit, true},
		{"token-bucket", ratelimit.AlgorithmTokenBucket, func(limit int64, window time.Duration) ratelimit.Parameters {
			return ratelimit.TokenBucketParameters{Capacity: limit, RefillTokens: limit, RefillPeriod: window}
		}, anyLimit, false},
		{"gcra", ratelimit.AlgorithmGCRA, func(limit int64, window time.Duration) ratelimit.Parameters {
			return ratelimit.GCRAParameters{Limit: limit, Period: window, Burst: limit}
		}, anyLimit, false},
		{"sliding-window-log", ratelimit.AlgorithmSlidingWindowLog, func(limit int64, window time.Duration) ratelimit.Parameters {
			return ratelimit.SlidingWindowLogParameters{Limit: limit, Window: window}
		}, algorithm.MaxSlidingLogLimit, false},
	}
}

// kindOf is the kind of an algorithm.
func kindOf(a ratelimit.Algorithm) kind {
	for _, k := range kinds() {
		if k.algorithm == a {
			return k
		}
	}
	return kind{}
}

// config is a policy's configuration at revision 1 with costs up to the limit.
func (k kind) config(id string, limit int64, window time.Duration) ratelimit.RateLimitPolicyConfig {
	return ratelimit.RateLimitPolicyConfig{
		ID: ratelimit.PolicyID(id), Revision: 1, Algorithm: k.algorithm, Parameters: k.parameters(limit, window),
		MaxCost: limit, CleanupGrace: defaultGrace, MaxClockRegression: defaultRegression,
		FailurePolicy: ratelimit.FailClosed,
	}
}

func (h *harness) policy(config ratelimit.RateLimitPolicyConfig) *ratelimit.RateLimitPolicy {
	h.Helper()
	p, err := ratelimit.NewRateLimitPolicy(config)
	if err != nil {
		h.Fatalf("policy: %v", err)
	}
	return p
}

// subject is the n-th pseudonym of this subtest.
func (h *harness) subject(n int) ratelimit.SubjectDigest {
	h.Helper()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", h.Name(), n))
	return h.parse(hex.EncodeToString(sum[:]))
}

func (h *harness) parse(text string) ratelimit.SubjectDigest {
	h.Helper()
	d, err := ratelimit.ParseSubjectDigest(text)
	if err != nil {
		h.Fatalf("subject: %v", err)
	}
	return d
}

// future is after both clocks that a deadline may be compared with, and past is before both.
func (h *harness) future() time.Time { return later(h.b.Now(), time.Now()).Add(time.Hour) }
func (h *harness) past() time.Time   { return earlier(h.b.Now(), time.Now()).Add(-time.Second) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// nowMillis is the backend's clock.
func (h *harness) nowMillis() int64 { return h.b.Now().UnixMilli() }

// setMillis sets the backend's clock.
func (h *harness) setMillis(ms int64) { h.b.SetTime(time.UnixMilli(ms).UTC()) }

// align sets the clock to the beginning of a window to come and gives that moment.
func (h *harness) align(window time.Duration) int64 {
	w := window.Milliseconds()
	at := (h.nowMillis()/w + 1) * w
	h.setMillis(at)
	return at
}

// ask evaluates and holds the answer to what every answer must be.
func (h *harness) ask(l ratelimit.EdgeRateLimitPort, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, cost int64) (ratelimit.Outcome, error) {
	outcome, err := l.Evaluate(context.Background(), ratelimit.RateLimitRequest{
		PolicyID: p.ID(), Subject: subject, Cost: cost, Deadline: h.future(),
	})
	if err != nil {
		return nil, fmt.Errorf("evaluate cost %d of %s: %w", cost, p.ID(), err)
	}
	return outcome, h.wellFormed(p, outcome)
}

// evaluate is ask for the subtest's own goroutine.
func (h *harness) evaluate(l ratelimit.EdgeRateLimitPort, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, cost int64) ratelimit.Outcome {
	h.Helper()
	outcome, err := h.ask(l, p, subject, cost)
	if err != nil {
		h.Fatal(err)
	}
	return outcome
}

// decide is evaluate where the outcome must be Evaluated.
func (h *harness) decide(l ratelimit.EdgeRateLimitPort, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, cost int64) ratelimit.RateLimitDecision {
	h.Helper()
	outcome := h.evaluate(l, p, subject, cost)
	evaluated, ok := outcome.(ratelimit.Evaluated)
	if !ok {
		h.Fatalf("cost %d of %s: %#v, want Evaluated", cost, p.ID(), outcome)
	}
	return evaluated.Decision
}

// admitted asks and requires admission with what remains after it.
func (h *harness) admitted(l ratelimit.EdgeRateLimitPort, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, cost, remaining int64) ratelimit.RateLimitDecision {
	h.Helper()
	d := h.decide(l, p, subject, cost)
	if !d.Allowed || d.Remaining != remaining {
		h.Fatalf("cost %d of %s: %+v, want it allowed with %d remaining", cost, p.ID(), d, remaining)
	}
	return d
}

// denied asks and requires denial with what remains.
func (h *harness) denied(l ratelimit.EdgeRateLimitPort, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, cost, remaining int64) ratelimit.RateLimitDecision {
	h.Helper()
	d := h.decide(l, p, subject, cost)
	if d.Allowed || d.Remaining != remaining {
		h.Fatalf("cost %d of %s: %+v, want it denied with %d remaining", cost, p.ID(), d, remaining)
	}
	return d
}

// expect asks and requires exactly this outcome.
func (h *harness) expect(l ratelimit.EdgeRateLimitPort, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, cost int64, want ratelimit.Outcome) {
	h.Helper()
	if got := h.evaluate(l, p, subject, cost); got != want {
		h.Fatalf("cost %d of %s at %d:\n got %+v\nwant %+v", cost, p.ID(), h.nowMillis(), got, want)
	}
}

// state is the stored state, or "" where the backend cannot tell.
func (h *harness) state(p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) string {
	h.Helper()
	if h.b.State == nil {
		return ""
	}
	return h.b.State(h, p, subject)
}

// unchanged runs what must not write and compares the state before and after.
func (h *harness) unchanged(p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, what string, run func()) {
	h.Helper()
	before := h.state(p, subject)
	run()
	if after := h.state(p, subject); after != before {
		h.Fatalf("%s changed the state:\nbefore %q\n after %q", what, before, after)
	}
}

// wellFormed holds an outcome to the bounds that every outcome has.
func (h *harness) wellFormed(p *ratelimit.RateLimitPolicy, outcome ratelimit.Outcome) error {
	switch o := outcome.(type) {
	case ratelimit.Evaluated:
		if ratelimit.Allows(o) != o.Decision.Allowed {
			return fmt.Errorf("malformed: Allows is %v for %+v", ratelimit.Allows(o), o)
		}
		return h.wellFormedDecision(p, o.Decision)
	case ratelimit.Unavailable:
		if o.PolicyID != p.ID() || o.RetryAfter < time.Millisecond || o.Category.String() == ratelimit.UnavailableInvalid.String() {
			return fmt.Errorf("malformed: %+v", o)
		}
	case ratelimit.Indeterminate:
		if o.PolicyID != p.ID() || o.RetryAfter < time.Millisecond {
			return fmt.Errorf("malformed: %+v", o)
		}
	case ratelimit.Incompatible:
		if o.PolicyID != p.ID() || o.Category.String() == ratelimit.IncompatibleInvalid.String() {
			return fmt.Errorf("malformed: %+v", o)
		}
	case nil:
		return errors.New("malformed: nil outcome without an error")
	default:
		return fmt.Errorf("malformed: outcome of type %T", o)
	}
	if ratelimit.Allows(outcome) {
		return fmt.Errorf("malformed: Allows is true for %+v", outcome)
	}
	return nil
}

func (h *harness) wellFormedDecision(p *ratelimit.RateLimitPolicy, d ratelimit.RateLimitDecision) error {
	fault := ""
	switch {
	case d.PolicyID != p.ID(), d.PolicyRevision != p.Revision():
		fault = "policy"
	case d.Source != h.b.Source:
		fault = "source"
	case d.Certainty != p.Certainty():
		fault = "certainty"
	case d.Limit != p.Limit():
		fault = "limit"
	case d.Remaining < 0, d.Remaining > d.Limit:
		fault = "remaining"
	case d.Allowed && d.RetryAfter != 0:
		fault = "retry-after of an admission"
	case !d.Allowed && (d.RetryAfter < time.Millisecond || d.RetryAfter%time.Millisecond != 0):
		fault = "retry-after of a denial"
	case d.ResetAt.Location() != time.UTC, d.ResetAt.Nanosecond()%int(time.Millisecond) != 0:
		fault = "reset-at"
	}
	if fault != "" {
		return fmt.Errorf("malformed %s: %+v", fault, d)
	}
	return nil
}
