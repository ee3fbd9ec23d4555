package model

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Hash is what is stored: a hash by field, or a sorted set by member, each with its score as Redis
// writes it. Nil means that the key does not exist.
type Hash map[string]string

// Result is what one call must answer and leave.
type Result struct {
	Reply [7]any // status word, then six int64
	After Hash
	// TTL is the lifetime in ms that the call sets, counted from its clock; 0 where it leaves the
	// lifetime as it was.
	TTL int64
	// Whole means that After is all that stands there. Otherwise fields that are not the program's stay
	// as they were.
	Whole bool
}

// Leaves is what stands at the key after the call, given what stood there before.
func (r Result) Leaves(before Hash) Hash {
	if r.Reply[0] != algorithm.StatusAllowed.String() || r.Whole {
		return r.After
	}
	after := maps.Clone(r.After)
	for field, value := range before {
		if _, ours := after[field]; !ours {
			after[field] = value
		}
	}
	return after
}

// minSimulatedTTL is the least lifetime under a caller's clock: 24 h.
const minSimulatedTTL = 86_400_000

// Model is one policy of one program.
type Model struct {
	Program  *store.Program
	Identity string // without the suffix of a caller's clock
	fixed    []int64
	limit    int64
	log      *slidingLog // where it is the sliding log, and then step is nil
	parts    []string    // what the numbers of its state are, else
	step     func(state []int64, now, cost int64) (decision algorithm.Decision, after []int64, expiresAt int64, moved, valid bool)
}

// Args are the program's wire arguments; clock 0 means the server's.
func (m *Model) Args(cost, clock int64) []any {
	args := []any{m.Identity}
	for _, n := range m.fixed {
		args = append(args, n)
	}
	return append(args, cost, clock)
}

// Limit is the greatest cost.
func (m *Model) Limit() int64 { return m.limit }

// Call is the program at a clock reading. simulated says that the clock is a caller's.
func (m *Model) Call(hash Hash, now, cost int64, simulated bool) Result {
	identity := m.Identity
	if simulated {
		identity += ":sim"
	}
	if m.log != nil {
		return m.log.call(hash, identity, now, cost, simulated)
	}
	var state []int64
	if hash != nil {
		var ok bool
		if state, ok = m.numbers(hash[identity]); !ok {
			return rejected(hash, now)
		}
	}
	decision, after, expiresAt, moved, valid := m.step(state, now, cost)
	if !valid {
		return rejected(hash, now)
	}
	result := Result{Reply: reply(decision), After: hash}
	if decision.Status != algorithm.StatusAllowed {
		return result
	}
	result.After = Hash{identity: Join(after)}
	if moved || simulated {
		result.TTL = expiresAt - now
		if simulated {
			result.TTL = max(result.TTL, minSimulatedTTL)
		}
	}
	return result
}

func rejected(hash Hash, now int64) Result {
	return Result{Reply: reply(algorithm.Rejected(algorithm.StatusStateIncompatible, now)), After: hash}
}

func reply(d algorithm.Decision) [7]any {
	return [7]any{
		d.Status.String(), d.ServerNowMillis, d.EffectiveNowMillis, d.Limit, d.Remaining, d.RetryAfterMillis, d.ResetAtMillis,
	}
}

var digits = regexp.MustCompile(`^[0-9]{1,16}$`)

// Parts names the numbers of a state over a hash, in their order.
func (m *Model) Parts() []string { return m.parts }

// numbers reads a state as the programs do: numbers of 1 to 16 digits, at most 2^53-1, with one space
// between.
func (m *Model) numbers(text string) ([]int64, bool) {
	texts := strings.Split(text, " ")
	if len(texts) != len(m.parts) {
		return nil, false
	}
	values := make([]int64, len(texts))
	for i, digit := range texts {
		if !digits.MatchString(digit) {
			return nil, false
		}
		n, err := strconv.ParseInt(digit, 10, 64)
		if err != nil || n > algorithm.MaxExact {
			return nil, false
		}
		values[i] = n
	}
	return values, true
}

// Join writes the numbers of a state.
func Join(state []int64) string { return strings.Trim(fmt.Sprint(state), "[]") }

