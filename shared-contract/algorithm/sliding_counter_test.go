package algorithm

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestSlidingCounterCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		p           SlidingCounter
		step, value string
	}{
		{"least", SlidingCounter{Limit: 1, WindowMillis: 1}, "", ""},
		{"greatest", SlidingCounter{Limit: 9_007_199_254, WindowMillis: MaxHorizonMillis}, "", ""}, // casebook 17
		{"limit above", SlidingCounter{Limit: 9_007_199_255, WindowMillis: 1}, "limit * 1000000", "9007199255000000"},
		{"limit far above", SlidingCounter{Limit: MaxExact, WindowMillis: 1}, "limit * 1000000", "9223372036854775807"},
		{"limit beyond", SlidingCounter{Limit: MaxExact + 1, WindowMillis: 1}, "limit", "9007199254740992"},
		{"limit 0", SlidingCounter{WindowMillis: 1}, "limit", "0"},
		{"window 0", SlidingCounter{Limit: 1}, "window", "0"},
		{"window above", SlidingCounter{Limit: 1, WindowMillis: MaxHorizonMillis + 1}, "window", "3155760000001"},
		{"clock", SlidingCounter{Limit: 1, WindowMillis: 1, Clock: Clock{MaxRegressionMillis: 1}}, "cleanup grace", "0"},
	} {
		wantRange(t, c.name, c.p.Check(), c.step, c.value)
	}
}

// windows to measure exact arithmetic on: small ones, primes, and the ends of the range.
var windows = []int64{1, 2, 3, 7, 10, 999, 1000, 1001, 1009, 60_000, 999_983, 1_000_003, 3_600_000, 2_592_000_000, 31_536_000_000, MaxHorizonMillis - 1, MaxHorizonMillis}

// offsets are all offsets into a small window, and the ends and random ones of a large one.
func offsets(rng *rand.Rand, w int64) []int64 {
	var all []int64
	if w <= 1009 {
		for o := range w {
			all = append(all, o)
		}
		return all
	}
	all = append(all, 0, 1, 2, w/2, w-2, w-1)
	for range 300 {
		all = append(all, rng.Int64N(w))
	}
	return all
}

// The weight in two steps is ceil(10^6*(W-o)/W) of exact rationals, and each step is in range.
func TestSlidingCounterWeight(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(2, 2))
	for _, w := range windows {
		p := SlidingCounter{Limit: 1, WindowMillis: w}
		for _, o := range offsets(rng, w) {
			want := ceilQuotient(new(big.Int).Mul(big.NewInt(SlidingCounterScale), big.NewInt(w-o)), big.NewInt(w))
			if got := p.weight(o); want.Cmp(big.NewInt(got)) != 0 {
				t.Fatalf("window %d: weight(%d) = %d, want %v", w, o, got, want)
			}
			inRange(t, "1000*(W-o)", big.NewInt(1000), big.NewInt(w-o))
			inRange(t, "1000*r", big.NewInt(1000), big.NewInt(1000*(w-o)%w))
			inRange(t, "limit*weight", big.NewInt(MaxSlidingCounterLimit), want)
		}
	}
}

// decayOffset is the first offset at which the weighted count is within the budget, found by asking
// each offset of small windows and both sides of the answer for large ones.
func TestSlidingCounterDecayOffset(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	for _, w := range windows {
		for range 150 {
			count := 1 + rng.Int64N(1<<rng.IntN(33))
			budget := rng.Int64N(2 * count)
			p := SlidingCounter{Limit: MaxSlidingCounterLimit, WindowMillis: w}
			fits := func(o int64) bool {
				return ceilDiv(count*p.weight(o), SlidingCounterScale) <= budget
			}
			got := p.decayOffset(count, budget)
			if got < 0 || got > w {
				t.Fatalf("window %d: decayOffset(%d, %d) = %d", w, count, budget, got)
			}
			if got < w && !fits(got) {
				t.Fatalf("window %d: at decayOffset(%d, %d) = %d the count does not fit", w, count, budget, got)
			}
			if got > 0 && fits(got-1) {
				t.Fatalf("window %d: before decayOffset(%d, %d) = %d the count fits", w, count, budget, got)
			}
			v := min(SlidingCounterScale, budget*SlidingCounterScale/count)
			inRange(t, "budget*scale", big.NewInt(min(budget, MaxSlidingCounterLimit)), big.NewInt(SlidingCounterScale))
			inRange(t, "v*(W/scale)", big.NewInt(v), big.NewInt(w/SlidingCounterScale))
			inRange(t, "v*(W mod scale)", big.NewInt(v), big.NewInt(w%SlidingCounterScale))
		}
	}
}

// The estimate is never below the exact weighted sum, and above it by at most one unit and the
// rounding of the weight.
func TestSlidingCounterEstimate(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	for _, w := range windows {
		for range 100 {
			limit := 1 + rng.Int64N(1<<rng.IntN(33))
			p := SlidingCounter{Limit: limit, WindowMillis: w}
			previous, o := 1+rng.Int64N(limit), rng.Int64N(w)
			id := 1 + rng.Int64N(MaxNowMillis/w+1)
			d, _ := p.Decide(SlidingCounterState{Present: true, LastObserved: (id - 1) * w, Window: id - 1, Count: previous, Previous: max(id-2, 0)}, id*w+o, limit)
			used := new(big.Rat).SetInt64(limit - d.Remaining)
			if d.Status == StatusAllowed {
				used.SetInt64(0) // the whole limit fitted, so nothing weighed anything
			}
			exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(previous), big.NewInt(w-o)), big.NewInt(w))
			slack := new(big.Rat).Sub(used, exact)
			most := new(big.Rat).Add(big.NewRat(1, 1), big.NewRat(previous, SlidingCounterScale))
			if slack.Sign() < 0 || slack.Cmp(most) >= 0 {
				t.Fatalf("window %d, offset %d, previous %d: estimate %v, exact %v", w, o, previous, used, exact)
			}
		}
	}
}

