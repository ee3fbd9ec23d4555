package algorithm

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestGCRACheck(t *testing.T) {
	t.Parallel()
	const (
		stepProduct = "L*(P+1), with L/P the limit per ms,"
		stepSpan    = "span of the burst ceil(burst*P/L)"
		// L*(P+1) is exactly 2^53-1, in lowest terms.
		edgeLimit  = 6361 * 69431
		edgePeriod = 20394401 - 1
	)
	for _, c := range []struct {
		name        string
		p           GCRA
		step, value string
	}{
		{"least", GCRA{Limit: 1, PeriodMillis: 1, Burst: 1}, "", ""},
		{"limit 0", GCRA{PeriodMillis: 1, Burst: 1}, "limit", "0"}, // casebook 11
		{"limit -1", GCRA{Limit: -1, PeriodMillis: 1, Burst: 1}, "limit", "-1"},
		{"period 0", GCRA{Limit: 1, Burst: 1}, "period", "0"},
		{"burst 0", GCRA{Limit: 1, PeriodMillis: 1}, "burst", "0"},
		{"limit above", GCRA{Limit: MaxExact + 1, PeriodMillis: 1, Burst: 1}, "limit", "9007199254740992"},
		{"period above", GCRA{Limit: 1, PeriodMillis: MaxHorizonMillis + 1, Burst: 1}, "period", "3155760000001"},
		{"burst above", GCRA{Limit: MaxExact, PeriodMillis: 1, Burst: MaxExact + 1}, "burst", "9007199254740992"},
		// Casebook 17, at and one above each bound.
		{"product at the edge", GCRA{Limit: edgeLimit, PeriodMillis: edgePeriod, Burst: 1000}, "", ""},
		{"product above", GCRA{Limit: edgeLimit, PeriodMillis: edgePeriod + 3, Burst: 1000}, stepProduct, "9007200579692764"},
		{"span at the edge", GCRA{Limit: 1, PeriodMillis: 1, Burst: MaxHorizonMillis}, "", ""},
		{"span above", GCRA{Limit: 1, PeriodMillis: 1, Burst: MaxHorizonMillis + 1}, stepSpan, "3155760000001"},
		{"span above by a part", GCRA{Limit: 2, PeriodMillis: 1, Burst: 2*MaxHorizonMillis + 1}, stepSpan, "3155760000001"},
		{"greatest burst", GCRA{Limit: 1 << 52, PeriodMillis: 1 << 40, Burst: MaxExact}, "", ""},
		// What is out of range as given is in range in lowest terms.
		{"lowest terms", GCRA{Limit: 1 << 40, PeriodMillis: 1 << 40, Burst: 1000}, "", ""},
		{"no lowest terms", GCRA{Limit: 1<<40 - 1, PeriodMillis: 1 << 40, Burst: 1000}, stepProduct, "1208925819614629174706175"},
		{"clock", GCRA{Limit: 1, PeriodMillis: 1, Burst: 1, Clock: Clock{MaxRegressionMillis: 1}}, "cleanup grace", "0"},
	} {
		wantRange(t, c.name, c.p.Check(), c.step, c.value)
	}
}

// spaced are shapes to measure exact arithmetic on: small, awkward and at the ends of the range.
func spaced(t *testing.T, rng *rand.Rand) []GCRA {
	t.Helper()
	all := []GCRA{
		{Limit: 1, PeriodMillis: 1, Burst: 1},
		{Limit: 1, PeriodMillis: MaxHorizonMillis, Burst: 1},
		{Limit: 1, PeriodMillis: 3000, Burst: 5},
		{Limit: 7, PeriodMillis: 1009, Burst: 10},
		{Limit: 6361 * 69431, PeriodMillis: 20394401 - 1, Burst: 67_000_000_000_000},
		{Limit: 1 << 52, PeriodMillis: 1 << 40, Burst: MaxExact},
		{Limit: (1<<53 - 1) / 2, PeriodMillis: 1, Burst: MaxExact},
		{Limit: 1, PeriodMillis: 1, Burst: MaxHorizonMillis},
	}
	for len(all) < 200 {
		p := GCRA{
			Limit: 1 + rng.Int64N(1<<rng.IntN(53)), Burst: 1 + rng.Int64N(1<<rng.IntN(53)),
			PeriodMillis: 1 + rng.Int64N(min(1<<rng.IntN(42), MaxHorizonMillis)),
		}
		if p.Check() == nil {
			all = append(all, p)
		}
	}
	for _, p := range all {
		if err := p.Check(); err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
	}
	return all
}

