package breaker

import (
	"context"
	"time"
)

// CircuitBreakerPort asks and tells a breaker.
//
// Each method answers an outcome and a nil error, or a nil outcome and an *InvalidRequestError, which
// means that the caller asked what cannot be asked; nothing else is an error. It returns within the
// provider's own finite bound whatever the deadline. It is safe for concurrent use. It asks its store
// once: no implementation repeats a call on its own.
type CircuitBreakerPort interface {
	// Acquire asks whether a call may be made now. A permit that it gives is to be handed to Record,
	// once, with the result of the call.
	Acquire(ctx context.Context, request AcquireRequest) (AcquireOutcome, error)
	// Record tells the result of a call.
	Record(ctx context.Context, request RecordRequest) (RecordOutcome, error)
	// Read tells what the breaker is in. It changes nothing.
	Read(ctx context.Context, request ReadRequest) (ReadOutcome, error)
}

// AcquireRequest asks for one call. Its fields are judged by Acquire.
type AcquireRequest struct {
	// PolicyID names a policy of the provider.
	PolicyID PolicyID
	// Resource is what the call goes to. The zero value is refused.
	Resource ResourceDigest
	// Deadline is when the caller stops waiting for the answer. Zero means the context's; the earlier
	// of both counts, and one of them must be there.
	Deadline time.Time
}

// RecordRequest tells the result of one call.
type RecordRequest struct {
	// Permit is what Acquire gave, unchanged.
	Permit   Permit
	Result   Result
	Deadline time.Time // as of AcquireRequest
}

// ReadRequest asks what a breaker is in.
type ReadRequest struct {
	PolicyID PolicyID
	Resource ResourceDigest
	Deadline time.Time // as of AcquireRequest
}

// Permit lets one call through. Callers hand it back as they got it, in this process or in another
// one that shares the store; its fields are for providers.
type Permit struct {
	PolicyID       PolicyID
	PolicyRevision int64
	Resource       ResourceDigest
	Kind           PermitKind
	Token          string
	// Generation and AcquiredAt, in ms on the store's clock, place the permit in a period of the
	// breaker.
	Generation int64
	AcquiredAt int64
	// LeaseUntil is, for a probe, when its result comes too late, on the store's clock in UTC; zero for
	// a call.
	LeaseUntil time.Time
}
