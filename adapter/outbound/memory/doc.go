// Package memory is the ports inside one process, over the arithmetic of shared-contract/algorithm. It
// is the embedded default of samples and tests, and a provider of its own where one process is the
// whole fleet.
//
// [EdgeRateLimiter] is the rate-limit port, made for speed. [Store] is the persistence port, with a
// [Handler] in Go for every program of shared-contract/store: what runs over a Redis runs over it
// unchanged, to the last character of what is answered and stored. [Cache] is the cache port; it
// shares nothing with the other two.
//
// # What it is not
//
// It is not distributed: each [EdgeRateLimiter] and each [Store] counts for itself, and its state
// ends with it. It is
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
// the capacity one look at each of at most 1,024 shards. A state takes 90 to 120 bytes; ADR 0014 has the
// table and its figures.
//
// The state of a sliding window log has one entry of 24 bytes for each admission that its window
// holds, beside about 100 bytes more than other states: so 240 kB at the greatest limit of 10,000, and
// 24 GB for 100,000 subjects that all use it up. MaxKeys counts subjects and not entries, since a
// subject that was admitted once must not be refused for what others keep: where subjects are not
// trusted, MaxKeys * limit * 24 bytes is the bound to plan with. A log's memory grows with use, shrinks
// with the next admission after it fell below a quarter, and goes with its state.
//
// A Store holds at most StoreConfig.MaxKeys keys in the same way, refuses new ones beyond it with
// store.CodeCapacity, and is behind one lock. A key exists at the very millisecond of its expiry and
// is gone one later, as on Redis.
//
// A Cache holds at most CacheConfig.MaxEntries entries and MaxBytes bytes of keys and values, and never
// refuses: at a bound entries that have expired go, then the one that was used least recently.
//
// # Time
//
// The clock is read once per decision, under the lock of the shard, so that concurrent calls decide
// in the order of their readings. It is the wall clock, and steps of it follow the rules of the
// policy: small ones back are clamped, larger ones are Unavailable with CLOCK_UNSAFE.
//
// An EdgeRateLimiter without a Config.Clock reads the monotonic clock and adds what has elapsed to an
// earlier reading of the wall clock. It compares the two every 100 ms: a step of the wall clock is seen
// that much later at most, and one of less than a millisecond not at all.
//
// # Other policies
//
// EdgeRateLimiter.WithPolicies gives a limiter of other policies over the same states, for a service that
// changes its configuration while it runs. States are named by the subject's digest and a secret pad that
// is derived from the policy's ID, revision, algorithm and fingerprint: nothing is numbered, and nothing
// is kept of policies that are no longer in use but the states that they left, until those expire.
//
// # Concurrency
//
// All methods are safe for concurrent use. Subjects are spread over shards by a hash with keys of
// this limiter, so callers who choose subjects cannot choose shards.
//
// # Errors
//
// The constructors report everything that is wrong with their configuration at once. Evaluate fails
// with *ratelimit.InvalidRequestError alone, the methods of a Store with store.ErrNotFound or a
// *store.Error.
//
// A runnable example stands in docs/examples/monolith.
package memory