// exactly gives a span in parts of 1/L ms.
func exactly(rate Rate, a Span) *big.Int {
	sum := new(big.Int).Mul(big.NewInt(a.Millis), big.NewInt(rate.Numerator))
	return sum.Add(sum, big.NewInt(a.Fraction))
}

// A span of units is units*P/L of exact rationals, the units of a span are its inverse, sums and
// differences are exact, and no intermediate leaves the range.
func TestGCRASpans(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	for _, p := range spaced(t, rng) {
		rate := p.Rate()
		l, period := big.NewInt(rate.Numerator), big.NewInt(rate.Denominator)
		if new(big.Int).Mul(l, big.NewInt(p.PeriodMillis)).Cmp(new(big.Int).Mul(period, big.NewInt(p.Limit))) != 0 {
			t.Fatalf("%+v: rate %+v is another", p, rate)
		}
		units := []int64{1, p.Burst, max(p.Burst-1, 1)}
		for range 60 {
			units = append(units, 1+rng.Int64N(p.Burst))
		}
		for _, k := range units {
			a := rate.Span(k)
			if want := new(big.Int).Mul(big.NewInt(k), period); exactly(rate, a).Cmp(want) != 0 || a.Fraction < 0 || a.Fraction >= rate.Numerator {
				t.Fatalf("%+v: %d units take %+v", p, k, a)
			}
			inRange(t, "(k mod L)*P", big.NewInt(k%rate.Numerator), period)
			if got := a.units(rate); got != k {
				t.Fatalf("%+v: %+v holds %d units, want %d", p, a, got, k)
			}
			// A span in which one part is missing holds one unit less.
			if got := a.minus(rate, Span{Fraction: min(1, rate.Numerator-1), Millis: max(0, 2-rate.Numerator)}).units(rate); got != k-1 {
				t.Fatalf("%+v: less than %+v holds %d units, want %d", p, a, got, k-1)
			}
			rest := new(big.Int).Mul(big.NewInt(a.Millis%rate.Denominator), l)
			inRange(t, "r*L + f", rest.Add(rest, big.NewInt(a.Fraction)))
			inRange(t, "q*L", big.NewInt(a.Millis/rate.Denominator), l)

			b := Span{Millis: rng.Int64N(MaxNowMillis), Fraction: rng.Int64N(rate.Numerator)}
			sum := b.plus(rate, a)
			if want := new(big.Int).Add(exactly(rate, a), exactly(rate, b)); exactly(rate, sum).Cmp(want) != 0 || sum.Fraction >= rate.Numerator {
				t.Fatalf("%+v: %+v + %+v = %+v", p, a, b, sum)
			}
			inRange(t, "f + f", big.NewInt(a.Fraction+b.Fraction))
			if back := sum.minus(rate, a); back != b {
				t.Fatalf("%+v: %+v - %+v = %+v, want %+v", p, sum, a, back, b)
			}
			if !sum.after(b) || b.after(sum) || b.after(b) {
				t.Fatalf("%+v: %+v and %+v are out of order", p, sum, b)
			}
		}
		if got, want := p.FillMillis(), ceilQuotient(new(big.Int).Mul(big.NewInt(p.Burst), period), l); want.Cmp(big.NewInt(got)) != 0 {
			t.Errorf("%+v: fills in %d, want %v", p, got, want)
		}
	}
}

