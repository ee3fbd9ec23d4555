// Package cache is the port to a shared cache: entries with a finite lifetime, each version of which
// can be told from every other, so that a writer who has seen one version replaces or removes that one
// and no other.
//
// # Observation tokens
//
// Every write that takes effect makes a new token: 128 random bits as text, stored with the value. A
// token names the one version that it was made with, for ever: a value that was replaced by an equal
// one, or removed and put again, has another token, so what stood there in between (ABA) shows.
//
// # What it is not
//
// It coordinates nothing that must not be lost: an entry may go at any time, by its lifetime, by
// eviction, or because the store lost its data. The rate limiter does not use it, neither this port
// nor its connection nor its decorators.
//
// # Errors
//
// A failure is ErrNotFound or a *store.Error: its Certainty says whether anything can have been
// changed, and its closed Code says why. This package depends on shared-contract/store for these
// two, whether or not a provider sits on a Store. Nothing is sent twice. Package failopen has the
// decorator under which a cache that is unavailable is as good as an empty one.
//
// # Concurrency
//
// Implementations are safe for concurrent use. Of any number of writers that hold the same token,
// one takes effect.
//
// The suite that every provider passes is contracttest.RunCache.
package cache
