// Package breaker tests the circuit breaker where its parts meet: the Lua programs against the pure
// transitions, step by step over random histories and damaged states, and several processes that share
// one breaker on one Redis.
package breaker
