package property

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// A log never admits more than its limit in any interval of its window's length, and denies nothing
// that would have fitted.
func TestSlidingLogBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genSlidingLog(t)
		admitted := drive(t, slidingLog(p), p.Limit, p.WindowMillis, 2*p.Clock.MaxRegressionMillis)
		eachInterval(admitted, p.WindowMillis, func(within []admission) {
			if sum := total(within); sum.Cmp(big.NewInt(p.Limit)) > 0 {
				t.Fatalf("%+v: an interval admitted %v: %v", p, sum, within)
			}
		})
	})
}

func TestSlidingLogDeniesNothingThatFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genSlidingLog(t)
		d := slidingLog(p)
		var admitted []admission
		now := genStart(t)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = min(max(now+genStep(t, p.WindowMillis, 2*p.Clock.MaxRegressionMillis), 0), algorithm.MaxNowMillis)
			cost := genCost(t, p.Limit)
			got := d.decide(now, cost)
			spent := int64(0)
			for _, a := range admitted {
				if a.at+p.WindowMillis > got.EffectiveNowMillis {
					spent += a.cost
				}
			}
			if got.Status == algorithm.StatusDenied && spent+cost <= p.Limit {
				t.Fatalf("%+v: %d spent, cost %d denied: %+v", p, spent, cost, got)
			}
			if got.Status == algorithm.StatusAllowed {
				admitted = append(admitted, admission{got.EffectiveNowMillis, cost})
			}
		}
	})
}

// GCRA admits at most its burst and what is due in the time that has passed.
func TestGCRABound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genGCRA(t)
		admitted := drive(t, gcra(p), p.Burst, max(p.FillMillis(), 1), 2*p.Clock.MaxRegressionMillis)
		for first := range admitted {
			spent := new(big.Int)
			for _, a := range admitted[first:] {
				spent.Add(spent, big.NewInt(a.cost))
				// spent <= burst + elapsed*limit/period, without the division.
				most := new(big.Int).Mul(big.NewInt(a.at-admitted[first].at), big.NewInt(p.Limit))
				most.Add(most, new(big.Int).Mul(big.NewInt(p.Burst), big.NewInt(p.PeriodMillis)))
				if new(big.Int).Mul(spent, big.NewInt(p.PeriodMillis)).Cmp(most) > 0 {
					t.Fatalf("%+v: %v spent from %d to %d", p, spent, admitted[first].at, a.at)
				}
			}
		}
	})
}

// bucketOf is the token bucket of the same numbers.
func bucketOf(p algorithm.GCRA) algorithm.TokenBucket {
	return algorithm.TokenBucket{Capacity: p.Burst, RefillTokens: p.Limit, RefillPeriodMillis: p.PeriodMillis, Clock: p.Clock}
}

// GCRA and the token bucket of the same numbers are one algorithm: every field of every decision, and
// the expiry, are the same.
func TestGCRAIsATokenBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// The bucket's own range is narrower at some ends.
		p := rapid.Custom(genGCRA).Filter(func(p algorithm.GCRA) bool { return bucketOf(p).Check() == nil }).Draw(t, "policy")
		q := bucketOf(p)
		one, other := gcra(p), tokenBucket(q)
		now, span := genStart(t), max(p.FillMillis(), 1)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = min(max(now+genStep(t, span, 2*p.Clock.MaxRegressionMillis+1), 0), algorithm.MaxNowMillis)
			cost := genCost(t, p.Burst)
			got, want := one.decide(now, cost), other.decide(now, cost)
			_, expiry, _ := one.facts()
			_, wantExpiry, _ := other.facts()
			if got != want || expiry != wantExpiry {
				t.Fatalf("%+v at %d, cost %d:\n  gcra %+v, until %d\nbucket %+v, until %d", p, now, cost, got, expiry, want, wantExpiry)
			}
		}
	})
}
