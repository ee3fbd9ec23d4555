package memory

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestCapacity(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	p := newPolicy(t, "p", ratelimit.FixedWindowParameters{Limit: 3, Window: time.Hour}, 3)
	q := newPolicy(t, "q", ratelimit.SlidingWindowCounterParameters{Limit: 3, Window: time.Hour}, 3)
	const most = 100
	l := newLimiter(t, most, clock.now, p, q)
	for n := range most / 2 {
		for _, each := range []*ratelimit.RateLimitPolicy{p, q} {
			if o := evaluate(t, l, each, subjectOf(t, n), 1); !ratelimit.Allows(o) {
				t.Fatalf("subject %d: %+v below the bound", n, o)
			}
		}
	}
	if l.LiveKeys() != most {
		t.Fatalf("%d live keys, want %d", l.LiveKeys(), most)
	}
	for n := range most {
		if o := evaluate(t, l, p, subjectOf(t, 1000+n), 1); o != full(p) {
			t.Fatalf("a new subject at the bound: %+v", o)
		}
	}
	// The bound is over all policies: a subject known to one is new to the other.
	for n := range most / 2 {
		if o := evaluate(t, l, p, subjectOf(t, n), 2); !ratelimit.Allows(o) {
			t.Fatalf("a known subject at the bound: %+v", o)
		}
		if o, ok := evaluate(t, l, p, subjectOf(t, n), 1).(ratelimit.Evaluated); !ok || o.Decision.Allowed {
			t.Fatalf("a known subject with a spent limit: %+v", o)
		}
	}
	if l.LiveKeys() != most {
		t.Fatalf("%d live keys after refusals, want %d", l.LiveKeys(), most)
	}
	verify(t, l)
}

// The bound is exact while many ask at once, over all shards, and so is the number of admissions.
func TestCapacityUnderContention(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	p := newPolicy(t, "p", ratelimit.FixedWindowParameters{Limit: 1, Window: time.Hour}, 1)
	const most, goroutines, each = 333, 64, 40
	l := newLimiter(t, most, clock.now, p)
	for round := range 3 {
		var admitted, refused atomic.Int64
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range each {
					outcome, err := l.Evaluate(t.Context(), ratelimit.RateLimitRequest{
						PolicyID: "p", Subject: subjectOf(t, round*1_000_000+g*each+i), Cost: 1, Deadline: farAway,
					})
					switch {
					case err == nil && ratelimit.Allows(outcome):
						admitted.Add(1)
					case err == nil && outcome == full(p):
						refused.Add(1)
					}
					if l.LiveKeys() > most {
						t.Errorf("%d live keys, at most %d", l.LiveKeys(), most)
					}
				}
			})
		}
		wg.Wait()
		if admitted.Load() != most || refused.Load() != goroutines*each-most {
			t.Errorf("round %d: %d admitted and %d refused, want %d and %d", round, admitted.Load(), refused.Load(), most, goroutines*each-most)
		}
		verify(t, l)
		// All expire: the next round finds every place taken by what is dead, and takes them over.
		clock.advance(3 * time.Hour)
	}
}

// A full provider finds the one expired state, wherever it is, before it refuses; and only once.
func TestFullProviderFindsTheOneExpired(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	short := newPolicy(t, "short", ratelimit.FixedWindowParameters{Limit: 1, Window: time.Second}, 1)
	long := newPolicy(t, "long", ratelimit.FixedWindowParameters{Limit: 1, Window: 24 * time.Hour}, 1)
	for trial := range 200 {
		const most = 50
		l := newLimiter(t, most, clock.now, short, long)
		for n := range most - 1 {
			evaluate(t, l, long, subjectOf(t, n), 1)
		}
		evaluate(t, l, short, subjectOf(t, 10_000+trial), 1)
		if o := evaluate(t, l, long, subjectOf(t, 20_000), 1); o != full(long) {
			t.Fatalf("nothing has expired: %+v", o)
		}
		clock.advance(2 * time.Second)
		if o := evaluate(t, l, long, subjectOf(t, 30_000+trial), 1); !ratelimit.Allows(o) {
			t.Fatalf("trial %d: one state has expired: %+v", trial, o)
		}
		if o := evaluate(t, l, long, subjectOf(t, 40_000), 1); o != full(long) {
			t.Fatalf("no second state has expired: %+v", o)
		}
		verify(t, l)
	}
}

