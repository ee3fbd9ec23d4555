package property

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// promise drives one algorithm with generated traffic and holds each decision to what all promise.
func promise(t *rapid.T, d decider, limit, span int64, clock algorithm.Clock) {
	now := genStart(t)
	for range rapid.IntRange(1, 40).Draw(t, "calls") {
		now = min(max(now+genStep(t, span, 2*clock.MaxRegressionMillis+1), 0), algorithm.MaxNowMillis/2)
		cost := genCost(t, limit)
		last, expiresAt, _ := d.facts()
		if expiresAt > 0 && now >= expiresAt {
			if stale, absent := d.fork().decide(now, cost), d.fresh().decide(now, cost); stale != absent {
				t.Fatalf("stale state decides %+v, absent %+v", stale, absent)
			}
		}
		got := d.decide(now, cost)
		newLast, newExpiry, valid := d.facts()
		switch {
		case got.Remaining < 0 || got.Remaining > limit || got.Limit != limit:
			t.Fatalf("remaining outside 0..%d: %+v", limit, got)
		case newLast < last || newExpiry < expiresAt || !valid:
			t.Fatalf("the state went from %d to %d, its expiry from %d to %d, valid %v", last, newLast, expiresAt, newExpiry, valid)
		}
		switch got.Status {
		case algorithm.StatusAllowed:
			if newLast != max(now, last) || newExpiry < got.ResetAtMillis+clock.GraceMillis {
				t.Fatalf("admitted at %d: state of %d lives until %d: %+v", now, newLast, newExpiry, got)
			}
			reaches(t, d, got.ResetAtMillis, limit, "the full limit at reset-at")
		case algorithm.StatusDenied:
			if newLast != last || newExpiry != expiresAt {
				t.Fatalf("a denial wrote: %+v", got)
			}
			reaches(t, d, now+got.RetryAfterMillis, cost, "admission at retry-after")
			reaches(t, d, got.ResetAtMillis, limit, "the full limit at reset-at")
		case algorithm.StatusClockUnsafe:
			if want := last - clock.MaxRegressionMillis - now; got.RetryAfterMillis != want || want < 1 || newLast != last {
				t.Fatalf("unsafe at %d, last %d: %+v", now, last, got)
			}
		case algorithm.StatusUnspecified, algorithm.StatusStateIncompatible, algorithm.StatusInvalid:
			t.Fatalf("%+v", got)
		}
	}
}

// reaches requires that a cost is admitted at a moment, and not a millisecond before.
func reaches(t *rapid.T, d decider, at, cost int64, what string) {
	if got := d.fork().decide(at, cost); got.Status != algorithm.StatusAllowed {
		t.Fatalf("no %s %d: %+v", what, at, got)
	}
	if got := d.fork().decide(at-1, cost); got.Status == algorithm.StatusAllowed {
		t.Fatalf("%s %d comes earlier: %+v", what, at, got)
	}
}

func TestFixedWindowPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genFixedWindow(t)
		promise(t, fixedWindow(p), p.Limit, p.WindowMillis, p.Clock)
	})
}

func TestSlidingCounterPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genSlidingCounter(t)
		promise(t, slidingCounter(p), p.Limit, p.WindowMillis, p.Clock)
	})
}

func TestTokenBucketPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genTokenBucket(t)
		promise(t, tokenBucket(p), p.Capacity, max(p.FillMillis(), 1), p.Clock)
	})
}

func TestGCRAPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genGCRA(t)
		promise(t, gcra(p), p.Burst, max(p.FillMillis(), 1), p.Clock)
	})
}

func TestSlidingLogPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genSlidingLog(t)
		promise(t, slidingLog(p), p.Limit, p.WindowMillis, p.Clock)
	})
}
