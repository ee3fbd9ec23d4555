// Package contracttest is the conformance suite of the rate-limit port. An adapter or a decorator
// that passes it needs no tests of its own for what a decision means, only for what it adds.
//
// A provider's test gives a [Factory]; each subtest asks it for a fresh [Backend]:
//
//	func TestContract(t *testing.T) {
//		contracttest.RunEdgeRateLimit(t, newBackend)
//	}
//
// [RunCache] is the suite of the cache port, made in the same way over a [CacheFactory], and
// [RunStore] that of the persistence port over a [StoreFactory].
//
// What a backend cannot do, it declares in Missing with the reason, and the suite prints what it
// leaves out for that. An empty Missing means that everything was tested. A capability that is
// neither there nor declared missing fails the suite, so nothing is left out in silence.
//
// # What it holds a provider to
//
// Where the clock can be set, every field of every decision equals that of shared-contract/algorithm
// at the same clock reading, over directed and random sequences. Everywhere, denials spend nothing,
// retry-after and reset-at are honest, concurrency admits exactly the limit, and state that is not
// this policy's is refused and left alone.
//
// # What it is not
//
// It says nothing about what only one technology can do: lost connections, failure certainty, script
// caches, capacity. It is for tests alone: no production package imports it.
//
// # Concurrency
//
// Subtests run in parallel unless the backend says Serial; each uses its own backend.
package contracttest
