package algorithm

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// The factors of 2^53-1 = 6361 * 69431 * 20394401 make a bucket whose D*(N+1) is exactly the bound.
const (
	edgeDenominator = 6361 * 69431
	edgeNumerator   = 20394401 - 1
)

func TestTokenBucketCheck(t *testing.T) {
	t.Parallel()
	const (
		stepRemainder = "D*(N+1), with N/D the refill in tokens per ms,"
		stepSum       = "capacity + N + 1, with N/D the refill in tokens per ms,"
		stepFill      = "fill time ceil(capacity*D/N)"
	)
	for _, c := range []struct {
		name        string
		p           TokenBucket
		step, value string
	}{
		{"least", TokenBucket{Capacity: 1, RefillTokens: 1, RefillPeriodMillis: 1}, "", ""},
		{"capacity 0", TokenBucket{RefillTokens: 1, RefillPeriodMillis: 1}, "capacity", "0"}, // casebook 11
		{"refill 0", TokenBucket{Capacity: 1, RefillPeriodMillis: 1}, "refill tokens", "0"},
		{"refill -1", TokenBucket{Capacity: 1, RefillTokens: -1, RefillPeriodMillis: 1}, "refill tokens", "-1"},
		{"period 0", TokenBucket{Capacity: 1, RefillTokens: 1}, "refill period", "0"},
		{"period above", TokenBucket{Capacity: 1, RefillTokens: 1, RefillPeriodMillis: MaxHorizonMillis + 1}, "refill period", "3155760000001"},
		{"capacity above", TokenBucket{Capacity: MaxExact + 1, RefillTokens: 1, RefillPeriodMillis: 1}, "capacity", "9007199254740992"},
		// Casebook 17, at and one above each of the three bounds.
		{"remainder at the edge", TokenBucket{Capacity: 1000, RefillTokens: edgeNumerator, RefillPeriodMillis: edgeDenominator}, "", ""},
		{"remainder above", TokenBucket{Capacity: 1000, RefillTokens: edgeNumerator + 1, RefillPeriodMillis: edgeDenominator + 1}, stepRemainder, "9007199716785984"},
		{"sum at the edge", TokenBucket{Capacity: MaxExact - 1 - 1<<40, RefillTokens: 1 << 40, RefillPeriodMillis: 1}, "", ""},
		{"sum above", TokenBucket{Capacity: MaxExact - 1<<40, RefillTokens: 1 << 40, RefillPeriodMillis: 1}, stepSum, "9007199254740992"},
		{"fill time at the edge", TokenBucket{Capacity: MaxHorizonMillis, RefillTokens: 1, RefillPeriodMillis: 1}, "", ""},
		{"fill time above", TokenBucket{Capacity: MaxHorizonMillis + 1, RefillTokens: 1, RefillPeriodMillis: 1}, stepFill, "3155760000001"},
		{"fill time above by a part", TokenBucket{Capacity: 2*MaxHorizonMillis + 1, RefillTokens: 2, RefillPeriodMillis: 1}, stepFill, "3155760000001"},
		// What is out of range as given is in range in lowest terms.
		{"lowest terms", TokenBucket{Capacity: 1000, RefillTokens: 1 << 40, RefillPeriodMillis: 1 << 40}, "", ""},
		{"no lowest terms", TokenBucket{Capacity: 1000, RefillTokens: 1<<40 - 1, RefillPeriodMillis: 1 << 40}, stepRemainder, "1208925819614629174706176"},
		{"clock", TokenBucket{Capacity: 1, RefillTokens: 1, RefillPeriodMillis: 1, Clock: Clock{MaxRegressionMillis: 1}}, "cleanup grace", "0"},
	} {
		wantRange(t, c.name, c.p.Check(), c.step, c.value)
	}
}

