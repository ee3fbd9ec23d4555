// Package ratelimit is the provider-neutral contract of edge rate limiting: what may be asked, what
// can be answered, and the bounds of both.
//
// A caller names a policy and a pseudonymous subject and asks an [EdgeRateLimitPort] whether a cost
// may pass. The answer is one of four outcomes, and only one of them can let the request pass:
//
//	outcome, err := limiter.Evaluate(ctx, request)
//	if err != nil || !ratelimit.Allows(outcome) {
//		// stay closed
//	}
//
// Allows is the one form to use: a type switch that forgets a case must not open the door.
//
// # What it is not
//
// The port is for enforcement at the edge. Business quotas are a matter of the application's own
// use cases and do not use it. This revision does not deduplicate evaluations, does not combine
// policies all-or-nothing, and has no local emergency fallback: it fails closed.
//
// # Bounds
//
//	policy ID          1..64 characters of A-Z a-z 0-9 . _ - beginning with a letter or a digit
//	policy revision    1..2^31-1
//	subject digest     64 lower-case hexadecimal characters (256 bits)
//	cost               1..the policy's maximum cost, which is 1..limit (capacity, burst)
//	limit, capacity    1..2^53-1 (fixed window); 1..9,007,199,254 (sliding window counter); by the
//	                   refill (token bucket): see [TokenBucketParameters]; by the burst and the period
//	                   (GCRA): see [GCRAParameters]; 1..10,000 (sliding window log)
//	window, period     1 ms..100 years, whole milliseconds
//	cleanup grace      maximum clock regression..100 years, whole milliseconds
//	clock regression   0..24 h, whole milliseconds
//	deadline           required, on the request or on the context; the earlier counts
//
// Constructors refuse what is out of bounds and repair nothing. A policy whose arithmetic could
// leave 2^53-1 at any intermediate step is refused with the step and the value named.
//
// # Concurrency
//
// All types are immutable after construction and safe for concurrent use.
//
// A runnable example stands in docs/examples/monolith.
package ratelimit
