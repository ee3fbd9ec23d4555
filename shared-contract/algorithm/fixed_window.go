package algorithm

// FixedWindow admits at most Limit in each window aligned to the epoch, and so at most 2*Limit in
// any interval of that length.
type FixedWindow struct {
	Limit        int64 // 1..MaxExact
	WindowMillis int64 // 1..MaxHorizonMillis
	Clock        Clock
}

// FixedWindowState is what a fixed window stores. The zero value means that nothing is stored.
type FixedWindowState struct {
	Present      bool
	LastObserved int64 // effective time of the last write, ms
	Window       int64 // LastObserved / WindowMillis
	Consumed     int64 // 1..Limit
	ExpiresAt    int64 // ms; 0 where nothing is stored
}

// Check returns a *RangeError where some step could leave its exact range.
func (p FixedWindow) Check() error {
	if err := within("limit", p.Limit, 1, MaxExact); err != nil {
		return err
	}
	if err := within("window", p.WindowMillis, 1, MaxHorizonMillis); err != nil {
		return err
	}
	return p.Clock.Check()
}

// Valid reports whether a stored state is one that this algorithm writes.
func (p FixedWindow) Valid(s FixedWindowState) bool {
	return !s.Present || s.LastObserved >= 0 && s.LastObserved <= MaxNowMillis &&
		s.Window == s.LastObserved/p.WindowMillis &&
		s.Consumed >= 1 && s.Consumed <= p.Limit
}

// Decide evaluates cost (1..Limit) at serverNow. The state returned is to be stored where the
// decision is StatusAllowed and equals the given one otherwise.
func (p FixedWindow) Decide(s FixedWindowState, serverNow, cost int64) (Decision, FixedWindowState) {
	var d Decision
	p.Advance(&s, serverNow, cost, &d)
	return d, s
}

// Advance is Decide in place: the decision is put into d, and an admission changes the state. Nothing
// else does.
func (p *FixedWindow) Advance(s *FixedWindowState, serverNow, cost int64, d *Decision) {
	now := serverNow
	if s.Present && now < s.LastObserved {
		if !p.Clock.tolerates(now, s.LastObserved) {
			*d = p.Clock.unsafe(now, s.LastObserved, p.Limit)
			return
		}
		now = s.LastObserved
	}
	window := now / p.WindowMillis
	end := (window + 1) * p.WindowMillis
	var consumed int64
	if s.Present && s.Window == window {
		consumed = s.Consumed
	}
	d.begin(serverNow, now, p.Limit, p.Limit-consumed)
	d.ResetAtMillis = end
	if cost > p.Limit-consumed {
		d.RetryAfterMillis = end - serverNow
		return
	}
	d.Status = StatusAllowed
	d.Remaining -= cost
	s.Present, s.LastObserved, s.Window, s.Consumed = true, now, window, consumed+cost
	s.ExpiresAt = end + p.Clock.GraceMillis
}
