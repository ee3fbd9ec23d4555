package breaker

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// AcquireOutcome is what Acquire came to: Permitted, Rejected, Unavailable, Indeterminate or
// Incompatible. No other type implements it.
//
//sumtype:decl
type AcquireOutcome interface{ acquireOutcome() }

// RecordOutcome is what Record came to: Recorded, Unavailable, Indeterminate or Incompatible. No other
// type implements it.
//
//sumtype:decl
type RecordOutcome interface{ recordOutcome() }

// ReadOutcome is what Read came to: Observed, Unavailable, Indeterminate or Incompatible. No other
// type implements it.
//
//sumtype:decl
type ReadOutcome interface{ readOutcome() }

// Permitted means that the call may be made.
type Permitted struct {
	Permit Permit
	State  State // StateClosed, or StateHalfOpen for a probe
	Source ratelimit.Source
}

// Rejected means that the call must not be made now.
type Rejected struct {
	PolicyID PolicyID
	State    State // StateOpen, or StateHalfOpen where all probes are taken
	// RetryAfter is whole milliseconds, at least 1, counted from the store's clock. Open: the end of the
	// open timeout. Half-open: the end of the earliest lease. With no other traffic the same request is
	// let through at exactly that moment and not a millisecond earlier.
	RetryAfter time.Duration
	Source     ratelimit.Source
}

// Recorded means that the breaker was told.
type Recorded struct {
	PolicyID PolicyID
	// Status is StatusCounted, StatusReleased or StatusLate.
	Status Status
	// Before and After are the states around the result: closed and open where it tripped.
	Before, After State
	Source        ratelimit.Source
}

// Observed tells what a breaker is in.
type Observed struct {
	PolicyID PolicyID
	State    State
	// Since is when the state began, on the store's clock in UTC. Zero for the closed breaker that has
	// never tripped.
	Since time.Time
	// RetryAfter is when Acquire would let something through; 0 is now.
	RetryAfter time.Duration
	// Failures of Results counted, while closed: in the window, or failures in a row, which Results
	// equals.
	Failures, Results int64
	// ProbeSuccesses so far and ProbesLeased now, while half-open.
	ProbeSuccesses, ProbesLeased int64
	Source                       ratelimit.Source
}

// Unavailable means that the breaker could not be asked, and that it is known that nothing changed.
type Unavailable struct {
	PolicyID PolicyID
	// RetryAfter is when to ask again: the exact time for ratelimit.UnavailableClockUnsafe, a configured
	// hint otherwise. At least 1 ms.
	RetryAfter time.Duration
	Category   ratelimit.UnavailableCategory
}

// Indeterminate means that the store was asked and that it is not known what became of it: a result
// may have been counted, a slot may be leased until its lease ends.
type Indeterminate struct {
	PolicyID PolicyID
	// RetryAfter is a configured hint. At least 1 ms.
	RetryAfter time.Duration
}

// Incompatible means that the store and this program do not fit together: somebody has to look.
type Incompatible struct {
	PolicyID PolicyID
	Category ratelimit.IncompatibleCategory
}

func (Permitted) acquireOutcome()     {}
func (Rejected) acquireOutcome()      {}
func (Unavailable) acquireOutcome()   {}
func (Indeterminate) acquireOutcome() {}
func (Incompatible) acquireOutcome()  {}

func (Recorded) recordOutcome()      {}
func (Unavailable) recordOutcome()   {}
func (Indeterminate) recordOutcome() {}
func (Incompatible) recordOutcome()  {}

func (Observed) readOutcome()      {}
func (Unavailable) readOutcome()   {}
func (Indeterminate) readOutcome() {}
func (Incompatible) readOutcome()  {}

// Failure is what all three outcomes have for a breaker that could not be asked: Unavailable,
// Indeterminate or Incompatible.
type Failure interface {
	AcquireOutcome
	RecordOutcome
	ReadOutcome
}

// ConcludeAcquire turns a transition into an outcome. token is what Acquire was asked with. It is for
// providers, as are the two below.
func ConcludeAcquire(policy *Policy, resource ResourceDigest, token string, t Transition, source ratelimit.Source) AcquireOutcome {
	switch t.Status {
	case StatusCall, StatusProbe:
		permit := Permit{
			PolicyID: policy.ID(), PolicyRevision: policy.Revision(), Resource: resource, Kind: PermitCall,
			Token: token, Generation: t.SinceMillis, AcquiredAt: t.EffectiveNowMillis,
		}
		if t.Status == StatusProbe {
			permit.Kind = PermitProbe
			permit.LeaseUntil = time.UnixMilli(t.LeaseUntilMillis).UTC()
		}
		return Permitted{Permit: permit, State: t.State, Source: source}
	case StatusRejected:
		return Rejected{PolicyID: policy.ID(), State: t.State, RetryAfter: duration(t.RetryAfterMillis), Source: source}
	case StatusClockUnsafe, StatusStateIncompatible, StatusInvalid, StatusCounted, StatusReleased, StatusLate, StatusRead, StatusUnspecified:
	}
	return concludeFailure(policy, t)
}

// ConcludeRecord turns a transition into an outcome.
func ConcludeRecord(policy *Policy, t Transition, source ratelimit.Source) RecordOutcome {
	switch t.Status {
	case StatusCounted, StatusReleased, StatusLate:
		return Recorded{PolicyID: policy.ID(), Status: t.Status, Before: t.Before, After: t.State, Source: source}
	case StatusClockUnsafe, StatusStateIncompatible, StatusInvalid, StatusCall, StatusProbe, StatusRejected, StatusRead, StatusUnspecified:
	}
	return concludeFailure(policy, t)
}

// ConcludeRead turns a transition into an outcome.
func ConcludeRead(policy *Policy, t Transition, source ratelimit.Source) ReadOutcome {
	if t.Status != StatusRead {
		return concludeFailure(policy, t)
	}
	o := Observed{PolicyID: policy.ID(), State: t.State, RetryAfter: duration(t.RetryAfterMillis), Source: source}
	if t.SinceMillis > 0 {
		o.Since = time.UnixMilli(t.SinceMillis).UTC()
	}
	if t.State == StateHalfOpen {
		o.ProbeSuccesses, o.ProbesLeased = t.Tally, t.Total
	} else {
		o.Failures, o.Results = t.Tally, t.Total
	}
	return o
}

func concludeFailure(policy *Policy, t Transition) Failure {
	switch t.Status {
	case StatusClockUnsafe:
		return Unavailable{PolicyID: policy.ID(), RetryAfter: duration(t.RetryAfterMillis), Category: ratelimit.UnavailableClockUnsafe}
	case StatusStateIncompatible:
		return Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleState}
	case StatusInvalid:
		return Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleProgram}
	case StatusCall, StatusProbe, StatusRejected, StatusCounted, StatusReleased, StatusLate, StatusRead, StatusUnspecified:
	}
	return Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleReply}
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
