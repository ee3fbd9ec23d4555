package contracttest

import (
	"fmt"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// oracle decides as shared-contract/algorithm does, over a state of its own.
type oracle struct {
	policy *ratelimit.RateLimitPolicy
	source ratelimit.Source
	// step decides at a clock reading and gives the expiry of the state after it.
	step      func(now, cost int64) (algorithm.Decision, int64)
	expiresAt int64
}

func newOracle(policy *ratelimit.RateLimitPolicy, source ratelimit.Source) *oracle {
	o := &oracle{policy: policy, source: source}
	switch parameters := policy.Parameters().(type) {
	case ratelimit.FixedWindowParameters:
		o.step = stepper(parameters.Arithmetic(policy.Clock()).Decide, func(s algorithm.FixedWindowState) int64 { return s.ExpiresAt })
	case ratelimit.SlidingWindowCounterParameters:
		o.step = stepper(parameters.Arithmetic(policy.Clock()).Decide, func(s algorithm.SlidingCounterState) int64 { return s.ExpiresAt })
	case ratelimit.TokenBucketParameters:
		o.step = stepper(parameters.Arithmetic(policy.Clock()).Decide, func(s algorithm.TokenBucketState) int64 { return s.ExpiresAt })
	case ratelimit.GCRAParameters:
		o.step = stepper(parameters.Arithmetic(policy.Clock()).Decide, func(s algorithm.GCRAState) int64 { return s.ExpiresAt })
	case ratelimit.SlidingWindowLogParameters:
		o.step = stepper(parameters.Arithmetic(policy.Clock()).Decide, func(s algorithm.SlidingLogState) int64 { return s.ExpiresAt })
	default:
		panic(fmt.Sprintf("contracttest: no oracle for %T", parameters))
	}
	return o
}

// stepper keeps the state of one algorithm between decisions.
func stepper[S any](decide func(S, int64, int64) (algorithm.Decision, S), expiry func(S) int64) func(now, cost int64) (algorithm.Decision, int64) {
	var state S
	return func(now, cost int64) (d algorithm.Decision, expiresAt int64) {
		d, state = decide(state, now, cost)
		return d, expiry(state)
	}
}

// outcome decides and gives what a provider must answer.
func (o *oracle) outcome(now, cost int64) ratelimit.Outcome {
	var d algorithm.Decision
	d, o.expiresAt = o.step(now, cost)
	return ratelimit.Conclude(o.policy, d, o.source)
}