// A place that was taken over for a new state, and is not needed after all (another call has stored the
// state, its limit is spent, or the deadline has passed meanwhile), goes back to the budget.
func TestPlaceNotNeededGoesBack(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	p := newPolicy(t, "p", ratelimit.FixedWindowParameters{Limit: 2, Window: time.Hour}, 2)
	l := newLimiter(t, 10, clock.now, p)
	ask := l.ask(p, subjectOf(t, 1))
	s := &l.states.shards[l.states.shardOf(ask.hash)]
	for i, c := range []struct {
		what     string
		deadline time.Time
		verdict  verdict
		status   algorithm.Status
		held     int
	}{
		{"late", clock.peek(), verdictDeadline, algorithm.StatusUnspecified, 0},
		{"new", farAway, verdictDecided, algorithm.StatusAllowed, 1},
		{"stored meanwhile", farAway, verdictDecided, algorithm.StatusAllowed, 1},
		{"spent meanwhile", farAway, verdictDecided, algorithm.StatusDenied, 1},
	} {
		if !l.states.budget.take() {
			t.Fatal("no place")
		}
		ask.deadline, ask.decision = c.deadline, algorithm.Decision{}
		if r := s.decide(&l.states.clock, &ask, true); r.verdict != c.verdict || ask.decision.Status != c.status {
			t.Errorf("%d, %s: %+v %+v", i, c.what, r, ask.decision)
		}
		if l.LiveKeys() != c.held {
			t.Errorf("%d, %s: %d places held, want %d", i, c.what, l.LiveKeys(), c.held)
		}
		verify(t, l)
	}
}

