package algorithm

// Status is what a program concluded. Its names are the words that the Lua programs reply.
type Status uint8

const (
	// StatusUnspecified is the invalid zero value.
	StatusUnspecified Status = iota
	// StatusAllowed means that the cost was admitted and must now be stored.
	StatusAllowed
	// StatusDenied means that the cost did not fit; nothing is stored.
	StatusDenied
	// StatusClockUnsafe means that the clock went back further than the policy tolerates; nothing is
	// stored.
	StatusClockUnsafe
	// StatusStateIncompatible means that the stored state is not this policy's, or malformed.
	StatusStateIncompatible
	// StatusInvalid means that the arguments were out of range.
	StatusInvalid
)

var statusWords = [...]string{
	StatusUnspecified:       "UNSPECIFIED",
	StatusAllowed:           "ALLOWED",
	StatusDenied:            "DENIED",
	StatusClockUnsafe:       "CLOCK_UNSAFE",
	StatusStateIncompatible: "STATE_INCOMPATIBLE",
	StatusInvalid:           "INVALID",
}

// String gives the status's word on the wire.
func (s Status) String() string {
	if int(s) >= len(statusWords) {
		return statusWords[StatusUnspecified]
	}
	return statusWords[s]
}

// ParseStatus is the inverse of String for the five valid statuses; ok is false for other words.
func ParseStatus(word string) (status Status, ok bool) {
	for s := StatusAllowed; int(s) < len(statusWords); s++ {
		if statusWords[s] == word {
			return s, true
		}
	}
	return StatusUnspecified, false
}

// Decision holds the seven fields that every rate-limit program answers, in the order of the wire.
//
// For StatusAllowed and StatusDenied all fields are meaningful: Remaining is in 0..Limit;
// RetryAfterMillis counts from ServerNowMillis, is 0 where allowed and at least 1 where denied;
// ResetAtMillis is the absolute moment at which, without other traffic, the full limit is there.
// For StatusClockUnsafe RetryAfterMillis is the time after which the clock is tolerable again and
// ResetAtMillis that moment. For the others only ServerNowMillis and EffectiveNowMillis are set.
type Decision struct {
	Status             Status
	ServerNowMillis    int64 // the clock as read
	EffectiveNowMillis int64 // the clock as used: never before the last write
	Limit              int64
	Remaining          int64
	RetryAfterMillis   int64
	ResetAtMillis      int64
}

// Rejected is the reply of a program that could not decide: StatusStateIncompatible or
// StatusInvalid at the given clock reading.
func Rejected(status Status, serverNow int64) Decision {
	return Decision{Status: status, ServerNowMillis: serverNow, EffectiveNowMillis: serverNow}
}

// Clock holds how far back a clock may go and how long state outlives its use.
type Clock struct {
	// GraceMillis is added to the moment of the full limit to give the expiry of stored state.
	GraceMillis int64
	// MaxRegressionMillis is the largest backward step, relative to the last write, that is clamped.
	MaxRegressionMillis int64
}

// Check holds both durations to their ranges. Grace must not be below the tolerated regression:
// state has to outlive every backward step that it is meant to reveal.
func (c Clock) Check() error {
	if err := within("max clock regression", c.MaxRegressionMillis, 0, MaxRegressionMillis); err != nil {
		return err
	}
	return within("cleanup grace", c.GraceMillis, c.MaxRegressionMillis, MaxHorizonMillis)
}

// effective clamps serverNow to last. It reports false where the step back is too large, and then
// the reply.
func (c Clock) effective(serverNow, last, limit int64) (int64, Decision, bool) {
	switch {
	case serverNow >= last:
		return serverNow, Decision{}, true
	case c.tolerates(serverNow, last):
		return last, Decision{}, true
	}
	return 0, c.unsafe(serverNow, last, limit), false
}

// begin sets the fields of a denial, from which the others follow.
func (d *Decision) begin(serverNow, now, limit, remaining int64) {
	d.Status = StatusDenied
	d.ServerNowMillis, d.EffectiveNowMillis = serverNow, now
	d.Limit, d.Remaining = limit, remaining
	d.RetryAfterMillis, d.ResetAtMillis = 0, 0
}

// tolerates reports whether a clock that shows serverNow after last may be clamped.
func (c Clock) tolerates(serverNow, last int64) bool { return last-serverNow <= c.MaxRegressionMillis }

// unsafe is the reply where it may not.
func (c Clock) unsafe(serverNow, last, limit int64) Decision {
	safeAt := last - c.MaxRegressionMillis
	return Decision{
		Status: StatusClockUnsafe, ServerNowMillis: serverNow, EffectiveNowMillis: serverNow,
		Limit: limit, RetryAfterMillis: safeAt - serverNow, ResetAtMillis: safeAt,
	}
}
