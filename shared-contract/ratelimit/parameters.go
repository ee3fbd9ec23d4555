package ratelimit

import (
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// Parameters are the numbers of one algorithm: FixedWindowParameters,
// SlidingWindowCounterParameters, TokenBucketParameters, GCRAParameters or
// SlidingWindowLogParameters. No other type implements it.
//
//sumtype:decl
type Parameters interface {
	algorithm() Algorithm
	limit() int64
	// check reports every fault by refuse.
	check(refuse refusal)
	// canonical gives all parameters as text, the same text for the same parameters alone.
	canonical() string
}

// FixedWindowParameters admit at most Limit in each window aligned to the Unix epoch, and at most
// 2*Limit in any interval of that length.
type FixedWindowParameters struct {
	Limit  int64         // units, 1..2^53-1
	Window time.Duration // whole milliseconds, 1 ms..100 years
}

// SlidingWindowCounterParameters admit by the count of the current aligned window and the weighted
// count of the one before. At most 2*Limit-1 in any interval of a window's length.
type SlidingWindowCounterParameters struct {
	Limit  int64         // units, 1..9,007,199,254
	Window time.Duration // whole milliseconds, 1 ms..100 years
}

// TokenBucketParameters admit up to Capacity at once and RefillTokens each RefillPeriod on average.
//
// With N/D the refill in tokens per millisecond in lowest terms, D*(N+1) and Capacity+N+1 must be
// within 2^53-1 and the time to fill the empty bucket within 100 years.
type TokenBucketParameters struct {
	Capacity     int64         // tokens
	RefillTokens int64         // tokens
	RefillPeriod time.Duration // whole milliseconds, 1 ms..100 years
}

// GCRAParameters admit Limit units each Period, evenly spaced, of which up to Burst may come at once.
// They decide as TokenBucketParameters of the capacity Burst and the refill Limit each Period do.
//
// With L/P the limit in units per millisecond in lowest terms, L*(P+1) must be within 2^53-1 and the
// time that Burst units take at that rate within 100 years.
type GCRAParameters struct {
	Limit  int64         // units
	Period time.Duration // whole milliseconds, 1 ms..100 years
	Burst  int64         // units; the greatest cost that can pass
}

// SlidingWindowLogParameters admit at most Limit in any interval of Window, exactly: each admitted
// request is kept while the window that began with it lasts.
type SlidingWindowLogParameters struct {
	Limit  int64         // units, 1..10,000
	Window time.Duration // whole milliseconds, 1 ms..100 years
}

func (FixedWindowParameters) algorithm() Algorithm          { return AlgorithmFixedWindow }
func (SlidingWindowCounterParameters) algorithm() Algorithm { return AlgorithmSlidingWindowCounter }
func (TokenBucketParameters) algorithm() Algorithm          { return AlgorithmTokenBucket }
func (GCRAParameters) algorithm() Algorithm                 { return AlgorithmGCRA }
func (SlidingWindowLogParameters) algorithm() Algorithm     { return AlgorithmSlidingWindowLog }

func (p FixedWindowParameters) limit() int64          { return p.Limit }
func (p SlidingWindowCounterParameters) limit() int64 { return p.Limit }
func (p TokenBucketParameters) limit() int64          { return p.Capacity }
func (p GCRAParameters) limit() int64                 { return p.Burst }
func (p SlidingWindowLogParameters) limit() int64     { return p.Limit }

func (p FixedWindowParameters) canonical() string {
	return fmt.Sprintf("limit=%d|window=%d", p.Limit, p.Window.Milliseconds())
}

func (p SlidingWindowCounterParameters) canonical() string {
	return fmt.Sprintf("limit=%d|window=%d", p.Limit, p.Window.Milliseconds())
}

func (p TokenBucketParameters) canonical() string {
	return fmt.Sprintf("capacity=%d|refill-tokens=%d|refill-period=%d", p.Capacity, p.RefillTokens, p.RefillPeriod.Milliseconds())
}

func (p GCRAParameters) canonical() string {
	return fmt.Sprintf("limit=%d|period=%d|burst=%d", p.Limit, p.Period.Milliseconds(), p.Burst)
}

func (p SlidingWindowLogParameters) canonical() string {
	return fmt.Sprintf("limit=%d|window=%d", p.Limit, p.Window.Milliseconds())
}

// Arithmetic gives the algorithm's pure form.
func (p FixedWindowParameters) Arithmetic(clock algorithm.Clock) algorithm.FixedWindow {
	return algorithm.FixedWindow{Limit: p.Limit, WindowMillis: p.Window.Milliseconds(), Clock: clock}
}

// Arithmetic gives the algorithm's pure form.
func (p SlidingWindowCounterParameters) Arithmetic(clock algorithm.Clock) algorithm.SlidingCounter {
	return algorithm.SlidingCounter{Limit: p.Limit, WindowMillis: p.Window.Milliseconds(), Clock: clock}
}

// Arithmetic gives the algorithm's pure form.
func (p TokenBucketParameters) Arithmetic(clock algorithm.Clock) algorithm.TokenBucket {
	return algorithm.TokenBucket{
		Capacity: p.Capacity, RefillTokens: p.RefillTokens, RefillPeriodMillis: p.RefillPeriod.Milliseconds(),
		Clock: clock,
	}
}

// Arithmetic gives the algorithm's pure form.
func (p GCRAParameters) Arithmetic(clock algorithm.Clock) algorithm.GCRA {
	return algorithm.GCRA{Limit: p.Limit, PeriodMillis: p.Period.Milliseconds(), Burst: p.Burst, Clock: clock}
}

// Arithmetic gives the algorithm's pure form.
func (p SlidingWindowLogParameters) Arithmetic(clock algorithm.Clock) algorithm.SlidingLog {
	return algorithm.SlidingLog{Limit: p.Limit, WindowMillis: p.Window.Milliseconds(), Clock: clock}
}

// checkPositive refuses a count that is not positive and reports whether it is fine.
func checkPositive(field string, value int64, refuse refusal) bool {
	if value < 1 {
		refuse(field, "is %d, want 1 or more", value)
		return false
	}
	return true
}

// checkPeriod refuses a duration outside 1 ms..100 years and reports whether it is fine.
func checkPeriod(field string, value time.Duration, refuse refusal) bool {
	if err := checkMillis(value, 1, algorithm.MaxHorizonMillis); err != nil {
		refuse(field, "%w", err)
		return false
	}
	return true
}

// refusal takes one fault of a field.
type refusal = func(field, format string, args ...any)

// neutral is a clock that any Check accepts: grace and regression are judged by the policy.
var neutral = algorithm.Clock{}

func (p FixedWindowParameters) check(refuse refusal) {
	limit := checkPositive("Limit", p.Limit, refuse)
	if checkPeriod("Window", p.Window, refuse) && limit {
		if err := p.Arithmetic(neutral).Check(); err != nil {
			refuse("Limit", "cannot be exact: %w", err)
		}
	}
}

func (p SlidingWindowCounterParameters) check(refuse refusal) {
	limit := checkPositive("Limit", p.Limit, refuse)
	if checkPeriod("Window", p.Window, refuse) && limit {
		if err := p.Arithmetic(neutral).Check(); err != nil {
			refuse("Limit", "cannot be exact: %w", err)
		}
	}
}

func (p TokenBucketParameters) check(refuse refusal) {
	capacity := checkPositive("Capacity", p.Capacity, refuse)
	tokens := checkPositive("RefillTokens", p.RefillTokens, refuse)
	if checkPeriod("RefillPeriod", p.RefillPeriod, refuse) && capacity && tokens {
		if err := p.Arithmetic(neutral).Check(); err != nil {
			refuse("Capacity", "cannot be exact with this refill: %w", err)
		}
	}
}

func (p GCRAParameters) check(refuse refusal) {
	limit := checkPositive("Limit", p.Limit, refuse)
	burst := checkPositive("Burst", p.Burst, refuse)
	if checkPeriod("Period", p.Period, refuse) && limit && burst {
		if err := p.Arithmetic(neutral).Check(); err != nil {
			refuse("Burst", "cannot be exact with this limit and period: %w", err)
		}
	}
}

func (p SlidingWindowLogParameters) check(refuse refusal) {
	limit := checkPositive("Limit", p.Limit, refuse)
	if checkPeriod("Window", p.Window, refuse) && limit {
		if err := p.Arithmetic(neutral).Check(); err != nil {
			refuse("Limit", "cannot be kept as a log: %w", err)
		}
	}
}