// Casebook 25: 100,000 subjects come, expire, and leave memory where it was; calls for one subject
// alone reclaim them, since each call sweeps the next shard.
func TestExpiredSubjectsLeaveNoMemory(t *testing.T) {
	const subjects = 100_000
	clock := newManualClock()
	for name, parameters := range map[string]ratelimit.Parameters{
		"fixed-window":           ratelimit.FixedWindowParameters{Limit: 10, Window: time.Minute},
		"sliding-window-counter": ratelimit.SlidingWindowCounterParameters{Limit: 10, Window: time.Minute},
		"token-bucket":           ratelimit.TokenBucketParameters{Capacity: 10, RefillTokens: 10, RefillPeriod: time.Minute},
		"gcra":                   ratelimit.GCRAParameters{Limit: 10, Period: time.Minute, Burst: 10},
		"sliding-window-log":     ratelimit.SlidingWindowLogParameters{Limit: 10, Window: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPolicy(t, "p", parameters, 10)
			l := newLimiter(t, 2*subjects, clock.now, p)
			one := subjectOf(t, 0)
			evaluate(t, l, p, one, 1)
			before := heapInUse()
			for n := range subjects {
				if o := evaluate(t, l, p, subjectOf(t, n), 1); !ratelimit.Allows(o) {
					t.Fatalf("subject %d: %+v", n, o)
				}
			}
			if l.LiveKeys() != subjects {
				t.Fatalf("%d live keys, want %d", l.LiveKeys(), subjects)
			}
			filled := heapInUse()
			if filled-before < subjects*72 {
				t.Fatalf("the heap grew by %d bytes only: the measure is wrong", filled-before)
			}
			clock.advance(10 * time.Minute)
			calls := 0
			for ; l.LiveKeys() > 1 && calls < subjects; calls++ {
				evaluate(t, l, p, one, 1)
			}
			if l.LiveKeys() != 1 {
				t.Fatalf("%d live keys after %d calls, want 1", l.LiveKeys(), calls)
			}
			after := heapInUse()
			t.Logf("heap before %d, filled %d (%d bytes a key), after %d; %d calls to reclaim", before, filled, (filled-before)/subjects, after, calls)
			if left := after - before; left > (filled-before)/20 {
				t.Errorf("%d bytes are left of %d", left, filled-before)
			}
			verify(t, l)
			runtime.KeepAlive(l)
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A flood of new subjects that expire at once meets a bounded number of removals in each call.
func TestFloodIsReclaimedInBoundedSteps(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	p := newPolicy(t, "p", ratelimit.FixedWindowParameters{Limit: 1, Window: time.Second}, 1)
	const most = 20_000
	l := newLimiter(t, most, clock.now, p)
	for n := range most {
		evaluate(t, l, p, subjectOf(t, n), 1)
	}
	clock.advance(time.Minute)
	held := l.LiveKeys()
	for n := range most {
		if o := evaluate(t, l, p, subjectOf(t, most+n), 1); !ratelimit.Allows(o) {
			t.Fatalf("call %d: %+v though everything before has expired", n, o)
		}
		now := l.LiveKeys()
		if removed := held + 1 - now; removed > 1+ownReclaim+sweepReclaim {
			t.Fatalf("call %d removed %d states", n, removed)
		}
		held = now
	}
	if held != most {
		t.Errorf("%d live keys at the end, want %d", held, most)
	}
	verify(t, l)
}

// Random traffic over several policies and a clock that also steps back: the invariants hold, and a
// subject's decisions do not depend on whether its state was reclaimed.
func TestRandomTrafficKeepsInvariants(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	policies := []*ratelimit.RateLimitPolicy{
		newPolicy(t, "fixed", ratelimit.FixedWindowParameters{Limit: 3, Window: 50 * time.Millisecond}, 3),
		newPolicy(t, "counter", ratelimit.SlidingWindowCounterParameters{Limit: 3, Window: 700 * time.Millisecond}, 3),
		newPolicy(t, "bucket", ratelimit.TokenBucketParameters{Capacity: 3, RefillTokens: 1, RefillPeriod: 300 * time.Millisecond}, 3),
		newPolicy(t, "gcra", ratelimit.GCRAParameters{Limit: 1, Period: 300 * time.Millisecond, Burst: 3}, 3),
		newPolicy(t, "log", ratelimit.SlidingWindowLogParameters{Limit: 3, Window: 700 * time.Millisecond}, 3),
	}
	crowded := newLimiter(t, 2000, clock.now, policies...)
	rng := rand.New(rand.NewPCG(7, 7))
	type pair struct {
		policy  int
		subject int
	}
	alone := map[pair]*EdgeRateLimiter{}
	for i := range 50_000 {
		step := time.Duration(rng.IntN(40)) * time.Millisecond
		if rng.IntN(10) == 0 {
			step = -step
		}
		clock.advance(step)
		at := pair{rng.IntN(len(policies)), rng.IntN(1 + rng.IntN(3000))}
		p, subject, cost := policies[at.policy], subjectOf(t, at.subject), 1+rng.Int64N(3)
		got := evaluate(t, crowded, p, subject, cost)
		if at.subject < 20 {
			if alone[at] == nil {
				alone[at] = newLimiter(t, 1, clock.now, p)
			}
			if want := evaluate(t, alone[at], p, subject, cost); got != want {
				t.Fatalf("step %d: %+v among many, %+v alone", i, got, want)
			}
		}
		if i%5000 == 0 {
			verify(t, crowded)
		}
	}
	verify(t, crowded)
}

// Locks of neighbours, and entries, keep to cache lines of their own.
func TestSizes(t *testing.T) {
	t.Parallel()
	if size := reflect.TypeFor[shard]().Size(); size%64 != 0 {
		t.Errorf("a shard has %d bytes", size)
	}
	if size := reflect.TypeFor[entry]().Size(); size != 64 {
		t.Errorf("an entry has %d bytes", size)
	}
}

func TestShardsFor(t *testing.T) {
	t.Parallel()
	for keys, want := range map[int]int{1: 64, 64 * 512: 64, 64*512 + 1: 128, 1 << 18: 512, 1 << 19: 1024, MostKeys: 1024} {
		if got := shardsFor(keys); got != want {
			t.Errorf("%d keys: %d shards, want %d", keys, got, want)
		}
	}
}