// TestGCRAIsATokenBucket: of the same numbers the two give the same seven fields and the same expiry,
// over random sequences with steps back, tolerated and not, and at the ends of the range.
func TestGCRAIsATokenBucket(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 8))
	statuses := map[Status]int{}
	shapes := spaced(t, rng)
	for _, small := range [][3]int64{{1, 1, 3}, {1, 3000, 10}, {7, 11, 100}, {3, 1000, 5}, {50, 1000, 100}, {1000, 86_400_000, 1000}} {
		shapes = append(shapes, GCRA{Limit: small[0], PeriodMillis: small[1], Burst: small[2]})
	}
	compared := 0
	for _, p := range shapes {
		p.Clock = Clock{GraceMillis: rng.Int64N(5000) + 100, MaxRegressionMillis: rng.Int64N(100)}
		b := TokenBucket{Capacity: p.Burst, RefillTokens: p.Limit, RefillPeriodMillis: p.PeriodMillis, Clock: p.Clock}
		if b.Check() != nil {
			continue // The bucket's own range is narrower at some ends.
		}
		compared++
		var gcra GCRAState
		var bucket TokenBucketState
		now, fill := int64(1_700_000_000_000)+rng.Int64N(1_000_000), p.FillMillis()
		for step := range 2000 {
			switch rng.IntN(10) {
			case 0:
				now -= rng.Int64N(2*p.Clock.MaxRegressionMillis + 2)
			case 1:
				now += rng.Int64N(3 * fill)
			case 2:
				now += fill - 1 + rng.Int64N(3)
			case 3:
			default:
				now += rng.Int64N(fill/8 + 2)
			}
			if now > MaxNowMillis || now < 0 {
				now = 1_700_000_000_000
				gcra, bucket = GCRAState{}, TokenBucketState{}
			}
			cost := 1 + rng.Int64N(p.Burst)
			switch rng.IntN(3) {
			case 0:
				cost = 1 + rng.Int64N(min(p.Burst, 3))
			case 1:
				cost = p.Burst - rng.Int64N(min(p.Burst, 3))
			}
			var got, want Decision
			got, gcra = p.Decide(gcra, now, cost)
			want, bucket = b.Decide(bucket, now, cost)
			if got != want || gcra.ExpiresAt != bucket.ExpiresAt || gcra.LastObserved != bucket.LastRefill || !p.Valid(gcra) {
				t.Fatalf("%+v, step %d at %d, cost %d:\n  gcra %+v %+v\nbucket %+v %+v", p, step, now, cost, got, gcra, want, bucket)
			}
			statuses[got.Status]++
		}
	}
	if compared < 150 || statuses[StatusAllowed] < 50_000 || statuses[StatusDenied] < 50_000 || statuses[StatusClockUnsafe] < 1000 {
		t.Errorf("%d shapes gave %v: too few to compare", compared, statuses)
	}
}

// The latest moments that a decision can name are in range.
func TestGCRALatestMoments(t *testing.T) {
	t.Parallel()
	p := GCRA{
		Limit: 1, PeriodMillis: 1, Burst: MaxHorizonMillis,
		Clock: Clock{GraceMillis: MaxHorizonMillis, MaxRegressionMillis: MaxRegressionMillis},
	}
	d, s := p.Decide(GCRAState{}, MaxNowMillis, p.Burst)
	if want := MaxNowMillis + MaxHorizonMillis; d.Status != StatusAllowed || d.ResetAtMillis != want {
		t.Errorf("%+v, want reset at %d", d, want)
	}
	if want := MaxNowMillis + 3*MaxHorizonMillis; s.ExpiresAt != want || want > MaxExact {
		t.Errorf("expires at %d, want %d", s.ExpiresAt, want)
	}
}

