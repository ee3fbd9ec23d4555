package model

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"

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
	step     func(hash Hash, now, cost int64) (decision algorithm.Decision, after Hash, expiresAt int64, moved, valid bool)
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
	if hash != nil && hash["m"] != identity {
		return rejected(hash, now)
	}
	decision, after, expiresAt, moved, valid := m.step(hash, now, cost)
	if !valid {
		return rejected(hash, now)
	}
	result := Result{Reply: reply(decision), After: hash}
	if decision.Status != algorithm.StatusAllowed {
		return result
	}
	after["m"] = identity
	result.After = after
	if !moved && !simulated {
		// Not written again, so as it was, to the character.
		for _, field := range []string{"w", "pw", "pc", "e"} {
			if text, ok := hash[field]; ok {
				after[field] = text
			}
		}
	}
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

// numbers reads fields as the programs do: 1 to 16 digits, at most 2^53-1.
func numbers(hash Hash, fields ...string) ([]int64, bool) {
	values := make([]int64, len(fields))
	for i, field := range fields {
		if !digits.MatchString(hash[field]) {
			return nil, false
		}
		n, err := strconv.ParseInt(hash[field], 10, 64)
		if err != nil || n > algorithm.MaxExact {
			return nil, false
		}
		values[i] = n
	}
	return values, true
}

func hashOf(pairs ...any) Hash {
	hash := Hash{}
	for len(pairs) >= 2 {
		hash[pairs[0].(string)] = fmt.Sprint(pairs[1]) //nolint:forcetypeassert // Written here alone.
		pairs = pairs[2:]
	}
	return hash
}

// FixedWindow is rate-fixed-window-v1 under p.
func FixedWindow(p algorithm.FixedWindow, identity string) *Model {
	return &Model{
		Program: store.RateFixedWindowV1, Identity: identity, limit: p.Limit,
		fixed: []int64{p.Limit, p.WindowMillis, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		step: func(hash Hash, now, cost int64) (algorithm.Decision, Hash, int64, bool, bool) {
			var s algorithm.FixedWindowState
			if hash != nil {
				n, ok := numbers(hash, "l", "w", "c")
				if !ok {
					return algorithm.Decision{}, nil, 0, false, false
				}
				s = algorithm.FixedWindowState{Present: true, LastObserved: n[0], Window: n[1], Consumed: n[2]}
			}
			if !p.Valid(s) {
				return algorithm.Decision{}, nil, 0, false, false
			}
			d, next := p.Decide(s, now, cost)
			moved := !s.Present || s.Window != next.Window
			return d, hashOf("l", next.LastObserved, "w", next.Window, "c", next.Consumed), next.ExpiresAt, moved, true
		},
	}
}

// SlidingCounter is rate-sliding-counter-v1 under p.
func SlidingCounter(p algorithm.SlidingCounter, identity string) *Model {
	return &Model{
		Program: store.RateSlidingCounterV1, Identity: identity, limit: p.Limit,
		fixed: []int64{p.Limit, p.WindowMillis, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		step: func(hash Hash, now, cost int64) (algorithm.Decision, Hash, int64, bool, bool) {
			var s algorithm.SlidingCounterState
			if hash != nil {
				n, ok := numbers(hash, "l", "w", "c", "pw", "pc")
				if !ok {
					return algorithm.Decision{}, nil, 0, false, false
				}
				s = algorithm.SlidingCounterState{
					Present: true, LastObserved: n[0], Window: n[1], Count: n[2], Previous: n[3], PreviousCount: n[4],
				}
			}
			if !p.Valid(s) {
				return algorithm.Decision{}, nil, 0, false, false
			}
			d, next := p.Decide(s, now, cost)
			moved := !s.Present || s.Window != next.Window
			after := hashOf("l", next.LastObserved, "w", next.Window, "c", next.Count, "pw", next.Previous, "pc", next.PreviousCount)
			return d, after, next.ExpiresAt, moved, true
		},
	}
}

// TokenBucket is rate-token-bucket-v1 under p.
func TokenBucket(p algorithm.TokenBucket, identity string) *Model {
	rate := p.Rate()
	return &Model{
		Program: store.RateTokenBucketV1, Identity: identity, limit: p.Capacity,
		fixed: []int64{p.Capacity, rate.Numerator, rate.Denominator, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		step: func(hash Hash, now, cost int64) (algorithm.Decision, Hash, int64, bool, bool) {
			var s algorithm.TokenBucketState
			if hash != nil {
				n, ok := numbers(hash, "t", "r", "l", "e")
				if !ok {
					return algorithm.Decision{}, nil, 0, false, false
				}
				s = algorithm.TokenBucketState{Present: true, Tokens: n[0], Remainder: n[1], LastRefill: n[2], ExpiresAt: n[3]}
			}
			if !p.Valid(s) {
				return algorithm.Decision{}, nil, 0, false, false
			}
			d, next := p.Decide(s, now, cost)
			moved := !s.Present || s.ExpiresAt != next.ExpiresAt
			after := hashOf("t", next.Tokens, "r", next.Remainder, "l", next.LastRefill, "e", next.ExpiresAt)
			return d, after, next.ExpiresAt, moved, true
		},
	}
}

// GCRA is rate-gcra-v1 under p.
func GCRA(p algorithm.GCRA, identity string) *Model {
	rate := p.Rate()
	return &Model{
		Program: store.RateGCRAV1, Identity: identity, limit: p.Burst,
		fixed: []int64{rate.Numerator, rate.Denominator, p.Burst, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		step: func(hash Hash, now, cost int64) (algorithm.Decision, Hash, int64, bool, bool) {
			var s algorithm.GCRAState
			if hash != nil {
				n, ok := numbers(hash, "a", "f", "l", "e")
				if !ok {
					return algorithm.Decision{}, nil, 0, false, false
				}
				s = algorithm.GCRAState{Present: true, TAT: algorithm.Span{Millis: n[0], Fraction: n[1]}, LastObserved: n[2], ExpiresAt: n[3]}
			}
			if !p.Valid(s) {
				return algorithm.Decision{}, nil, 0, false, false
			}
			d, next := p.Decide(s, now, cost)
			moved := !s.Present || s.ExpiresAt != next.ExpiresAt
			after := hashOf("a", next.TAT.Millis, "f", next.TAT.Fraction, "l", next.LastObserved, "e", next.ExpiresAt)
			return d, after, next.ExpiresAt, moved, true
		},
	}
}
