package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// recordWithin bounds the telling of a result, which must not end with the caller. The provider's own
// bound is below it and comes first.
const recordWithin = 30 * time.Second

// DoOutcome is what Do came to: Protected, Unprotected or Blocked. No other type implements it.
//
//sumtype:decl
type DoOutcome interface{ doOutcome() }

// Protected means that the function ran with a permit, and that its result was given to the breaker.
type Protected struct {
	Permit Permit
	Result Result
	// Recorded is what became of the result: Recorded, or a failure of the store, which leaves the
	// function's own result as it was. Nil where there was nothing to tell: ResultNeither of a call.
	Recorded RecordOutcome
}

// Unprotected means that the function ran although the breaker could not be asked. Its result was not
// counted.
type Unprotected struct {
	// Reason is Unavailable, Indeterminate or Incompatible.
	Reason AcquireOutcome
}

// Blocked means that the breaker rejected the call; the function did not run.
type Blocked struct {
	Rejected Rejected
}

func (Protected) doOutcome()   {}
func (Unprotected) doOutcome() {}
func (Blocked) doOutcome()     {}

// RejectedError is the error of a call that a breaker rejected.
type RejectedError struct {
	Rejected Rejected
}

// Error gives policy, state and when to ask again.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("breaker: %s is %v, retry after %v", e.Rejected.PolicyID, e.Rejected.State, e.Rejected.RetryAfter)
}

// Do runs fn where the breaker lets it, and tells the breaker what became of it.
//
// The error is fn's where it ran. Where it did not, it is a *RejectedError (with Blocked), or an
// *InvalidRequestError with a nil outcome. Where the breaker could not be asked, fn runs all the same:
// the outcome is Unprotected.
//
// An error of fn is a failure, but for one: where ctx was cancelled by the caller (not by a deadline,
// which is a failure of a resource that was too slow), it says nothing about the resource and counts
// as neither; the slot of a probe is freed. A function whose errors are not all the resource's, such as
// "not found", keeps those for itself and returns nil.
//
// A panic of fn, and its end by runtime.Goexit, counts as a failure and goes on untouched. The result
// is told after the caller's ctx has ended, too, within the provider's own bound.
func Do(ctx context.Context, port CircuitBreakerPort, request AcquireRequest, fn func(ctx context.Context) error) (DoOutcome, error) {
	acquired, err := port.Acquire(ctx, request)
	if err != nil {
		return nil, err
	}
	switch o := acquired.(type) {
	case Permitted:
		return runProtected(ctx, port, o.Permit, fn)
	case Rejected:
		return Blocked{Rejected: o}, &RejectedError{Rejected: o}
	case Unavailable, Indeterminate, Incompatible:
	}
	return Unprotected{Reason: acquired}, fn(ctx)
}

func runProtected(ctx context.Context, port CircuitBreakerPort, permit Permit, fn func(ctx context.Context) error) (DoOutcome, error) {
	outcome := Protected{Permit: permit, Result: ResultFailure}
	returned := false
	tell := func() {
		if outcome.Result == ResultNeither && permit.Kind == PermitCall {
			return // A call holds nothing that could be freed.
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
		defer cancel()
		recorded, err := port.Record(ctx, RecordRequest{Permit: permit, Result: outcome.Result})
		if err == nil {
			outcome.Recorded = recorded
		}
	}
	defer func() {
		// Not recovered: a panic keeps its stack, and whoever waits for it finds it as it was.
		if !returned {
			tell()
		}
	}()
	err := fn(ctx)
	returned = true
	outcome.Result = classify(ctx, err)
	tell()
	return outcome, err
}

// classify says what a function's error tells about the resource.
func classify(ctx context.Context, err error) Result {
	switch {
	case err == nil:
		return ResultSuccess
	case errors.Is(ctx.Err(), context.Canceled):
		return ResultNeither
	default:
		return ResultFailure
	}
}
