// Package algorithm holds the decisions of the rate-limit algorithms as pure functions of
// parameters, stored state and a clock reading.
//
// It exists so that one piece of arithmetic serves the range checks of policies, the in-process
// provider, the golden vectors, the differential tests against the Lua programs, and replay. It
// stores nothing, reads no clock and knows no provider.
//
// # Units and ranges
//
// Every quantity is an int64. Times are milliseconds since the Unix epoch in 0..[MaxNowMillis];
// durations are milliseconds in 0..[MaxHorizonMillis]; costs, counts and tokens are whole units.
// For parameters that passed Check, a cost in 1..limit and a clock in range, no intermediate value
// leaves 0..[MaxExact] in magnitude, which is what an IEEE 754 double (and so Lua inside Redis) can
// hold exactly. A caller that breaks these preconditions gets a meaningless result, never a panic.
//
// # Stale state
//
// State that has aged past its horizon decides exactly as absent state does, so an implementation
// may drop it at any time after the expiry that a decision names.
//
// # Concurrency
//
// All functions are pure and safe for concurrent use; callers serialize read, decide and write.
//
// # Sources
//
// Fixed window and sliding window counter follow the usual published forms (the latter as a
// weighted sum of two aligned windows); the token bucket is that of ITU-T I.371 in its
// continuous-time form with the division remainder carried, and GCRA is that recommendation's virtual
// scheduling form with the fraction of the arrival time carried. The sliding log is the plain
// definition of a sliding window, with running sums. Proofs of the bounds stand in
// docs/guarantees.md.
package algorithm
