package property

import (
	"testing"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// The examples that docs/guarantees.md works in numbers.

// admit counts how many units of cost 1 pass at a moment, up to most.
func admit[S any](decide func(S, int64, int64) (algorithm.Decision, S), state *S, now int64, most int) int {
	for n := range most {
		d, next := decide(*state, now, 1)
		if d.Status != algorithm.StatusAllowed {
			return n
		}
		*state = next
	}
	return most
}

// TestSlidingCounterReachesItsBound: 2*limit-1 units in an interval of a window's length. That it is
// never more, TestSlidingCounterBound shows.
func TestSlidingCounterReachesItsBound(t *testing.T) {
	t.Parallel()
	p := algorithm.SlidingCounter{Limit: 100, WindowMillis: 1000}
	var s algorithm.SlidingCounterState
	if n := admit(p.Decide, &s, 999, 200); n != 100 {
		t.Fatalf("%d at 999 ms", n)
	}
	// At half of the next window half of the burst still counts, at 2 ms before its end a fifth of a
	// unit, rounded up.
	for _, c := range []struct {
		at   int64
		want int
	}{{1500, 50}, {1998, 49}} {
		if n := admit(p.Decide, &s, c.at, 200); n != c.want {
			t.Errorf("%d at %d ms, want %d", n, c.at, c.want)
		}
	}
	// 100 + 50 + 49 in the 1000 ms of 999..1998.
}

// TestSlidingCounterDeniesTooMuch: a burst at the beginning of a window is held against the next one,
// though a true sliding window has forgotten it.
func TestSlidingCounterDeniesTooMuch(t *testing.T) {
	t.Parallel()
	p := algorithm.SlidingCounter{Limit: 100, WindowMillis: 1000}
	var s algorithm.SlidingCounterState
	first := admit(p.Decide, &s, 0, 200)
	if second := admit(p.Decide, &s, 1001, 200); first != 100 || second != 0 {
		t.Errorf("%d at 0 ms and %d at 1001 ms, want 100 and none", first, second)
	}
}

// TestFixedWindowReachesItsBound: 2*limit units within two milliseconds.
func TestFixedWindowReachesItsBound(t *testing.T) {
	t.Parallel()
	p := algorithm.FixedWindow{Limit: 100, WindowMillis: 1000}
	var s algorithm.FixedWindowState
	if n := admit(p.Decide, &s, 999, 200) + admit(p.Decide, &s, 1000, 200); n != 200 {
		t.Errorf("%d units in 999..1000 ms, want 200", n)
	}
}

// TestBucketReachesItsBound: the capacity and what came in between, for the bucket and for GCRA.
func TestBucketReachesItsBound(t *testing.T) {
	t.Parallel()
	bucket := algorithm.TokenBucket{Capacity: 100, RefillTokens: 50, RefillPeriodMillis: 1000}
	gcra := algorithm.GCRA{Limit: 50, PeriodMillis: 1000, Burst: 100}
	var b algorithm.TokenBucketState
	var g algorithm.GCRAState
	if n := admit(bucket.Decide, &b, 0, 200) + admit(bucket.Decide, &b, 1000, 200); n != 150 {
		t.Errorf("bucket: %d units in 0..1000 ms, want 150", n)
	}
	if n := admit(gcra.Decide, &g, 0, 200) + admit(gcra.Decide, &g, 1000, 200); n != 150 {
		t.Errorf("gcra: %d units in 0..1000 ms, want 150", n)
	}
}

// TestLogIsExact: the burst leaves a window after it came, and not a millisecond earlier.
func TestLogIsExact(t *testing.T) {
	t.Parallel()
	p := algorithm.SlidingLog{Limit: 100, WindowMillis: 1000}
	var s algorithm.SlidingLogState
	first, early := admit(p.Decide, &s, 999, 200), admit(p.Decide, &s, 1998, 200)
	if late := admit(p.Decide, &s, 1999, 200); first != 100 || early != 0 || late != 100 {
		t.Errorf("%d, %d and %d, want 100, none and 100", first, early, late)
	}
}

// TestNanosecondsSnap: in a double, a moment in nanoseconds snaps to 256 of them, and one that is short
// is lost. In milliseconds with a fraction apart, the same rate is exact.
func TestNanosecondsSnap(t *testing.T) {
	t.Parallel()
	const moment = 1_780_000_000_000_000_000
	tat := float64(moment)
	for _, c := range []struct{ add, becomes int64 }{
		{100, moment}, {128, moment}, {129, moment + 256}, {1000, moment + 1024}, {333_333, moment + 333_312},
	} {
		if got := int64(tat + float64(c.add)); got != c.becomes {
			t.Errorf("%d + %d = %d, want %d", int64(moment), c.add, got, c.becomes)
		}
	}
	for range 1_000_000 {
		tat += 100 // A tenth of a second of a limit of 10,000,000 a second.
	}
	if tat != moment {
		t.Errorf("the arrival time has moved to %.0f", tat)
	}

	p := algorithm.GCRA{Limit: 10_000_000, PeriodMillis: 1000, Burst: 1_000_000}
	var s algorithm.GCRAState
	now := int64(moment / 1_000_000)
	if n := admit(p.Decide, &s, now, 2_000_000); n != 1_000_000 || s.TAT != (algorithm.Span{Millis: now + 100}) {
		t.Errorf("%d pass, and the arrival time is %+v, want %d", n, s.TAT, now+100)
	}
	if d, next := p.Decide(algorithm.GCRAState{}, now, 1); next.TAT != (algorithm.Span{Millis: now, Fraction: 1}) || d.Remaining != 999_999 {
		t.Errorf("one unit leaves %+v with %+v", d, next)
	}
}
