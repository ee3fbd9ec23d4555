// Package memory is the rate-limit port inside one process, over the arithmetic of
// shared-contract/algorithm. It is the embedded default of samples and tests, and a provider of its
// own where one process is the whole fleet.
//
// # What it is not
//
// It is not distributed: each [EdgeRateLimiter] counts for itself, and its state ends with it. It is
// no fallback for a store that is down; nothing chooses it but configuration. It does not persist,
// deduplicate evaluations or combine policies.
//
// # Bounds
//
// At most Config.MaxKeys states are held over all policies, exactly. At the bound a subject that has
// none is Unavailable with the category CAPACITY; those that have one go on. Before it refuses, the
// limiter looks in every shard for a state that has expired, and takes its place.
//
// State expires at the moment that the algorithm names, which contains the policy's grace. It is
// reclaimed as calls come in, a few states per call and in all shards by turns: there is no goroutine
// and nothing to close. A shard that has become mostly empty gives its memory back. The work that one
// call can be made to do is thereby bounded: some removals from heaps, one shard's rebuilding, and at
// the capacity one look at each of at most 1,024 shards.
//
// # Time
//
// The clock is read once per decision, under the lock of the shard, so that concurrent calls decide
// in the order of their readings. It is the wall clock, and steps of it follow the rules of the
// policy: small ones back are clamped, larger ones are Unavailable with CLOCK_UNSAFE.
//
// # Concurrency
//
// All methods are safe for concurrent use. Subjects are spread over shards by a hash with a seed of
// this process, so callers who choose subjects cannot choose shards.
//
// # Errors
//
// The constructor reports everything that is wrong with its configuration at once. Evaluate fails
// with *ratelimit.InvalidRequestError alone.
//
// A runnable example stands in docs/examples/monolith.
package memory
