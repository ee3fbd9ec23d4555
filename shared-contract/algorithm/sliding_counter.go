package algorithm

// SlidingCounterScale is the denominator of the weight that the previous window is given.
const SlidingCounterScale int64 = 1_000_000

// SlidingCounter estimates a sliding window from the counts of the current and the previous aligned
// window, the latter weighted by the share of it that the sliding window still covers, rounded up.
// It is approximate: in a true sliding window it can admit up to 2*Limit-1.
type SlidingCounter struct {
	Limit        int64 // 1..MaxSlidingCounterLimit
	WindowMillis int64 // 1..MaxHorizonMillis
	Clock        Clock
}

// MaxSlidingCounterLimit keeps Limit*SlidingCounterScale within MaxExact.
const MaxSlidingCounterLimit = MaxExact / SlidingCounterScale

// SlidingCounterState is what a sliding counter stores. The zero value means that nothing is stored.
type SlidingCounterState struct {
	Present       bool
	LastObserved  int64 // effective time of the last write, ms
	Window        int64 // current window: LastObserved / WindowMillis
	Count         int64 // 1..Limit
	Previous      int64 // the window before (0 where the current one is window 0)
	PreviousCount int64 // 0..Limit
	ExpiresAt     int64 // ms; 0 where nothing is stored
}

// Check returns a *RangeError where some step could leave its exact range.
func (p SlidingCounter) Check() error {
	if err := within("limit", p.Limit, 1, MaxExact); err != nil {
		return err
	}
	if err := within("limit * 1000000", saturatingProduct(p.Limit, SlidingCounterScale), 1, MaxExact); err != nil {
		return err
	}
	if err := within("window", p.WindowMillis, 1, MaxHorizonMillis); err != nil {
		return err
	}
	return p.Clock.Check()
}

// saturatingProduct multiplies two positive factors and stops at the largest int64.
func saturatingProduct(a, b int64) int64 {
	const largest = 1<<63 - 1
	if a > largest/b {
		return largest
	}
	return a * b
}

// Valid reports whether a stored state is one that this algorithm writes.
func (p SlidingCounter) Valid(s SlidingCounterState) bool {
	return !s.Present || s.LastObserved >= 0 && s.LastObserved <= MaxNowMillis &&
		s.Window == s.LastObserved/p.WindowMillis &&
		s.Count >= 1 && s.Count <= p.Limit &&
		s.Previous == max(s.Window-1, 0) &&
		s.PreviousCount >= 0 && s.PreviousCount <= p.Limit &&
		(s.Window > 0 || s.PreviousCount == 0)
}

// weight is the share of the previous window that still counts at offset ms into the current one,
// at SlidingCounterScale, rounded up. It is computed in two steps, since
// (window-offset)*1,000,000 overflows for long windows.
func (p SlidingCounter) weight(offset int64) int64 {
	left := p.WindowMillis - offset
	q, r := 1000*left/p.WindowMillis, 1000*left%p.WindowMillis
	return 1000*q + ceilDiv(1000*r, p.WindowMillis)
}

// decayOffset is the first offset into a window at which count units of the window before weigh no
// more than budget.
func (p SlidingCounter) decayOffset(count, budget int64) int64 {
	v := min(SlidingCounterScale, budget*SlidingCounterScale/count)
	w := p.WindowMillis
	return w - (v*(w/SlidingCounterScale) + v*(w%SlidingCounterScale)/SlidingCounterScale)
}

// Decide evaluates cost (1..Limit) at serverNow. The state returned is to be stored where the
// decision is StatusAllowed and equals the given one otherwise.
func (p SlidingCounter) Decide(s SlidingCounterState, serverNow, cost int64) (Decision, SlidingCounterState) {
	var d Decision
	p.Advance(&s, serverNow, cost, &d)
	return d, s
}

// Advance is Decide in place: the decision is put into d, and an admission changes the state. Nothing
// else does.
func (p *SlidingCounter) Advance(s *SlidingCounterState, serverNow, cost int64, d *Decision) {
	now := serverNow
	if s.Present && now < s.LastObserved {
		if !p.Clock.tolerates(now, s.LastObserved) {
			*d = p.Clock.unsafe(now, s.LastObserved, p.Limit)
			return
		}
		now = s.LastObserved
	}
	window := now / p.WindowMillis
	start := window * p.WindowMillis
	var count, previous int64
	switch {
	case !s.Present:
	case s.Window == window:
		count, previous = s.Count, s.PreviousCount
	case s.Window == window-1:
		previous = s.Count
	}
	used := count
	if previous > 0 {
		used += ceilDiv(previous*p.weight(now-start), SlidingCounterScale)
	}
	d.begin(serverNow, now, p.Limit, max(p.Limit-used, 0))
	d.ResetAtMillis = start + p.WindowMillis
	if cost > p.Limit-used {
		var retryAt int64
		if count <= p.Limit-cost {
			retryAt = start + p.decayOffset(previous, p.Limit-cost-count)
		} else {
			retryAt = start + p.WindowMillis + p.decayOffset(count, p.Limit-cost)
		}
		d.RetryAfterMillis = retryAt - serverNow
		if count > 0 {
			d.ResetAtMillis += p.WindowMillis
		}
		return
	}
	d.Status = StatusAllowed
	d.Remaining -= cost
	d.ResetAtMillis += p.WindowMillis
	s.Present, s.LastObserved = true, now
	s.Window, s.Count = window, count+cost
	s.Previous, s.PreviousCount = max(window-1, 0), previous
	s.ExpiresAt = d.ResetAtMillis + p.Clock.GraceMillis
}