// Casebook 12: 3,000,000 per hour.
func TestSlidingCounterThreeMillionPerHour(t *testing.T) {
	t.Parallel()
	const limit, hour = 3_000_000, 3_600_000
	p := SlidingCounter{Limit: limit, WindowMillis: hour}
	_, s := p.Decide(SlidingCounterState{}, 10*hour+hour-1, limit)
	for minute, free := range map[int64]int64{0: 0, 15: 750_000, 30: 1_500_000, 45: 2_250_000} {
		d, _ := p.Decide(s, 11*hour+minute*60_000, limit)
		if d.Status != StatusDenied || d.Remaining != free {
			t.Errorf("after %d min: %+v, want %d free", minute, d, free)
		}
	}
	if d, _ := p.Decide(s, 12*hour, limit); d.Status != StatusAllowed {
		t.Errorf("after the whole window: %+v", d)
	}
}

func TestSlidingCounterDecide(t *testing.T) {
	t.Parallel()
	p := SlidingCounter{Limit: 10, WindowMillis: 1000, Clock: Clock{GraceMillis: 500, MaxRegressionMillis: 100}}
	var s SlidingCounterState
	for i, c := range []struct {
		now, cost int64
		want      Decision
		after     SlidingCounterState
	}{
		{5300, 6, Decision{StatusAllowed, 5300, 5300, 10, 4, 0, 7000}, SlidingCounterState{true, 5300, 5, 6, 4, 0, 7500}},
		// 6 weigh 5 from the offset of 1/6 of a window on.
		{5400, 5, Decision{StatusDenied, 5400, 5400, 10, 4, 767, 7000}, SlidingCounterState{true, 5300, 5, 6, 4, 0, 7500}},
		{6166, 5, Decision{StatusDenied, 6166, 6166, 10, 4, 1, 7000}, SlidingCounterState{true, 5300, 5, 6, 4, 0, 7500}},
		{6167, 5, Decision{StatusAllowed, 6167, 6167, 10, 0, 0, 8000}, SlidingCounterState{true, 6167, 6, 5, 5, 6, 8500}},
		{6100, 1, Decision{StatusDenied, 6100, 6167, 10, 0, 234, 8000}, SlidingCounterState{true, 6167, 6, 5, 5, 6, 8500}},
		{6066, 1, Decision{StatusClockUnsafe, 6066, 6066, 10, 0, 1, 6067}, SlidingCounterState{true, 6167, 6, 5, 5, 6, 8500}},
		{8000, 10, Decision{StatusAllowed, 8000, 8000, 10, 0, 0, 10_000}, SlidingCounterState{true, 8000, 8, 10, 7, 0, 10_500}},
	} {
		d, next := p.Decide(s, c.now, c.cost)
		if d != c.want || next != c.after {
			t.Errorf("step %d:\n got %+v %+v\nwant %+v %+v", i, d, next, c.want, c.after)
		}
		s = next
	}
}

func TestSlidingCounterValid(t *testing.T) {
	t.Parallel()
	p := SlidingCounter{Limit: 10, WindowMillis: 1000}
	good := SlidingCounterState{Present: true, LastObserved: 5300, Window: 5, Count: 7, Previous: 4, PreviousCount: 3}
	for name, c := range map[string]struct {
		edit func(*SlidingCounterState)
		want bool
	}{
		"good":                         {func(*SlidingCounterState) {}, true},
		"absent":                       {func(s *SlidingCounterState) { *s = SlidingCounterState{} }, true},
		"first window":                 {func(s *SlidingCounterState) { *s = SlidingCounterState{Present: true, LastObserved: 999, Count: 1} }, true},
		"first window with one before": {func(s *SlidingCounterState) { *s = SlidingCounterState{Present: true, Count: 1, PreviousCount: 1} }, false},
		"past":                         {func(s *SlidingCounterState) { *s = SlidingCounterState{Present: true, LastObserved: -1, Count: 1} }, false},
		"future": {func(s *SlidingCounterState) {
			s.LastObserved = MaxNowMillis + 1
			s.Window = s.LastObserved / 1000
			s.Previous = s.Window - 1
		}, false},
		"other window":   {func(s *SlidingCounterState) { s.Window, s.Previous = 6, 5 }, false},
		"gap":            {func(s *SlidingCounterState) { s.Previous = 3 }, false},
		"nothing spent":  {func(s *SlidingCounterState) { s.Count = 0 }, false},
		"overspent":      {func(s *SlidingCounterState) { s.Count = 11 }, false},
		"negative":       {func(s *SlidingCounterState) { s.PreviousCount = -1 }, false},
		"overspent once": {func(s *SlidingCounterState) { s.PreviousCount = 11 }, false},
	} {
		s := good
		c.edit(&s)
		if got := p.Valid(s); got != c.want {
			t.Errorf("%s: Valid(%+v) = %v", name, s, got)
		}
	}
}

func ceilQuotient(a, b *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// inRange holds the product of the factors to MaxExact.
func inRange(t *testing.T, step string, factors ...*big.Int) {
	t.Helper()
	product := big.NewInt(1)
	for _, f := range factors {
		product.Mul(product, f)
	}
	if product.Sign() < 0 || product.Cmp(big.NewInt(MaxExact)) > 0 {
		t.Fatalf("%s is %v", step, product)
	}
}
