package edge

import (
	"context"
	"errors"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MaxDeadline bounds how long a request may wait for a decision.
const MaxDeadline = 10 * time.Minute

// Asker asks the port once for each request. Every field is required.
type Asker struct {
	Limiter  ratelimit.EdgeRateLimitPort
	Policies *ratelimit.PolicySet
	Digester *ratelimit.SubjectDigester
	// Deadline is how long one decision is waited for: whole milliseconds, 1 ms..MaxDeadline.
	Deadline time.Duration
}

// Check gives everything that is wrong with it.
func (a Asker) Check() []error {
	var faults []error
	for _, f := range []struct {
		fine bool
		text string
	}{
		{a.Limiter != nil, "field Limiter is missing"},
		{a.Policies != nil, "field Policies is missing"},
		{a.Digester != nil, "field Digester is missing"},
		{
			a.Deadline >= time.Millisecond && a.Deadline <= MaxDeadline && a.Deadline%time.Millisecond == 0,
			"field Deadline is " + a.Deadline.String() + ", want whole milliseconds, 1ms..10m",
		},
	} {
		if !f.fine {
			faults = append(faults, errors.New(f.text))
		}
	}
	return faults
}

// Ask evaluates once. unidentified is why there is no subject, nil where there is one. The context is
// the request's own: the limiter learns from it of a caller who went away.
func (a *Asker) Ask(ctx context.Context, policy ratelimit.PolicyID, subject Subject, unidentified error, cost int64) Report {
	report := Report{Policy: policy}
	if a.Policies.Get(policy) == nil {
		report.refused(nil, RefusalPolicyUnknown, "no policy has the ID that was chosen")
		return report
	}
	if unidentified != nil {
		report.refused(unidentified, RefusalSubjectMalformed, "the request does not say whom to limit in a form that can be taken")
		return report
	}
	digest, err := subject.digested(a.Digester)
	if err != nil {
		report.refused(err, RefusalSubjectMalformed, "the identity cannot be digested")
		return report
	}
	outcome, err := a.Limiter.Evaluate(ctx, ratelimit.RateLimitRequest{
		PolicyID: policy, Subject: digest, Cost: cost, Deadline: time.Now().Add(a.Deadline),
	})
	if err != nil {
		var invalid *ratelimit.InvalidRequestError
		switch {
		case errors.As(err, &invalid) && invalid.Fault == ratelimit.FaultCost:
			report.refused(nil, RefusalCost, invalid.Reason)
		case errors.As(err, &invalid) && invalid.Fault == ratelimit.FaultUnknownPolicy:
			report.refused(nil, RefusalPolicyUnknown, invalid.Reason)
		default:
			report.refused(nil, RefusalInternal, "the limiter failed")
		}
		return report
	}
	report.conclude(outcome)
	return report
}
