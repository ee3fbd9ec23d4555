package memory

import (
	"fmt"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// state is the stored state of any algorithm: what can be derived from the policy is left out, and so
// are the entries of a log. It holds no pointer, so that the collector need not look at it.
type state struct {
	last      int64 // effective time of the last write, ms
	count     int64 // consumed; count of the current window; tokens; arrival time, ms; place in shard.logs
	carried   int64 // unused; count of the window before; remainder; fraction of the arrival time; unused
	expiresAt int64 // ms
}

// logMark is set in the index of a policy whose states have entries in shard.logs.
const logMark = 1 << 31

// compiled is a policy with its arithmetic worked out. Exactly one of the five is in use.
type compiled struct {
	index     uint32 // position in PolicySet.All, which tells the keys of policies apart, and logMark
	algorithm ratelimit.Algorithm
	window    algorithm.FixedWindow
	counter   algorithm.SlidingCounter
	bucket    algorithm.TokenBucket
	gcra      algorithm.GCRA
	log       algorithm.SlidingLog
	rate      algorithm.Rate
	tolerance algorithm.Span
}

func compile(policy *ratelimit.RateLimitPolicy, index uint32) (*compiled, error) {
	c := &compiled{index: index, algorithm: policy.Algorithm()}
	switch parameters := policy.Parameters().(type) {
	case ratelimit.FixedWindowParameters:
		c.window = parameters.Arithmetic(policy.Clock())
	case ratelimit.SlidingWindowCounterParameters:
		c.counter = parameters.Arithmetic(policy.Clock())
	case ratelimit.TokenBucketParameters:
		c.bucket = parameters.Arithmetic(policy.Clock())
		c.rate = c.bucket.Rate()
	case ratelimit.GCRAParameters:
		c.gcra = parameters.Arithmetic(policy.Clock())
		c.rate, c.tolerance = c.gcra.Rate(), c.gcra.Tolerance()
	case ratelimit.SlidingWindowLogParameters:
		c.log = parameters.Arithmetic(policy.Clock())
		c.index |= logMark
	default:
		return nil, fmt.Errorf("memory: policy %s: algorithm %v is not supported", policy.ID(), c.algorithm)
	}
	return c, nil
}

// logged reports whether the policy is a log, which decideLog is for.
func (c *compiled) logged() bool { return c.index&logMark != 0 }

// decideLog is decide over the entries of a log.
func (c *compiled) decideLog(entries algorithm.SlidingLogEntries, now, cost int64) (algorithm.Decision, algorithm.SlidingLogStep) {
	if now < 0 || now > algorithm.MaxNowMillis {
		return algorithm.Rejected(algorithm.StatusInvalid, now), algorithm.SlidingLogStep{}
	}
	return c.log.DecideOver(entries, now, cost)
}

// decide runs the algorithm over a state, which is absent unless present is set. The state that it
// gives is to be stored where the decision is StatusAllowed.
func (c *compiled) decide(s state, present bool, now, cost int64) (algorithm.Decision, state) {
	if now < 0 || now > algorithm.MaxNowMillis {
		return algorithm.Rejected(algorithm.StatusInvalid, now), s
	}
	switch c.algorithm {
	case ratelimit.AlgorithmFixedWindow:
		d, next := c.window.Decide(algorithm.FixedWindowState{
			Present: present, LastObserved: s.last, Window: s.last / c.window.WindowMillis,
			Consumed: s.count, ExpiresAt: s.expiresAt,
		}, now, cost)
		return d, state{last: next.LastObserved, count: next.Consumed, expiresAt: next.ExpiresAt}
	case ratelimit.AlgorithmSlidingWindowCounter:
		window := s.last / c.counter.WindowMillis
		d, next := c.counter.Decide(algorithm.SlidingCounterState{
			Present: present, LastObserved: s.last, Window: window, Count: s.count,
			Previous: max(window-1, 0), PreviousCount: s.carried, ExpiresAt: s.expiresAt,
		}, now, cost)
		return d, state{last: next.LastObserved, count: next.Count, carried: next.PreviousCount, expiresAt: next.ExpiresAt}
	case ratelimit.AlgorithmTokenBucket:
		d, next := c.bucket.DecideAt(c.rate, algorithm.TokenBucketState{
			Present: present, LastRefill: s.last, Tokens: s.count, Remainder: s.carried, ExpiresAt: s.expiresAt,
		}, now, cost)
		return d, state{last: next.LastRefill, count: next.Tokens, carried: next.Remainder, expiresAt: next.ExpiresAt}
	case ratelimit.AlgorithmGCRA:
		d, next := c.gcra.DecideAt(c.rate, c.tolerance, algorithm.GCRAState{
			Present: present, TAT: algorithm.Span{Millis: s.count, Fraction: s.carried}, LastObserved: s.last, ExpiresAt: s.expiresAt,
		}, now, cost)
		return d, state{last: next.LastObserved, count: next.TAT.Millis, carried: next.TAT.Fraction, expiresAt: next.ExpiresAt}
	case ratelimit.AlgorithmSlidingWindowLog, ratelimit.AlgorithmInvalid:
	}
	return algorithm.Rejected(algorithm.StatusInvalid, now), s
}
