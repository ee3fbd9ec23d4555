package ratelimit

import (
	"context"
	"time"
)

// EdgeRateLimitPort decides whether a request may pass.
//
// Evaluate answers an outcome and a nil error, or a nil outcome and an *InvalidRequestError, which
// means that the caller asked what cannot be asked; nothing else is an error. It returns within the
// provider's own finite bound whatever the deadline. It is safe for concurrent use. It evaluates
// once: no implementation asks its store a second time on its own.
type EdgeRateLimitPort interface {
	Evaluate(ctx context.Context, request RateLimitRequest) (Outcome, error)
}

// RateLimitRequest is one question. Its fields are judged by Evaluate.
type RateLimitRequest struct {
	// PolicyID names a policy of the provider.
	PolicyID PolicyID
	// Subject is the pseudonym of whoever is limited. The zero value is refused.
	Subject SubjectDigest
	// Cost is in units of the policy's limit, 1..its maximum cost.
	Cost int64
	// EvaluationID would make a repeated evaluation the same one. This revision does not
	// deduplicate, and refuses any that is not empty.
	EvaluationID string
	// Deadline is when the caller stops waiting. Zero means the context's; the earlier of both
	// counts, and one of them must be there.
	Deadline time.Time
}
