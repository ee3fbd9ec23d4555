package ratelimit

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// Outcome is what an evaluation came to: Evaluated, Unavailable, Indeterminate or Incompatible.
// No other type implements it.
//
//sumtype:decl
type Outcome interface {
	outcome()
}

// Evaluated means that the algorithm decided, and that what it decided is stored.
type Evaluated struct {
	Decision RateLimitDecision
}

// Unavailable means that nothing was decided and that it is known that nothing was spent.
type Unavailable struct {
	PolicyID PolicyID
	// RetryAfter is when to ask again: the exact time for UnavailableClockUnsafe and
	// UnavailableCircuit, a configured hint otherwise. At least 1 ms.
	RetryAfter time.Duration
	Category   UnavailableCategory
}

// Indeterminate means that the evaluation was sent and that it is not known whether its cost was
// spent.
type Indeterminate struct {
	PolicyID PolicyID
	// RetryAfter is a configured hint. At least 1 ms.
	RetryAfter time.Duration
}

// Incompatible means that the store and this program do not fit together: retrying does not help,
// somebody has to look.
type Incompatible struct {
	PolicyID PolicyID
	Category IncompatibleCategory
}

func (Evaluated) outcome()     {}
func (Unavailable) outcome()   {}
func (Indeterminate) outcome() {}
func (Incompatible) outcome()  {}

// RateLimitDecision is an evaluated decision.
type RateLimitDecision struct {
	Allowed bool
	// Limit is the policy's limit (capacity, burst).
	Limit int64
	// Remaining is what is left of it after this decision, 0..Limit.
	Remaining int64
	// RetryAfter is 0 where allowed. Where denied it is at least 1 ms, whole milliseconds, counted
	// from the store's clock: with no other traffic the same request is admitted at exactly that
	// moment and not a millisecond earlier. Of SourceDenialCache it is an upper bound.
	RetryAfter time.Duration
	// ResetAt is the moment, on the store's clock, at which the full limit is there, if no other
	// traffic comes. In UTC, whole milliseconds.
	ResetAt        time.Time
	PolicyID       PolicyID
	PolicyRevision int64
	Source         Source
	Certainty      Certainty
}

// Allows reports whether o is Evaluated and allowed. It is false for everything else, nil and a
// pointer to an outcome among them.
func Allows(o Outcome) bool {
	if _, ok := o.(Evaluated); !ok {
		return false
	}
	return o.(Evaluated).Decision.Allowed //nolint:forcetypeassert // It is checked above; this form reads one field where the other copies all.
}

// ConcludeEvaluated is Conclude for a provider that has a place for the outcome: it puts there what
// Conclude gives, where that is Evaluated, and reports whether it did. Otherwise the place is left alone.
func ConcludeEvaluated(policy *RateLimitPolicy, d *algorithm.Decision, source Source, place *Evaluated) bool {
	if d.Status != algorithm.StatusAllowed && d.Status != algorithm.StatusDenied {
		return false
	}
	into := &place.Decision
	into.Allowed = d.Status == algorithm.StatusAllowed
	into.Limit = d.Limit
	into.Remaining = d.Remaining
	into.RetryAfter = time.Duration(d.RetryAfterMillis) * time.Millisecond
	into.ResetAt = time.UnixMilli(d.ResetAtMillis).UTC()
	into.PolicyID = policy.id
	into.PolicyRevision = policy.revision
	into.Source = source
	into.Certainty = policy.certainty
	return true
}

// Conclude turns an algorithm's decision under a policy into an outcome. It is for providers.
func Conclude(policy *RateLimitPolicy, d algorithm.Decision, source Source) Outcome {
	switch d.Status {
	case algorithm.StatusAllowed, algorithm.StatusDenied:
		var evaluated Evaluated
		ConcludeEvaluated(policy, &d, source, &evaluated)
		return evaluated
	case algorithm.StatusClockUnsafe:
		return Unavailable{
			PolicyID:   policy.id,
			RetryAfter: time.Duration(d.RetryAfterMillis) * time.Millisecond,
			Category:   UnavailableClockUnsafe,
		}
	case algorithm.StatusStateIncompatible:
		return Incompatible{PolicyID: policy.id, Category: IncompatibleState}
	case algorithm.StatusInvalid:
		return Incompatible{PolicyID: policy.id, Category: IncompatibleProgram}
	case algorithm.StatusUnspecified:
	}
	return Incompatible{PolicyID: policy.id, Category: IncompatibleReply}
}
