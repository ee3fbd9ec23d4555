// Package contract runs the contract suites over the Redis provider: on an embedded Redis, on a real
// Redis whose clock is set, and on the real Redis of each lane.
package contract
