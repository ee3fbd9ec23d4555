// Package cacheredis keeps coordination state in Redis: it owns the physical keys, runs the
// versioned Lua programs, parses their replies, and says of every failure what is known about it.
//
// [Store] is the persistence port over one Redis server; [EdgeRateLimiter] is the rate-limit port
// over any store.Store; [Simulation] evaluates at given times on keys of its own; [Cache] is the cache
// port over a store of its own, which is never the limiter's.
//
// # R1
//
// This provider is at revision R1. It does not claim qualification for topology (Sentinel, Cluster),
// security (TLS and ACLs can be configured; they are not qualified) or failover. It does not
// deduplicate evaluations. Losing the store's data resets limits: a Redis without persistence
// forgets them at a restart, an eviction policy other than noeviction forgets them under memory
// pressure. Business quotas do not use this port. The caller's deadline is judged before sending,
// against the fixed command timeout; nothing is cancelled on the server after it was sent.
//
// # Certainty
//
// Each failure is one of: not sent, refused by the server before it ran, uncertain, mismatched
// (store.Certainty). A connection counts the bytes that it wrote and knows whether it is still in
// its greeting, so "not sent" is a fact and never a guess; what is neither proven unsent nor
// answered is uncertain. Nothing is ever sent twice but the exact source of a program after
// NOSCRIPT, which is known not to have run.
//
// # Privacy
//
// Keys hold a namespace, a capability, a region (the policy ID), a kind and an HMAC-SHA256 digest.
// No raw identity reaches this package, and no subject digest is logged or put into an error.
//
// # Concurrency
//
// All types are safe for concurrent use. A Store that was started has one goroutine of its own,
// which Close ends.
//
// A runnable example stands in docs/examples/monolith.
package cacheredis
