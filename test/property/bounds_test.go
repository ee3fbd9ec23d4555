package property

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// total sums exactly: two limits of 2^53-1 and more are added here.
func total(admitted []admission) *big.Int {
	sum := new(big.Int)
	for _, a := range admitted {
		sum.Add(sum, big.NewInt(a.cost))
	}
	return sum
}

// eachInterval calls visit with the admissions of every interval of length that begins at one.
func eachInterval(admitted []admission, length int64, visit func(within []admission)) {
	for first := range admitted {
		end := first
		for end < len(admitted) && admitted[end].at < admitted[first].at+length {
			end++
		}
		visit(admitted[first:end])
	}
}

func TestFixedWindowBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genFixedWindow(t)
		admitted := drive(t, fixedWindow(p), p.Limit, p.WindowMillis, 2*p.Clock.MaxRegressionMillis)
		aligned := map[int64]*big.Int{}
		for _, a := range admitted {
			id := a.at / p.WindowMillis
			if aligned[id] == nil {
				aligned[id] = new(big.Int)
			}
			if aligned[id].Add(aligned[id], big.NewInt(a.cost)).Cmp(big.NewInt(p.Limit)) > 0 {
				t.Fatalf("%+v: window %d admitted %v", p, id, aligned[id])
			}
		}
		most := new(big.Int).Mul(big.NewInt(2), big.NewInt(p.Limit))
		eachInterval(admitted, p.WindowMillis, func(within []admission) {
			if sum := total(within); sum.Cmp(most) > 0 {
				t.Fatalf("%+v: an interval admitted %v: %v", p, sum, within)
			}
		})
	})
}

func TestSlidingCounterBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genSlidingCounter(t)
		admitted := drive(t, slidingCounter(p), p.Limit, p.WindowMillis, 2*p.Clock.MaxRegressionMillis)
		eachInterval(admitted, p.WindowMillis, func(within []admission) {
			if sum := total(within); sum.Cmp(big.NewInt(2*p.Limit-1)) > 0 {
				t.Fatalf("%+v: a true window admitted %v: %v", p, sum, within)
			}
		})
	})
}

// The bound of the sliding counter is no idle promise: traffic that waits for the end of a window
// comes near it.
func TestSlidingCounterBoundIsApproached(t *testing.T) {
	t.Parallel()
	p := algorithm.SlidingCounter{Limit: 1000, WindowMillis: 1000}
	d := slidingCounter(p)
	var admitted []admission
	for at := int64(10_999); at < 12_000; at++ {
		for d.decide(at, 1).Status == algorithm.StatusAllowed {
			admitted = append(admitted, admission{at, 1})
		}
	}
	most := int64(0)
	eachInterval(admitted, p.WindowMillis, func(within []admission) { most = max(most, total(within).Int64()) })
	if most < 2*p.Limit*9/10 || most > 2*p.Limit-1 {
		t.Errorf("at most %d in a true window, want close to and below %d", most, 2*p.Limit)
	}
}

func TestTokenBucketBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genTokenBucket(t)
		admitted := drive(t, tokenBucket(p), p.Capacity, max(p.FillMillis(), 1), 2*p.Clock.MaxRegressionMillis)
		for first := range admitted {
			spent := new(big.Int)
			for _, a := range admitted[first:] {
				spent.Add(spent, big.NewInt(a.cost))
				// spent <= capacity + elapsed*refill/period, without the division.
				most := new(big.Int).Mul(big.NewInt(a.at-admitted[first].at), big.NewInt(p.RefillTokens))
				most.Add(most, new(big.Int).Mul(big.NewInt(p.Capacity), big.NewInt(p.RefillPeriodMillis)))
				if new(big.Int).Mul(spent, big.NewInt(p.RefillPeriodMillis)).Cmp(most) > 0 {
					t.Fatalf("%+v: %v spent from %d to %d", p, spent, admitted[first].at, a.at)
				}
			}
		}
	})
}

// As long as the bucket is never full, what it holds is what it began with, plus the exact refill,
// less what was spent: however often and whenever it was evaluated. Casebook 16.
func TestTokenBucketDoesNotDependOnEvaluations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genTokenBucket(t)
		start := genStart(t)
		often := tokenBucket(p)
		often.decide(start, p.Capacity)
		now, spent := start, int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "evaluations") {
			now += rapid.Int64Range(0, max(p.FillMillis()/40, 1)).Draw(t, "step")
			if now-start >= p.FillMillis() {
				now = start + p.FillMillis() - 1
			}
			if cost := genCost(t, p.Capacity); often.decide(now, cost).Status == algorithm.StatusAllowed {
				spent += cost
			}
		}
		// One evaluation of another bucket at the end tells what came in all.
		once := tokenBucket(p)
		once.decide(start, p.Capacity)
		came := remaining(once, now, p.Capacity)
		exact := new(big.Int).Mul(big.NewInt(now-start), big.NewInt(p.RefillTokens))
		if exact.Quo(exact, big.NewInt(p.RefillPeriodMillis)).Cmp(big.NewInt(came)) != 0 {
			t.Fatalf("%+v: after %d ms %d tokens came, want %v", p, now-start, came, exact)
		}
		if left := remaining(often, now, p.Capacity); left != came-spent {
			t.Fatalf("%+v: %d came and %d were spent, but %d are left", p, came, spent, left)
		}
	})
}

// remaining is what a bucket that is not full says when it is asked for all.
func remaining(d decider, now, capacity int64) int64 {
	got := d.fork().decide(now, capacity)
	if got.Status == algorithm.StatusAllowed {
		return capacity
	}
	return got.Remaining
}
