package breaker

// Transition is what Acquire, Record or Read came to. Which fields are set depends on the status;
// times are ms, durations count from ServerNowMillis.
type Transition struct {
	Status Status
	// Before and State are the states before and after, as of the effective time. They differ for
	// Record and Acquire alone. Both are set where something was decided.
	Before, State      State
	ServerNowMillis    int64 // the clock as read
	EffectiveNowMillis int64 // the clock as used: never before the last write
	// SinceMillis is when the state began; it goes back to Record as the generation of a permit.
	SinceMillis int64
	// RetryAfterMillis is at least 1 where nothing would be let through now: the earliest moment at
	// which something can be, with no other traffic. For StatusClockUnsafe it is the time after which
	// the clock is tolerable again.
	RetryAfterMillis int64
	LeaseUntilMillis int64 // of StatusProbe: when the lease is over, on the store's clock
	// Tally and Total are set by Read. Closed: failures, of all results counted (under
	// ConsecutiveFailures both are the failures in a row). Half-open: successful probes, and probes
	// under lease. Open: 0.
	Tally, Total int64
	// Writes says that the state is to be stored, and its expiry set to EffectiveNow + Lifetime.
	Writes bool
}

// Refused is the reply where nothing could be decided: StatusStateIncompatible or StatusInvalid at
// the given clock reading.
func Refused(status Status, serverNow int64) Transition {
	return Transition{Status: status, ServerNowMillis: serverNow, EffectiveNowMillis: serverNow}
}

// begin clamps the clock, forgets stale state and moves an open breaker whose timeout is over to
// half-open. It reports false where the clock went back too far.
func (m Machine) begin(s Stored, serverNow int64) (Stored, Transition, bool) {
	t := Transition{ServerNowMillis: serverNow, EffectiveNowMillis: serverNow}
	if s.Present && s.LastObserved > serverNow {
		if s.LastObserved-serverNow > m.Clock.MaxRegressionMillis {
			t.Status = StatusClockUnsafe
			t.RetryAfterMillis = s.LastObserved - m.Clock.MaxRegressionMillis - serverNow
			return s, t, false
		}
		t.EffectiveNowMillis = s.LastObserved
	}
	now := t.EffectiveNowMillis
	if !s.Present || now-s.LastObserved >= m.LifetimeMillis() {
		s = Stored{State: StateClosed}
	}
	if s.State == StateOpen && now >= s.Since+m.OpenTimeoutMillis {
		s.State, s.Since = StateHalfOpen, s.Since+m.OpenTimeoutMillis
	}
	t.Before = s.State
	return s, t, true
}

// retryAfter is the time until something can be let through, 0 where that is now.
func (m Machine) retryAfter(s Stored, t Transition) int64 {
	switch s.State {
	case StateOpen:
		return s.Since + m.OpenTimeoutMillis - t.ServerNowMillis
	case StateHalfOpen:
		earliest := int64(maxExact)
		for _, p := range s.Probes[:m.MaxProbes] {
			if p.ExpiresAt <= t.EffectiveNowMillis {
				return 0
			}
			earliest = min(earliest, p.ExpiresAt)
		}
		return earliest - t.ServerNowMillis
	case StateClosed, StateInvalid:
	}
	return 0
}

// conclude completes a transition that decided.
func (m Machine) conclude(status Status, s Stored, t Transition) Transition {
	t.Status, t.State, t.SinceMillis = status, s.State, s.Since
	return t
}

// Acquire asks for a permit at serverNow; token is what a probe's slot is leased to. The state returned is to be
// stored where Writes says so and equals the given one otherwise.
func (m Machine) Acquire(given Stored, serverNow int64, token string) (Transition, Stored) {
	s, t, ok := m.begin(given, serverNow)
	if !ok {
		return t, given
	}
	switch s.State {
	case StateClosed:
		return m.conclude(StatusCall, s, t), given
	case StateHalfOpen:
		for i := range s.Probes[:m.MaxProbes] {
			if s.Probes[i].ExpiresAt > t.EffectiveNowMillis {
				continue
			}
			t.LeaseUntilMillis = t.EffectiveNowMillis + m.ProbeLeaseMillis
			t.Writes = true
			s.Probes[i] = Probe{ExpiresAt: t.LeaseUntilMillis, Token: token}
			s.LastObserved = t.EffectiveNowMillis
			return m.conclude(StatusProbe, s, t), s
		}
	case StateOpen, StateInvalid:
	}
	t.RetryAfterMillis = m.retryAfter(s, t)
	return m.conclude(StatusRejected, s, t), given
}

