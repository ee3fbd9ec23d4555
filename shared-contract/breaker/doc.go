// Package breaker is the provider-neutral contract of the distributed circuit breaker: what may be
// asked, what can be answered, the bounds of both, and the breaker itself as pure transitions.
//
// A breaker belongs to one resource under one policy. It is closed while calls pass and their results
// are counted; it trips to open when too many fail; after the open timeout it is half-open and admits
// a bounded number of probes, each under a lease; enough successful probes close it, and one failed
// probe opens it again. All instances that share a store share the breaker, and its clock is the
// store's: no caller's clock is compared with anything.
//
//	outcome, err := breaker.Do(ctx, port, request, func(ctx context.Context) error {
//		return payments.Charge(ctx, order)
//	})
//
// [Do] is the form to use. A caller that cannot wrap its call in a function asks
// [CircuitBreakerPort].Acquire, makes the call, and gives its result to Record.
//
// # Where the store is down
//
// A breaker is an optimization of failures, not a permission: where it cannot be asked, Do runs the
// function and says so ([Unprotected]). That is never so for rate limits. docs/adr/0012 weighs it.
//
// # What counts
//
// A result counts once, for the period in which its call was acquired: a result of a call that was
// acquired while closed counts nothing after a trip, and one of a probe counts nothing once its lease
// is over. Both are answered as late. See [Machine].
//
// # Bounds
//
//	policy ID          as of package ratelimit
//	policy revision    1..2^31-1
//	resource name      1..1024 bytes, turned into a digest of 256 bits
//	threshold          1..1,000,000,000 consecutive failures
//	window             1 ms..100 years, whole milliseconds, in 1..20 buckets of whole milliseconds
//	minimum calls      1..1,000,000,000
//	rate               1..1000 permille
//	open timeout       1 ms..100 years, whole milliseconds
//	probes             1..16 at the same time, each leased for 1 ms..100 years
//	probe successes    1..1,000,000
//	cleanup grace      maximum clock regression..100 years, whole milliseconds
//	clock regression   0..24 h, whole milliseconds
//	deadline           required, on the request or on the context; the earlier counts
//
// Constructors refuse what is out of bounds, all faults at once, and repair nothing.
//
// # What is shared with rate limits
//
// Policy IDs, digests, sources, and the reasons why a store could not be asked are those of package
// ratelimit: they speak of the store and not of what is decided.
//
// # Concurrency
//
// All types are immutable after construction and safe for concurrent use.
//
// A worked example stands in docs/circuit-breaker.md.
package breaker