// buckets are shapes to measure exact arithmetic on: small, awkward and at the ends of the range.
func buckets(t *testing.T, rng *rand.Rand) []TokenBucket {
	t.Helper()
	all := []TokenBucket{
		{Capacity: 1, RefillTokens: 1, RefillPeriodMillis: 1},
		{Capacity: 1, RefillTokens: 1, RefillPeriodMillis: MaxHorizonMillis},
		{Capacity: 5, RefillTokens: 1, RefillPeriodMillis: 3000},
		{Capacity: 10, RefillTokens: 7, RefillPeriodMillis: 1009},
		{Capacity: 100_000_000_000, RefillTokens: edgeNumerator, RefillPeriodMillis: edgeDenominator},
		{Capacity: 1, RefillTokens: edgeNumerator, RefillPeriodMillis: edgeDenominator},
		{Capacity: MaxExact - 1 - 1<<40, RefillTokens: 1 << 40, RefillPeriodMillis: 1},
		{Capacity: 1, RefillTokens: MaxExact - 2, RefillPeriodMillis: 1},
		{Capacity: MaxHorizonMillis, RefillTokens: 1, RefillPeriodMillis: 1},
	}
	for len(all) < 200 {
		p := TokenBucket{
			Capacity: 1 + rng.Int64N(1<<rng.IntN(53)), RefillTokens: 1 + rng.Int64N(1<<rng.IntN(53)),
			RefillPeriodMillis: 1 + rng.Int64N(min(1<<rng.IntN(42), MaxHorizonMillis)),
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

// Refill is min(capacity, T + (R + elapsed*N)/D) of exact integers, its fraction carried to the last
// unit, and no intermediate leaves the range.
func TestTokenBucketRefill(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 5))
	for _, p := range buckets(t, rng) {
		rate := p.Rate()
		n, d := big.NewInt(rate.Numerator), big.NewInt(rate.Denominator)
		if new(big.Int).Mul(n, big.NewInt(p.RefillPeriodMillis)).Cmp(new(big.Int).Mul(d, big.NewInt(p.RefillTokens))) != 0 {
			t.Fatalf("%+v: rate %+v is another", p, rate)
		}
		elapsed := []int64{0, 1, 2, rate.Denominator - 1, rate.Denominator, p.FillMillis() - 1, p.FillMillis(), MaxNowMillis}
		for range 60 {
			elapsed = append(elapsed, rng.Int64N(1<<rng.IntN(43)))
		}
		for _, e := range elapsed {
			tokens, remainder := rng.Int64N(p.Capacity), rng.Int64N(rate.Denominator)
			share := new(big.Int).Mul(big.NewInt(e), n)
			share.Add(share, big.NewInt(remainder))
			gain, rest := share.QuoRem(share, d, new(big.Int))
			wantTokens := new(big.Int).Add(big.NewInt(tokens), gain)
			if wantTokens.Cmp(big.NewInt(p.Capacity)) >= 0 {
				wantTokens.SetInt64(p.Capacity)
				rest.SetInt64(0)
			}
			gotTokens, gotRest := p.refill(rate, tokens, remainder, e)
			if wantTokens.Cmp(big.NewInt(gotTokens)) != 0 || rest.Cmp(big.NewInt(gotRest)) != 0 {
				t.Fatalf("%+v: refill(%d, %d, %d) = %d, %d, want %v, %v", p, tokens, remainder, e, gotTokens, gotRest, wantTokens, rest)
			}
			if q := e / rate.Denominator; q <= p.Capacity/rate.Numerator {
				x := new(big.Int).Add(new(big.Int).Mul(big.NewInt(e%rate.Denominator), n), big.NewInt(remainder))
				inRange(t, "r*N + R", x)
				inRange(t, "q*N + x/D", new(big.Int).Add(new(big.Int).Mul(big.NewInt(q), n), new(big.Int).Quo(x, d)))
			}
		}
	}
}

// wait is ceil((need*D - R)/N), the first moment at which the refill gives need tokens.
func TestTokenBucketWait(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(6, 6))
	for _, p := range buckets(t, rng) {
		rate := p.Rate()
		n, d := big.NewInt(rate.Numerator), big.NewInt(rate.Denominator)
		needs := []int64{1, p.Capacity, max(p.Capacity-1, 1)}
		for range 60 {
			needs = append(needs, 1+rng.Int64N(p.Capacity))
		}
		for _, need := range needs {
			for _, remainder := range []int64{0, rate.Denominator - 1, rng.Int64N(rate.Denominator)} {
				short := new(big.Int).Mul(big.NewInt(need), d)
				want := ceilQuotient(short.Sub(short, big.NewInt(remainder)), n)
				if got := p.wait(rate, need, remainder); want.Cmp(big.NewInt(got)) != 0 {
					t.Fatalf("%+v: wait(%d, %d) = %d, want %v", p, need, remainder, got, want)
				}
				inRange(t, "r*D", big.NewInt(need%rate.Numerator), d)
				inRange(t, "q*D", big.NewInt(need/rate.Numerator), d)
			}
		}
		if got, want := p.FillMillis(), ceilQuotient(new(big.Int).Mul(big.NewInt(p.Capacity), d), n); want.Cmp(big.NewInt(got)) != 0 {
			t.Errorf("%+v: fills in %d, want %v", p, got, want)
		}
	}
}

// The latest moments that a decision can name are in range.
func TestTokenBucketLatestMoments(t *testing.T) {
	t.Parallel()
	p := TokenBucket{
		Capacity: MaxHorizonMillis, RefillTokens: 1, RefillPeriodMillis: 1,
		Clock: Clock{GraceMillis: MaxHorizonMillis, MaxRegressionMillis: MaxRegressionMillis},
	}
	d, s := p.Decide(TokenBucketState{}, MaxNowMillis, p.Capacity)
	if want := MaxNowMillis + MaxHorizonMillis; d.Status != StatusAllowed || d.ResetAtMillis != want {
		t.Errorf("%+v, want reset at %d", d, want)
	}
	if want := MaxNowMillis + 3*MaxHorizonMillis; s.ExpiresAt != want || want > MaxExact {
		t.Errorf("expires at %d, want %d", s.ExpiresAt, want)
	}
}

