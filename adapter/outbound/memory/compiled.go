package memory

import (
	"fmt"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// state is the stored state of any algorithm: what can be derived from the policy is left out, and so
// are the entries of a log.
type state struct {
	last      int64 // effective time of the last write, ms
	count     int64 // consumed; count of the current window; tokens; arrival time, ms; place in shard.logs
	carried   int64 // unused; count of the window before; remainder; fraction of the arrival time; logMark
	expiresAt int64 // ms
}

// present reports whether the state is a stored one.
func (s *state) present() bool { return s.expiresAt != 0 }

// logMark tells the state of a log: what other algorithms carry is not negative.
const logMark = -1

// logged reports whether the state has entries in shard.logs.
func (s *state) logged() bool { return s.carried == logMark }

// compiled is a policy with its arithmetic worked out. Exactly one of the five is in use.
type compiled struct {
	policy    *ratelimit.RateLimitPolicy
	id        ratelimit.PolicyID
	pad       name // tells the names of its states from those of other policies
	algorithm ratelimit.Algorithm
	window    algorithm.FixedWindow
	counter   algorithm.SlidingCounter
	bucket    algorithm.TokenBucket
	gcra      algorithm.GCRA
	log       algorithm.SlidingLog
	rate      algorithm.Rate
	tolerance algorithm.Span
}

func compile(policy *ratelimit.RateLimitPolicy, n *naming) (*compiled, error) {
	c := &compiled{policy: policy, id: policy.ID(), pad: n.pad(policy), algorithm: policy.Algorithm()}
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
	default:
		return nil, fmt.Errorf("memory: policy %s: algorithm %v is not supported", policy.ID(), c.algorithm)
	}
	return c, nil
}

// few is how many policies are faster looked through than hashed.
const few = 8

// compiledSet finds compiled policies by ID.
type compiledSet struct {
	few  []*compiled                      // all of them, where there are not more than few
	many map[ratelimit.PolicyID]*compiled // all of them
}

// compileAll compiles every policy of a set.
func compileAll(policies *ratelimit.PolicySet, n *naming) (compiledSet, error) {
	all := policies.All()
	set := compiledSet{many: make(map[ratelimit.PolicyID]*compiled, len(all))}
	for _, policy := range all {
		c, err := compile(policy, n)
		if err != nil {
			return compiledSet{}, err
		}
		set.many[policy.ID()] = c
		if len(all) <= few {
			set.few = append(set.few, c)
		}
	}
	return set, nil
}

// get gives the policy of an ID, or nil.
func (s *compiledSet) get(id ratelimit.PolicyID) *compiled {
	for _, c := range s.few {
		if c.id == id {
			return c
		}
	}
	if s.few != nil {
		return nil
	}
	return s.many[id]
}

// logged reports whether the policy is a log, which decideLog is for.
func (c *compiled) logged() bool { return c.algorithm == ratelimit.AlgorithmSlidingWindowLog }

// decideLog is decide over the entries of a log. What an admission changes in them is given.
func (c *compiled) decideLog(s *state, entries algorithm.SlidingLogEntries, now, cost int64) (algorithm.Decision, algorithm.SlidingLogStep) {
	if now < 0 || now > algorithm.MaxNowMillis {
		return algorithm.Rejected(algorithm.StatusInvalid, now), algorithm.SlidingLogStep{}
	}
	d, step := c.log.DecideOver(entries, now, cost)
	if d.Status == algorithm.StatusAllowed {
		s.last, s.carried, s.expiresAt = step.Entry.At, logMark, step.ExpiresAt
	}
	return d, step
}

// decide runs the algorithm over a state in place, which an admission changes and nothing else does, and
// puts the decision into d. The zero state is one that is absent: what is stored expires after the epoch.
func (c *compiled) decide(s *state, now, cost int64, d *algorithm.Decision) {
	if now < 0 || now > algorithm.MaxNowMillis {
		*d = algorithm.Rejected(algorithm.StatusInvalid, now)
		return
	}
	// The states are filled field by field: a literal would be made elsewhere and copied.
	switch c.algorithm {
	case ratelimit.AlgorithmFixedWindow:
		var full algorithm.FixedWindowState
		full.Present, full.LastObserved, full.ExpiresAt = s.present(), s.last, s.expiresAt
		full.Window, full.Consumed = s.last/c.window.WindowMillis, s.count
		c.window.Advance(&full, now, cost, d)
		s.last, s.count, s.expiresAt = full.LastObserved, full.Consumed, full.ExpiresAt
	case ratelimit.AlgorithmSlidingWindowCounter:
		var full algorithm.SlidingCounterState
		full.Present, full.LastObserved, full.ExpiresAt = s.present(), s.last, s.expiresAt
		full.Window, full.Count = s.last/c.counter.WindowMillis, s.count
		full.Previous, full.PreviousCount = max(full.Window-1, 0), s.carried
		c.counter.Advance(&full, now, cost, d)
		s.last, s.count, s.carried, s.expiresAt = full.LastObserved, full.Count, full.PreviousCount, full.ExpiresAt
	case ratelimit.AlgorithmTokenBucket:
		var full algorithm.TokenBucketState
		full.Present, full.LastRefill, full.ExpiresAt = s.present(), s.last, s.expiresAt
		full.Tokens, full.Remainder = s.count, s.carried
		c.bucket.Advance(c.rate, &full, now, cost, d)
		s.last, s.count, s.carried, s.expiresAt = full.LastRefill, full.Tokens, full.Remainder, full.ExpiresAt
	case ratelimit.AlgorithmGCRA:
		var full algorithm.GCRAState
		full.Present, full.LastObserved, full.ExpiresAt = s.present(), s.last, s.expiresAt
		full.TAT.Millis, full.TAT.Fraction = s.count, s.carried
		c.gcra.Advance(c.rate, c.tolerance, &full, now, cost, d)
		s.last, s.count, s.carried, s.expiresAt = full.LastObserved, full.TAT.Millis, full.TAT.Fraction, full.ExpiresAt
	case ratelimit.AlgorithmSlidingWindowLog, ratelimit.AlgorithmInvalid:
		*d = algorithm.Rejected(algorithm.StatusInvalid, now)
	}
}