// FixedWindow is rate-fixed-window-v1 under p.
func FixedWindow(p algorithm.FixedWindow, identity string) *Model {
	return &Model{
		Program: store.RateFixedWindowV1, Identity: identity, parts: []string{"window id", "consumed", "last observed"},
		limit: p.Limit,
		fixed: []int64{p.Limit, p.WindowMillis, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		step: func(n []int64, now, cost int64) (algorithm.Decision, []int64, int64, bool, bool) {
			var s algorithm.FixedWindowState
			if n != nil {
				s = algorithm.FixedWindowState{Present: true, Window: n[0], Consumed: n[1], LastObserved: n[2]}
			}
			if !p.Valid(s) {
				return algorithm.Decision{}, nil, 0, false, false
			}
			d, next := p.Decide(s, now, cost)
			moved := !s.Present || s.Window != next.Window
			return d, []int64{next.Window, next.Consumed, next.LastObserved}, next.ExpiresAt, moved, true
		},
	}
}

// SlidingCounter is rate-sliding-counter-v1 under p.
func SlidingCounter(p algorithm.SlidingCounter, identity string) *Model {
	return &Model{
		Program: store.RateSlidingCounterV1, Identity: identity, parts: []string{"window id", "count", "previous window id", "previous count", "last observed"},
		limit: p.Limit,
		fixed: []int64{p.Limit, p.WindowMillis, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		step: func(n []int64, now, cost int64) (algorithm.Decision, []int64, int64, bool, bool) {
			var s algorithm.SlidingCounterState
			if n != nil {
				s = algorithm.SlidingCounterState{
					Present: true, Window: n[0], Count: n[1], Previous: n[2], PreviousCount: n[3], LastObserved: n[4],
				}
			}
			if !p.Valid(s) {
				return algorithm.Decision{}, nil, 0, false, false
			}
			d, next := p.Decide(s, now, cost)
			moved := !s.Present || s.Window != next.Window
			after := []int64{next.Window, next.Count, next.Previous, next.PreviousCount, next.LastObserved}
			return d, after, next.ExpiresAt, moved, true
		},
	}
}

// TokenBucket is rate-token-bucket-v1 under p.
func TokenBucket(p algorithm.TokenBucket, identity string) *Model {
	rate := p.Rate()
	return &Model{
		Program: store.RateTokenBucketV1, Identity: identity, parts: []string{"tokens", "remainder", "last refill", "expiry"},
		limit: p.Capacity,
		fixed: []int64{p.Capacity, rate.Numerator, rate.Denominator, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		step: func(n []int64, now, cost int64) (algorithm.Decision, []int64, int64, bool, bool) {
			var s algorithm.TokenBucketState
			if n != nil {
				s = algorithm.TokenBucketState{Present: true, Tokens: n[0], Remainder: n[1], LastRefill: n[2], ExpiresAt: n[3]}
			}
			if !p.Valid(s) {
				return algorithm.Decision{}, nil, 0, false, false
			}
			d, next := p.Decide(s, now, cost)
			moved := !s.Present || s.ExpiresAt != next.ExpiresAt
			after := []int64{next.Tokens, next.Remainder, next.LastRefill, next.ExpiresAt}
			return d, after, next.ExpiresAt, moved, true
		},
	}
}

// GCRA is rate-gcra-v1 under p.
func GCRA(p algorithm.GCRA, identity string) *Model {
	rate := p.Rate()
	return &Model{
		Program: store.RateGCRAV1, Identity: identity, parts: []string{"arrival", "fraction", "last observed", "expiry"},
		limit: p.Burst,
		fixed: []int64{rate.Numerator, rate.Denominator, p.Burst, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		step: func(n []int64, now, cost int64) (algorithm.Decision, []int64, int64, bool, bool) {
			var s algorithm.GCRAState
			if n != nil {
				s = algorithm.GCRAState{Present: true, TAT: algorithm.Span{Millis: n[0], Fraction: n[1]}, LastObserved: n[2], ExpiresAt: n[3]}
			}
			if !p.Valid(s) {
				return algorithm.Decision{}, nil, 0, false, false
			}
			d, next := p.Decide(s, now, cost)
			moved := !s.Present || s.ExpiresAt != next.ExpiresAt
			after := []int64{next.TAT.Millis, next.TAT.Fraction, next.LastObserved, next.ExpiresAt}
			return d, after, next.ExpiresAt, moved, true
		},
	}
}
