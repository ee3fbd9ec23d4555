package contracttest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func breakerRequestTests() []breakerTest {
	return []breakerTest{
		{name: "RequestFaults", run: breakerRequestFaults},
		{name: "PermitFaults", run: breakerPermitFaults},
		{name: "Deadlines", run: breakerDeadlines},
	}
}

// breakerRequestFaults: what cannot be asked is an error with no outcome. Casebook 10 (no deadline).
func breakerRequestFaults(h *breakerHarness) {
	o := h.fresh(consecutive("asked", 1))
	type request struct {
		policy   breaker.PolicyID
		resource breaker.ResourceDigest
		deadline time.Time
	}
	for name, c := range map[string]struct {
		request request
		fault   breaker.RequestFault
	}{
		"unknown policy":       {request{"other", o.resource, h.future()}, breaker.FaultUnknownPolicy},
		"no policy":            {request{"", o.resource, h.future()}, breaker.FaultUnknownPolicy},
		"policy in other case": {request{"Asked", o.resource, h.future()}, breaker.FaultUnknownPolicy},
		"no resource":          {request{"asked", breaker.ResourceDigest{}, h.future()}, breaker.FaultResource},
		"no deadline":          {request{"asked", o.resource, time.Time{}}, breaker.FaultDeadline},
	} {
		r := c.request
		acquired, err := o.port.Acquire(context.Background(), breaker.AcquireRequest{PolicyID: r.policy, Resource: r.resource, Deadline: r.deadline})
		o.refused("acquire, "+name, acquired == nil, err, c.fault)
		seen, err := o.port.Read(context.Background(), breaker.ReadRequest{PolicyID: r.policy, Resource: r.resource, Deadline: r.deadline})
		o.refused("read, "+name, seen == nil, err, c.fault)
		permit := breaker.Permit{PolicyID: r.policy, PolicyRevision: 1, Resource: r.resource, Kind: breaker.PermitCall, Token: token(1)}
		recorded, err := o.port.Record(context.Background(), breaker.RecordRequest{Permit: permit, Result: breaker.ResultFailure, Deadline: r.deadline})
		o.refused("record, "+name, recorded == nil, err, c.fault)
	}
	o.observe(breaker.StateClosed)
}

func (o one) refused(what string, empty bool, err error, fault breaker.RequestFault) {
	o.h.Helper()
	var invalid *breaker.InvalidRequestError
	if !errors.As(err, &invalid) || invalid.Fault != fault {
		o.h.Errorf("%s: error %v, want the fault %v", what, err, fault)
		return
	}
	if !empty {
		o.h.Errorf("%s: an outcome beside the error", what)
	}
	if strings.Contains(err.Error(), o.resource.String()) {
		o.h.Errorf("%s: the error holds the resource: %v", what, err)
	}
}

// breakerPermitFaults: a permit that Acquire cannot have given under this policy, and a result that is
// none, are errors and count nothing.
func breakerPermitFaults(h *breakerHarness) {
	o := h.fresh(consecutive("permits", 1))
	good := breaker.RecordRequest{Permit: o.call(), Result: breaker.ResultFailure, Deadline: h.future()}
	for name, c := range map[string]struct {
		fault breaker.RequestFault
		edit  func(*breaker.RecordRequest)
	}{
		"other revision":    {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.PolicyRevision = 2 }},
		"no kind":           {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.Kind = breaker.PermitInvalid }},
		"unknown kind":      {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.Kind = 9 }},
		"no token":          {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.Token = "" }},
		"short token":       {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.Token = r.Permit.Token[1:] }},
		"token in capitals": {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.Token = strings.Repeat("A", breaker.TokenLength) }},
		"token with colon":  {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.Token = ":" + r.Permit.Token[1:] }},
		"before the epoch":  {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.AcquiredAt = -1 }},
		"no generation":     {breaker.FaultPermit, func(r *breaker.RecordRequest) { r.Permit.Generation = -1 }},
		"no result":         {breaker.FaultResult, func(r *breaker.RecordRequest) { r.Result = breaker.ResultInvalid }},
		"unknown result":    {breaker.FaultResult, func(r *breaker.RecordRequest) { r.Result = 9 }},
	} {
		request := good
		c.edit(&request)
		recorded, err := o.port.Record(context.Background(), request)
		o.refused(name, recorded == nil, err, c.fault)
	}
	o.observe(breaker.StateClosed)
	o.record(good.Permit, breaker.ResultFailure, breaker.StatusCounted, breaker.StateClosed, breaker.StateOpen)
}

// breakerDeadlines: the context's deadline will do; one that is over, and a caller that is gone, are
// Unavailable and change nothing.
func breakerDeadlines(h *breakerHarness) {
	o := h.fresh(consecutive("deadlines", 1))
	within, cancel := context.WithDeadline(context.Background(), h.future())
	defer cancel()
	outcome, err := o.port.Acquire(within, breaker.AcquireRequest{PolicyID: o.policy.ID(), Resource: o.resource})
	granted, ok := outcome.(breaker.Permitted)
	if err != nil || !ok {
		h.Fatalf("with the context's deadline: %+v, %v", outcome, err)
	}
	past := earlier(h.b.Now(), time.Now()).Add(-time.Second)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx      context.Context //nolint:containedctx // A case.
		deadline time.Time
		category ratelimit.UnavailableCategory
	}{
		"past":     {context.Background(), past, ratelimit.UnavailableDeadline},
		"canceled": {gone, h.future(), ratelimit.UnavailableCanceled},
	} {
		recorded, err := o.port.Record(c.ctx, breaker.RecordRequest{Permit: granted.Permit, Result: breaker.ResultFailure, Deadline: c.deadline})
		u, ok := recorded.(breaker.Unavailable)
		if err != nil || !ok || u.Category != c.category || u.PolicyID != o.policy.ID() || u.RetryAfter < time.Millisecond {
			h.Errorf("record, %s: %+v, %v", name, recorded, err)
		}
		acquired, err := o.port.Acquire(c.ctx, breaker.AcquireRequest{PolicyID: o.policy.ID(), Resource: o.resource, Deadline: c.deadline})
		if u, ok := acquired.(breaker.Unavailable); err != nil || !ok || u.Category != c.category {
			h.Errorf("acquire, %s: %+v, %v", name, acquired, err)
		}
		seen, err := o.port.Read(c.ctx, breaker.ReadRequest{PolicyID: o.policy.ID(), Resource: o.resource, Deadline: c.deadline})
		if u, ok := seen.(breaker.Unavailable); err != nil || !ok || u.Category != c.category {
			h.Errorf("read, %s: %+v, %v", name, seen, err)
		}
	}
	o.observe(breaker.StateClosed)
}
