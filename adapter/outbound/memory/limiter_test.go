package memory

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestConfigReportsEveryFault(t *testing.T) {
	t.Parallel()
	set, err := ratelimit.NewPolicySet(newPolicy(t, "p", ratelimit.FixedWindowParameters{Limit: 1, Window: time.Second}, 1))
	if err != nil {
		t.Fatal(err)
	}
	good := Config{Policies: set, MaxKeys: 1, UnavailableRetryAfter: time.Millisecond}
	for name, c := range map[string]struct {
		edit func(*Config)
		want []string
	}{
		"none":             {func(*Config) {}, nil},
		"most keys":        {func(c *Config) { c.MaxKeys = MostKeys }, nil},
		"everything":       {func(c *Config) { *c = Config{} }, []string{"Policies is nil", "MaxKeys is 0, want 1..1073741824", "UnavailableRetryAfter is 0s, want 1ms or more"}},
		"one key too many": {func(c *Config) { c.MaxKeys = MostKeys + 1 }, []string{"MaxKeys is 1073741825"}},
		"negative keys":    {func(c *Config) { c.MaxKeys = -1 }, []string{"MaxKeys is -1"}},
		"short hint":       {func(c *Config) { c.UnavailableRetryAfter = time.Millisecond - 1 }, []string{"UnavailableRetryAfter is 999.999"}},
	} {
		config := good
		c.edit(&config)
		l, err := NewEdgeRateLimiter(config)
		if (err == nil) != (len(c.want) == 0) || (l == nil) != (err != nil) {
			t.Errorf("%s: limiter %v and error %v", name, l != nil, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
	}
}

func TestDefaultClockIsTheWallClock(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, "p", ratelimit.FixedWindowParameters{Limit: 2, Window: 24 * time.Hour}, 2)
	l := newLimiter(t, 10, nil, p)
	before := time.Now()
	e, ok := evaluate(t, l, p, subjectOf(t, 1), 1).(ratelimit.Evaluated)
	if !ok || !e.Decision.Allowed {
		t.Fatalf("%+v", e)
	}
	if reset := e.Decision.ResetAt; reset.Before(before.Truncate(time.Millisecond)) || reset.After(time.Now().Add(24*time.Hour)) {
		t.Errorf("reset at %v, asked at %v", reset, before)
	}
}

func TestOneClockReadingPerDecision(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	p := newPolicy(t, "p", ratelimit.TokenBucketParameters{Capacity: 2, RefillTokens: 1, RefillPeriod: time.Hour}, 2)
	l := newLimiter(t, 10, clock.now, p)
	for i, what := range []string{"admission of a new key", "admission", "denial"} {
		evaluate(t, l, p, subjectOf(t, 1), 1)
		if n := clock.readings.Load(); n != int64(i+1) {
			t.Fatalf("%s: %d readings after %d evaluations", what, n, i+1)
		}
	}
	if _, err := l.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: p.ID()}); err == nil {
		t.Fatal("a request without a subject was accepted")
	}
	if n := clock.readings.Load(); n != 3 {
		t.Errorf("a refused request read the clock")
	}
}

func TestDeadlineIsComparedWithTheLimitersClock(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	p := newPolicy(t, "p", ratelimit.FixedWindowParameters{Limit: 5, Window: time.Hour}, 5)
	l := newLimiter(t, 10, clock.now, p)
	late := ratelimit.Unavailable{PolicyID: p.ID(), RetryAfter: 250 * time.Millisecond, Category: ratelimit.UnavailableDeadline}
	for _, c := range []struct {
		left    time.Duration
		allowed bool
	}{{-time.Millisecond, false}, {0, false}, {time.Nanosecond, true}, {time.Hour, true}} {
		outcome, err := l.Evaluate(t.Context(), ratelimit.RateLimitRequest{
			PolicyID: p.ID(), Subject: subjectOf(t, 1), Cost: 1, Deadline: clock.peek().Add(c.left),
		})
		if err != nil || ratelimit.Allows(outcome) != c.allowed || !c.allowed && outcome != ratelimit.Outcome(late) {
			t.Errorf("%v left: %+v and error %v", c.left, outcome, err)
		}
	}
	if n := l.LiveKeys(); n != 1 {
		t.Errorf("%d live keys, want 1", n)
	}
}

// A clock outside the range of the arithmetic is not decided on.
func TestClockOutOfRange(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	p := newPolicy(t, "p", ratelimit.SlidingWindowCounterParameters{Limit: 5, Window: time.Hour}, 5)
	l := newLimiter(t, 10, clock.now, p)
	for ms, decided := range map[int64]bool{-1: false, 0: true, algorithm.MaxNowMillis: true, algorithm.MaxNowMillis + 1: false} {
		clock.set(time.UnixMilli(ms))
		outcome, err := l.Evaluate(t.Context(), ratelimit.RateLimitRequest{
			PolicyID: p.ID(), Subject: subjectOf(t, int(ms)), Cost: 1, Deadline: time.UnixMilli(algorithm.MaxExact),
		})
		want := ratelimit.Outcome(ratelimit.Incompatible{PolicyID: p.ID(), Category: ratelimit.IncompatibleProgram})
		if err != nil || ratelimit.Allows(outcome) != decided || !decided && outcome != want {
			t.Errorf("at %d: %+v and error %v", ms, outcome, err)
		}
	}
}

