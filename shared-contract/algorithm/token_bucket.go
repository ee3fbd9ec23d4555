package algorithm

import "math/big"

// TokenScale is the factor by which stored tokens are scaled. It is one: the division remainder,
// carried beside the tokens, already holds every fraction, and a larger scale would only narrow the
// exact range.
const TokenScale int64 = 1

// TokenBucket holds up to Capacity tokens and gains RefillTokens each RefillPeriodMillis, spread
// evenly, to the exact millisecond: the remainder of each division is carried, so refill does not
// depend on how often it is evaluated. It admits at most Capacity + elapsed*RefillTokens/Period in
// any interval.
type TokenBucket struct {
	Capacity           int64 // 1..MaxExact, within Check's conditions
	RefillTokens       int64 // 1..MaxExact, within Check's conditions
	RefillPeriodMillis int64 // 1..MaxHorizonMillis
	Clock              Clock
}

// TokenBucketState is what a token bucket stores. The zero value means that nothing is stored, which
// decides as a full bucket.
type TokenBucketState struct {
	Present    bool
	LastRefill int64 // effective time of the last write (and so last observed), ms
	Tokens     int64 // scaled tokens, 0..Capacity*TokenScale-1
	Remainder  int64 // numerator over Denominator of the next token's share, 0..Denominator-1
	ExpiresAt  int64 // ms; moved only where it comes below the moment of the full bucket plus grace
}

// Rate is a refill of Numerator tokens each Denominator milliseconds in lowest terms.
type Rate struct {
	Numerator   int64
	Denominator int64
}

// Rate gives the refill in lowest terms.
func (p TokenBucket) Rate() Rate {
	tokens := p.RefillTokens * TokenScale
	g := gcd(tokens, p.RefillPeriodMillis)
	return Rate{Numerator: tokens / g, Denominator: p.RefillPeriodMillis / g}
}

// FillMillis is the time from empty to full, rounded up.
func (p TokenBucket) FillMillis() int64 {
	return p.wait(p.Rate(), p.Capacity*TokenScale, 0)
}

// Check returns a *RangeError where some step could leave its exact range.
func (p TokenBucket) Check() error {
	if err := within("capacity", p.Capacity, 1, MaxExact); err != nil {
		return err
	}
	if err := within("refill tokens", p.RefillTokens, 1, MaxExact); err != nil {
		return err
	}
	if err := within("refill period", p.RefillPeriodMillis, 1, MaxHorizonMillis); err != nil {
		return err
	}
	rate := p.Rate()
	n, d, c := big.NewInt(rate.Numerator), big.NewInt(rate.Denominator), big.NewInt(p.Capacity)
	one := big.NewInt(1)
	step := new(big.Int).Mul(d, new(big.Int).Add(n, one))
	if err := bigWithin("D*(N+1), with N/D the refill in tokens per ms,", step, MaxExact); err != nil {
		return err
	}
	step = new(big.Int).Add(new(big.Int).Add(c, n), one)
	if err := bigWithin("capacity + N + 1, with N/D the refill in tokens per ms,", step, MaxExact); err != nil {
		return err
	}
	fill, rest := new(big.Int).QuoRem(new(big.Int).Mul(c, d), n, new(big.Int))
	if rest.Sign() > 0 {
		fill.Add(fill, one)
	}
	if err := bigWithin("fill time ceil(capacity*D/N)", fill, MaxHorizonMillis); err != nil {
		return err
	}
	return p.Clock.Check()
}

// Valid reports whether a stored state is one that this algorithm writes.
func (p TokenBucket) Valid(s TokenBucketState) bool { return p.ValidAt(p.Rate(), s) }

// ValidAt is Valid for a caller that keeps Rate beside the parameters.
func (p TokenBucket) ValidAt(rate Rate, s TokenBucketState) bool {
	return !s.Present || s.LastRefill >= 0 && s.LastRefill <= MaxNowMillis &&
		s.Tokens >= 0 && s.Tokens < p.Capacity*TokenScale &&
		s.Remainder >= 0 && s.Remainder < rate.Denominator &&
		s.ExpiresAt >= 0 && s.ExpiresAt <= MaxExact
}

// refill gives tokens and remainder after elapsed ms.
func (p *TokenBucket) refill(rate Rate, tokens, remainder, elapsed int64) (int64, int64) {
	full := p.Capacity * TokenScale
	if elapsed == 0 && tokens < full && remainder < rate.Denominator {
		return tokens, remainder // what follows comes to this, with three divisions
	}
	q, r := elapsed/rate.Denominator, elapsed%rate.Denominator
	if q > full/rate.Numerator {
		return full, 0
	}
	x := r*rate.Numerator + remainder
	gain := q*rate.Numerator + x/rate.Denominator
	if gain >= full-tokens {
		return full, 0
	}
	return tokens + gain, x % rate.Denominator
}

// wait is the time in ms until need more scaled tokens are there, rounded up.
func (p *TokenBucket) wait(rate Rate, need, remainder int64) int64 {
	if rate.Numerator == 1 {
		return need*rate.Denominator - remainder // what follows comes to this, with a division
	}
	q, r := need/rate.Numerator, need%rate.Numerator
	if r*rate.Denominator >= remainder {
		return q*rate.Denominator + ceilDiv(r*rate.Denominator-remainder, rate.Numerator)
	}
	return q*rate.Denominator - (remainder-r*rate.Denominator)/rate.Numerator
}

// Decide evaluates cost (1..Capacity) at serverNow. The state returned is to be stored where the
// decision is StatusAllowed and equals the given one otherwise.
func (p TokenBucket) Decide(s TokenBucketState, serverNow, cost int64) (Decision, TokenBucketState) {
	return p.DecideAt(p.Rate(), s, serverNow, cost)
}

// DecideAt is Decide for a caller that keeps Rate beside the parameters.
func (p TokenBucket) DecideAt(rate Rate, s TokenBucketState, serverNow, cost int64) (Decision, TokenBucketState) {
	var d Decision
	p.Advance(rate, &s, serverNow, cost, &d)
	return d, s
}

// Advance is DecideAt in place: the decision is put into d, and an admission changes the state. Nothing
// else does.
func (p *TokenBucket) Advance(rate Rate, s *TokenBucketState, serverNow, cost int64, d *Decision) {
	now, tokens, remainder := serverNow, p.Capacity*TokenScale, int64(0)
	if s.Present {
		if now < s.LastRefill {
			if !p.Clock.tolerates(now, s.LastRefill) {
				*d = p.Clock.unsafe(now, s.LastRefill, p.Capacity)
				return
			}
			now = s.LastRefill
		}
		tokens, remainder = p.refill(rate, s.Tokens, s.Remainder, now-s.LastRefill)
	}
	d.begin(serverNow, now, p.Capacity, tokens/TokenScale)
	spend := cost * TokenScale
	if spend > tokens {
		d.RetryAfterMillis = now + p.wait(rate, spend-tokens, remainder) - serverNow
		d.ResetAtMillis = now + p.wait(rate, p.Capacity*TokenScale-tokens, remainder)
		return
	}
	tokens -= spend
	d.Status = StatusAllowed
	d.Remaining = tokens / TokenScale
	d.ResetAtMillis = now + p.wait(rate, p.Capacity*TokenScale-tokens, remainder)
	if need := d.ResetAtMillis + p.Clock.GraceMillis; !s.Present || s.ExpiresAt < need {
		s.ExpiresAt = need + p.wait(rate, p.Capacity*TokenScale, 0)
	}
	s.Present, s.LastRefill, s.Tokens, s.Remainder = true, now, tokens, remainder
}
