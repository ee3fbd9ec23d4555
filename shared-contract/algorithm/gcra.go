package algorithm

import "math/big"

// GCRA is the generic cell rate algorithm in its virtual scheduling form: Limit units each
// PeriodMillis, evenly spaced, of which up to Burst may come at once. It keeps one moment, the
// theoretical arrival time (TAT) at which all that was admitted would have come at the even rate.
//
// It decides as TokenBucket with the capacity Burst, the refill Limit and the period PeriodMillis
// does, in every field.
type GCRA struct {
	Limit        int64 // 1..MaxExact, within Check's conditions
	PeriodMillis int64 // 1..MaxHorizonMillis
	Burst        int64 // 1..MaxExact, within Check's conditions
	Clock        Clock
}

// Span is a moment or a length of time of Millis + Fraction/L milliseconds, where L is the numerator
// of the rate in lowest terms and Fraction is in 0..L-1.
type Span struct {
	Millis   int64
	Fraction int64
}

// GCRAState is what a GCRA stores. The zero value means that nothing is stored.
type GCRAState struct {
	Present      bool
	TAT          Span  // after LastObserved, and at most the burst's span after it
	LastObserved int64 // effective time of the last write, ms
	ExpiresAt    int64 // ms; moved only where it comes below the moment of the full limit plus grace
}

// Rate gives the limit over the period in lowest terms.
func (p GCRA) Rate() Rate {
	g := gcd(p.Limit, p.PeriodMillis)
	return Rate{Numerator: p.Limit / g, Denominator: p.PeriodMillis / g}
}

// Tolerance is the span that Burst units take at the even rate.
func (p GCRA) Tolerance() Span { return p.Rate().Span(p.Burst) }

// FillMillis is the time from nothing left to the full burst, rounded up.
func (p GCRA) FillMillis() int64 { return p.Tolerance().ceil() }

// Check returns a *RangeError where some step could leave its exact range.
func (p GCRA) Check() error {
	if err := within("limit", p.Limit, 1, MaxExact); err != nil {
		return err
	}
	if err := within("period", p.PeriodMillis, 1, MaxHorizonMillis); err != nil {
		return err
	}
	if err := within("burst", p.Burst, 1, MaxExact); err != nil {
		return err
	}
	rate := p.Rate()
	l, period, burst := big.NewInt(rate.Numerator), big.NewInt(rate.Denominator), big.NewInt(p.Burst)
	one := big.NewInt(1)
	step := new(big.Int).Mul(l, new(big.Int).Add(period, one))
	if err := bigWithin("L*(P+1), with L/P the limit per ms,", step, MaxExact); err != nil {
		return err
	}
	span, rest := new(big.Int).QuoRem(new(big.Int).Mul(burst, period), l, new(big.Int))
	if rest.Sign() > 0 {
		span.Add(span, one)
	}
	if err := bigWithin("span of the burst ceil(burst*P/L)", span, MaxHorizonMillis); err != nil {
		return err
	}
	return p.Clock.Check()
}

// Valid reports whether a stored state is one that this algorithm writes.
func (p GCRA) Valid(s GCRAState) bool { return p.ValidAt(p.Rate(), p.Tolerance(), s) }

// ValidAt is Valid for a caller that keeps Rate and Tolerance beside the parameters.
func (p GCRA) ValidAt(rate Rate, tolerance Span, s GCRAState) bool {
	last := Span{Millis: s.LastObserved}
	return !s.Present || s.LastObserved >= 0 && s.LastObserved <= MaxNowMillis &&
		s.ExpiresAt >= 0 && s.ExpiresAt <= MaxExact &&
		s.TAT.Fraction >= 0 && s.TAT.Fraction < rate.Numerator &&
		s.TAT.after(last) && !s.TAT.after(last.plus(rate, tolerance))
}

// Span is the time that units take at the rate, its fraction over the numerator.
func (r Rate) Span(units int64) Span {
	whole := units / r.Numerator
	share := units % r.Numerator * r.Denominator
	return Span{Millis: whole*r.Denominator + share/r.Numerator, Fraction: share % r.Numerator}
}

// units is how many of them fit into a span, rounded down.
func (a Span) units(rate Rate) int64 {
	whole, rest := a.Millis/rate.Denominator, a.Millis%rate.Denominator
	return whole*rate.Numerator + (rest*rate.Numerator+a.Fraction)/rate.Denominator
}

func (a Span) plus(rate Rate, b Span) Span {
	sum := Span{Millis: a.Millis + b.Millis, Fraction: a.Fraction + b.Fraction}
	if sum.Fraction >= rate.Numerator {
		sum.Millis, sum.Fraction = sum.Millis+1, sum.Fraction-rate.Numerator
	}
	return sum
}

// minus takes a span that is not longer.
func (a Span) minus(rate Rate, b Span) Span {
	difference := Span{Millis: a.Millis - b.Millis, Fraction: a.Fraction - b.Fraction}
	if difference.Fraction < 0 {
		difference.Millis, difference.Fraction = difference.Millis-1, difference.Fraction+rate.Numerator
	}
	return difference
}

func (a Span) after(b Span) bool {
	return a.Millis > b.Millis || a.Millis == b.Millis && a.Fraction > b.Fraction
}

// ceil is whole milliseconds, rounded up.
func (a Span) ceil() int64 {
	if a.Fraction > 0 {
		return a.Millis + 1
	}
	return a.Millis
}

// Decide evaluates cost (1..Burst) at serverNow. The state returned is to be stored where the
// decision is StatusAllowed and equals the given one otherwise.
func (p GCRA) Decide(s GCRAState, serverNow, cost int64) (Decision, GCRAState) {
	return p.DecideAt(p.Rate(), p.Tolerance(), s, serverNow, cost)
}

// DecideAt is Decide for a caller that keeps Rate and Tolerance beside the parameters.
func (p GCRA) DecideAt(rate Rate, tolerance Span, s GCRAState, serverNow, cost int64) (Decision, GCRAState) {
	var d Decision
	p.Advance(rate, tolerance, &s, serverNow, cost, &d)
	return d, s
}

// Advance is DecideAt in place: the decision is put into d, and an admission changes the state. Nothing
// else does.
func (p *GCRA) Advance(rate Rate, tolerance Span, s *GCRAState, serverNow, cost int64, d *Decision) {
	now, tat := Span{Millis: serverNow}, Span{Millis: serverNow}
	if s.Present {
		if serverNow < s.LastObserved {
			if !p.Clock.tolerates(serverNow, s.LastObserved) {
				*d = p.Clock.unsafe(serverNow, s.LastObserved, p.Burst)
				return
			}
			now.Millis, tat.Millis = s.LastObserved, s.LastObserved
		}
		if s.TAT.after(now) {
			tat = s.TAT
		}
	}
	arrival, latest := tat.plus(rate, rate.Span(cost)), now.plus(rate, tolerance)
	if arrival.after(latest) {
		d.begin(serverNow, now.Millis, p.Burst, latest.minus(rate, tat).units(rate))
		d.RetryAfterMillis = arrival.minus(rate, tolerance).ceil() - serverNow
		d.ResetAtMillis = tat.ceil()
		return
	}
	d.begin(serverNow, now.Millis, p.Burst, latest.minus(rate, arrival).units(rate))
	d.Status = StatusAllowed
	d.ResetAtMillis = arrival.ceil()
	if need := d.ResetAtMillis + p.Clock.GraceMillis; !s.Present || s.ExpiresAt < need {
		s.ExpiresAt = need + tolerance.ceil()
	}
	s.Present, s.TAT, s.LastObserved = true, arrival, now.Millis
}
