// Package store is the narrow persistence port under the distributed algorithms, and the
// descriptors of the versioned programs that a Store evaluates atomically.
//
// Everything above a Store depends on this package, never on a Redis client. A Store says of each
// failure how certain it is: see [Error] and [Certainty]. Nothing here retries, and no
// implementation may send a command twice; the one exception is the exact source of a program
// after the server said that it does not know it, which is known not to have run.
//
// # Concurrency
//
// A Store is safe for concurrent use. Values passed in are not kept after a call returns.
package store