// Casebook 8, with the wall clock and no tolerance for steps back: readings are taken in the order of
// decisions, so no caller sees a clock that went back.
func TestContentionOnOneKey(t *testing.T) {
	t.Parallel()
	const limit, goroutines, each = 1000, 128, 50
	config := ratelimit.RateLimitPolicyConfig{
		ID: "p", Revision: 1, Algorithm: ratelimit.AlgorithmTokenBucket, MaxCost: 1, FailurePolicy: ratelimit.FailClosed,
		Parameters: ratelimit.TokenBucketParameters{Capacity: limit, RefillTokens: 1, RefillPeriod: 24 * time.Hour},
	}
	p, err := ratelimit.NewRateLimitPolicy(config)
	if err != nil {
		t.Fatal(err)
	}
	// A clock that moves by a millisecond with every reading: the worst that order can be put to.
	var ticks atomic.Int64
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := newLimiter(t, 10, func() time.Time { return start.Add(time.Duration(ticks.Add(1)) * time.Millisecond) }, p)
	subject := subjectOf(t, 1)
	var admitted, other atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				outcome, err := l.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: "p", Subject: subject, Cost: 1, Deadline: farAway})
				if _, ok := outcome.(ratelimit.Evaluated); !ok || err != nil {
					other.Add(1)
				}
				if ratelimit.Allows(outcome) {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != limit || other.Load() != 0 {
		t.Errorf("%d admitted, want %d; %d not evaluated", admitted.Load(), limit, other.Load())
	}
}

// Readings are taken under the lock of the shard that decides: taken before it, two callers could
// decide in the other order, and a policy without tolerance would call the clock unsafe.
func TestClockIsReadUnderTheLock(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, "p", ratelimit.FixedWindowParameters{Limit: 5, Window: time.Hour}, 5)
	clock := newManualClock()
	var l *EdgeRateLimiter
	own, readings := 0, 0
	l = newLimiter(t, 1, func() time.Time {
		readings++
		if l.states.shards[own].mu.TryLock() {
			l.states.shards[own].mu.Unlock()
			t.Error("the clock is read without the lock")
		}
		return clock.now()
	}, p)
	for n := range 3 {
		a := l.ask(p, subjectOf(t, n))
		own = l.states.shardOf(a.hash)
		evaluate(t, l, p, subjectOf(t, n), 1)
		clock.advance(24 * time.Hour)
	}
	// The second and the third found the limiter full of what had expired, and decided twice.
	if readings != 5 {
		t.Errorf("%d readings, want 5", readings)
	}
}

func TestDecisionDoesNotAllocate(t *testing.T) {
	clock := newManualClock()
	for _, parameters := range []ratelimit.Parameters{
		ratelimit.FixedWindowParameters{Limit: 1000, Window: time.Hour},
		ratelimit.SlidingWindowCounterParameters{Limit: 1000, Window: time.Hour},
		ratelimit.TokenBucketParameters{Capacity: 1000, RefillTokens: 1000, RefillPeriod: time.Hour},
		ratelimit.GCRAParameters{Limit: 1000, Period: time.Hour, Burst: 1000},
		// A log allocates where it grows: here ten times in two thousand calls.
		ratelimit.SlidingWindowLogParameters{Limit: 1000, Window: time.Hour},
	} {
		p := newPolicy(t, "p", parameters, 1000)
		l := newLimiter(t, 10, clock.now, p)
		subject := subjectOf(t, 1)
		evaluate(t, l, p, subject, 1)
		a := l.ask(p, subject)
		if n := testing.AllocsPerRun(2000, func() {
			clock.advance(time.Millisecond)
			if verdict := l.states.decide(&a); verdict != verdictDecided {
				t.Fatal("not decided")
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations in the decision", p.Algorithm(), n)
		}
		ctx := t.Context()
		request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subject, Cost: 1, Deadline: farAway}
		// Evaluate is inlined here, and the outcome does not leave this function.
		if n := testing.AllocsPerRun(2000, func() {
			if o, err := l.Evaluate(ctx, request); err != nil || o == nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations where the limiter is known", p.Algorithm(), n)
		}
		var port ratelimit.EdgeRateLimitPort = hidden{l}
		if n := testing.AllocsPerRun(2000, func() {
			if _, err := port.Evaluate(ctx, request); err != nil {
				t.Fatal(err)
			}
		}); n > 1 {
			t.Errorf("%v: %v allocations through the port", p.Algorithm(), n)
		}
	}
}