func TestTokenBucketDecide(t *testing.T) {
	t.Parallel()
	// 3 tokens a second: one each 333 1/3 ms.
	p := TokenBucket{Capacity: 5, RefillTokens: 3, RefillPeriodMillis: 1000, Clock: Clock{GraceMillis: 500, MaxRegressionMillis: 100}}
	var s TokenBucketState
	for i, c := range []struct {
		now, cost int64
		want      Decision
		after     TokenBucketState
	}{
		{10_000, 4, Decision{StatusAllowed, 10_000, 10_000, 5, 1, 0, 11_334}, TokenBucketState{true, 10_000, 1, 0, 11_334 + 500 + 1667}},
		{10_000, 2, Decision{StatusDenied, 10_000, 10_000, 5, 1, 334, 11_334}, TokenBucketState{true, 10_000, 1, 0, 13_501}},
		{9_950, 2, Decision{StatusDenied, 9_950, 10_000, 5, 1, 384, 11_334}, TokenBucketState{true, 10_000, 1, 0, 13_501}},
		{9_899, 2, Decision{StatusClockUnsafe, 9_899, 9_899, 5, 0, 1, 9_900}, TokenBucketState{true, 10_000, 1, 0, 13_501}},
		{10_333, 2, Decision{StatusDenied, 10_333, 10_333, 5, 1, 1, 11_334}, TokenBucketState{true, 10_000, 1, 0, 13_501}},
		// 2/1000 of a token are carried.
		{10_334, 2, Decision{StatusAllowed, 10_334, 10_334, 5, 0, 0, 12_000}, TokenBucketState{true, 10_334, 0, 2, 13_501}},
		{10_667, 1, Decision{StatusAllowed, 10_667, 10_667, 5, 0, 0, 12_334}, TokenBucketState{true, 10_667, 0, 1, 13_501}},
		// The full bucket and the grace come to lie after the expiry, which moves.
		{11_667, 3, Decision{StatusAllowed, 11_667, 11_667, 5, 0, 0, 13_334}, TokenBucketState{true, 11_667, 0, 1, 13_334 + 500 + 1667}},
		{99_000, 5, Decision{StatusAllowed, 99_000, 99_000, 5, 0, 0, 100_667}, TokenBucketState{true, 99_000, 0, 0, 100_667 + 500 + 1667}},
	} {
		d, next := p.Decide(s, c.now, c.cost)
		if d != c.want || next != c.after {
			t.Errorf("step %d:\n got %+v %+v\nwant %+v %+v", i, d, next, c.want, c.after)
		}
		s = next
	}
}

// Casebook 16: a third of a token each second.
func TestTokenBucketCarriesTheRemainder(t *testing.T) {
	t.Parallel()
	p := TokenBucket{Capacity: 2000, RefillTokens: 1, RefillPeriodMillis: 3000}
	rate := p.Rate()
	tokens, remainder := int64(0), int64(0)
	for range 1000 {
		tokens, remainder = p.refill(rate, tokens, remainder, 1000)
	}
	once, carried := p.refill(rate, 0, 0, 1_000_000)
	if tokens != once || remainder != carried || tokens != 333 || remainder != 1000 {
		t.Errorf("each second %d and %d/3000, at once %d and %d/3000, want 333 and 1000/3000", tokens, remainder, once, carried)
	}
}

func TestTokenBucketValid(t *testing.T) {
	t.Parallel()
	p := TokenBucket{Capacity: 5, RefillTokens: 3, RefillPeriodMillis: 1000}
	good := TokenBucketState{Present: true, LastRefill: 5000, Tokens: 2, Remainder: 999, ExpiresAt: 9000}
	for name, c := range map[string]struct {
		edit func(*TokenBucketState)
		want bool
	}{
		"good":           {func(*TokenBucketState) {}, true},
		"absent":         {func(s *TokenBucketState) { *s = TokenBucketState{} }, true},
		"empty":          {func(s *TokenBucketState) { s.Tokens, s.Remainder = 0, 0 }, true},
		"latest":         {func(s *TokenBucketState) { s.LastRefill, s.ExpiresAt = MaxNowMillis, MaxExact }, true},
		"past":           {func(s *TokenBucketState) { s.LastRefill = -1 }, false},
		"future":         {func(s *TokenBucketState) { s.LastRefill = MaxNowMillis + 1 }, false},
		"full":           {func(s *TokenBucketState) { s.Tokens = 5 }, false},
		"in debt":        {func(s *TokenBucketState) { s.Tokens = -1 }, false},
		"remainder":      {func(s *TokenBucketState) { s.Remainder = 1000 }, false},
		"negative share": {func(s *TokenBucketState) { s.Remainder = -1 }, false},
		"expiry":         {func(s *TokenBucketState) { s.ExpiresAt = MaxExact + 1 }, false},
		"early expiry":   {func(s *TokenBucketState) { s.ExpiresAt = -1 }, false},
	} {
		s := good
		c.edit(&s)
		if got := p.Valid(s); got != c.want {
			t.Errorf("%s: Valid(%+v) = %v", name, s, got)
		}
	}
}