func TestGCRADecide(t *testing.T) {
	t.Parallel()
	// 3 units a second: one each 333 1/3 ms. Fractions are thirds.
	p := GCRA{Limit: 3, PeriodMillis: 1000, Burst: 5, Clock: Clock{GraceMillis: 500, MaxRegressionMillis: 100}}
	first := GCRAState{true, Span{11_333, 1}, 10_000, 11_334 + 500 + 1667}
	var s GCRAState
	for i, c := range []struct {
		now, cost int64
		want      Decision
		after     GCRAState
	}{
		{10_000, 4, Decision{StatusAllowed, 10_000, 10_000, 5, 1, 0, 11_334}, first},
		{10_000, 2, Decision{StatusDenied, 10_000, 10_000, 5, 1, 334, 11_334}, first},
		{9_950, 2, Decision{StatusDenied, 9_950, 10_000, 5, 1, 384, 11_334}, first},
		{9_899, 2, Decision{StatusClockUnsafe, 9_899, 9_899, 5, 0, 1, 9_900}, first},
		{10_333, 2, Decision{StatusDenied, 10_333, 10_333, 5, 1, 1, 11_334}, first},
		{10_334, 2, Decision{StatusAllowed, 10_334, 10_334, 5, 0, 0, 12_000}, GCRAState{true, Span{12_000, 0}, 10_334, 13_501}},
		{10_667, 1, Decision{StatusAllowed, 10_667, 10_667, 5, 0, 0, 12_334}, GCRAState{true, Span{12_333, 1}, 10_667, 13_501}},
		// The full limit and the grace come to lie after the expiry, which moves.
		{11_667, 3, Decision{StatusAllowed, 11_667, 11_667, 5, 0, 0, 13_334}, GCRAState{true, Span{13_333, 1}, 11_667, 13_334 + 500 + 1667}},
		{99_000, 5, Decision{StatusAllowed, 99_000, 99_000, 5, 0, 0, 100_667}, GCRAState{true, Span{100_666, 2}, 99_000, 100_667 + 500 + 1667}},
	} {
		d, next := p.Decide(s, c.now, c.cost)
		if d != c.want || next != c.after {
			t.Errorf("step %d:\n got %+v %+v\nwant %+v %+v", i, d, next, c.want, c.after)
		}
		s = next
	}
}

func TestGCRAValid(t *testing.T) {
	t.Parallel()
	p := GCRA{Limit: 3, PeriodMillis: 1000, Burst: 5} // a burst of 1666 2/3 ms
	good := GCRAState{Present: true, TAT: Span{10_333, 1}, LastObserved: 10_000, ExpiresAt: 12_000}
	for name, c := range map[string]struct {
		edit func(*GCRAState)
		want bool
	}{
		"good":                 {func(*GCRAState) {}, true},
		"absent":               {func(s *GCRAState) { *s = GCRAState{} }, true},
		"as soon as it can be": {func(s *GCRAState) { s.TAT = Span{10_000, 1} }, true},
		"nothing spent":        {func(s *GCRAState) { s.TAT = Span{10_000, 0} }, false},
		"before the last":      {func(s *GCRAState) { s.TAT = Span{9_999, 2} }, false},
		"whole burst":          {func(s *GCRAState) { s.TAT = Span{11_666, 2} }, true},
		"above the burst":      {func(s *GCRAState) { s.TAT = Span{11_667, 0} }, false},
		"fraction above":       {func(s *GCRAState) { s.TAT.Fraction = 3 }, false},
		"negative fraction":    {func(s *GCRAState) { s.TAT.Fraction = -1 }, false},
		"past":                 {func(s *GCRAState) { s.LastObserved, s.TAT = -1, Span{0, 0} }, false},
		"latest":               {func(s *GCRAState) { s.LastObserved, s.TAT = MaxNowMillis, Span{MaxNowMillis, 1} }, true},
		"future":               {func(s *GCRAState) { s.LastObserved, s.TAT = MaxNowMillis+1, Span{MaxNowMillis + 1, 1} }, false},
		"negative expiry":      {func(s *GCRAState) { s.ExpiresAt = -1 }, false},
		"expiry above":         {func(s *GCRAState) { s.ExpiresAt = MaxExact + 1 }, false},
	} {
		s := good
		c.edit(&s)
		if got := p.Valid(s); got != c.want {
			t.Errorf("%s: Valid(%+v) = %v", name, s, got)
		}
	}
}