// Report is a result as Record takes it: what Acquire gave, and what became of the call.
type Report struct {
	Kind       PermitKind
	Token      string
	Generation int64 // SinceMillis of Acquire
	AcquiredAt int64 // EffectiveNowMillis of Acquire
	Result     Result
}

// Record counts a result at serverNow. The state returned is to be stored where Writes says so and
// equals the given one otherwise.
func (m Machine) Record(given Stored, serverNow int64, r Report) (Transition, Stored) {
	s, t, ok := m.begin(given, serverNow)
	if !ok {
		return t, given
	}
	var status Status
	if r.Kind == PermitProbe {
		status, s = m.recordProbe(s, &t, r)
	} else {
		status, s = m.recordCall(s, &t, r)
	}
	t = m.conclude(status, s, t)
	t.RetryAfterMillis = m.retryAfter(s, t)
	if !t.Writes {
		return t, given
	}
	return t, s
}

func (m Machine) recordProbe(s Stored, t *Transition, r Report) (Status, Stored) {
	now := t.EffectiveNowMillis
	if s.State != StateHalfOpen {
		return StatusLate, s
	}
	slot := -1
	for i, p := range s.Probes[:m.MaxProbes] {
		if p.Token == r.Token && p.ExpiresAt > now {
			slot = i
			break
		}
	}
	if slot < 0 {
		return StatusLate, s
	}
	t.Writes = true
	s.LastObserved = now
	s.Probes[slot] = Probe{}
	switch r.Result {
	case ResultSuccess:
		if s.Successes++; s.Successes >= m.ProbeSuccesses {
			s = enter(StateClosed, now)
		}
	case ResultFailure:
		s = enter(StateOpen, now)
	case ResultNeither, ResultInvalid:
		return StatusReleased, s
	}
	return StatusCounted, s
}

func (m Machine) recordCall(s Stored, t *Transition, r Report) (Status, Stored) {
	now := t.EffectiveNowMillis
	if s.State != StateClosed || s.Since != 0 && s.Since != r.Generation ||
		now-r.AcquiredAt >= m.LifetimeMillis()-m.Clock.MaxRegressionMillis {
		return StatusLate, s
	}
	if r.Result == ResultNeither {
		return StatusReleased, s
	}
	failed := int64(0)
	if r.Result == ResultFailure {
		failed = 1
	}
	if m.consecutive() {
		if failed == 0 && s.Failures == 0 {
			return StatusCounted, s
		}
		s.Failures = (s.Failures + 1) * failed
		if s.Failures >= m.Threshold {
			s = enter(StateOpen, now)
		}
	} else {
		s.count(m, now, failed)
		if failures, results := s.window(m, now); results >= m.MinimumCalls && failures*MostRatePermille >= m.RatePermille*results {
			s = enter(StateOpen, now)
		}
	}
	s.Present, s.LastObserved = true, now
	t.Writes = true
	return StatusCounted, s
}

// enter begins a state with nothing counted.
func enter(state State, now int64) Stored {
	return Stored{Present: true, LastObserved: now, State: state, Since: now}
}

// count adds a result to the bucket of now.
func (s *Stored) count(m Machine, now, failed int64) {
	id := now / m.BucketMillis
	b := &s.Ring[id%m.Buckets]
	if b.Calls == 0 || b.ID != id {
		*b = Bucket{ID: id}
	}
	if b.Calls < MostCalls {
		b.Calls++
		b.Failures += failed
	}
}

// window sums the buckets that are in the window at now.
func (s *Stored) window(m Machine, now int64) (failures, results int64) {
	id := now / m.BucketMillis
	for _, b := range s.Ring[:m.Buckets] {
		if b.ID > id-m.Buckets {
			failures += b.Failures
			results += b.Calls
		}
	}
	return failures, results
}

// Read tells what a breaker is in at serverNow.
func (m Machine) Read(given Stored, serverNow int64) Transition {
	s, t, ok := m.begin(given, serverNow)
	if !ok {
		return t
	}
	switch s.State {
	case StateClosed:
		if m.consecutive() {
			t.Tally, t.Total = s.Failures, s.Failures
		} else {
			t.Tally, t.Total = s.window(m, t.EffectiveNowMillis)
		}
	case StateHalfOpen:
		t.Tally = s.Successes
		for _, p := range s.Probes[:m.MaxProbes] {
			if p.ExpiresAt > t.EffectiveNowMillis {
				t.Total++
			}
		}
	case StateOpen, StateInvalid:
	}
	t = m.conclude(StatusRead, s, t)
	t.RetryAfterMillis = m.retryAfter(s, t)
	return t
}
