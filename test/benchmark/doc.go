// Command benchmark compares edgelimit with other rate limiters, and shows how it grows. It is a module
// of its own, so that what it is compared with is not among the dependencies of the library.
//
//	benchmark compare [flags]   all contenders over Redis and in memory, in interleaved rounds
//	benchmark scale [flags]     edgelimit alone: callers, keys, policies, memory
//	benchmark doors [flags]     services for Envoy: edgelimit's and envoyproxy/ratelimit
//	benchmark render [flags]    write the page and the charts from what was saved
//
// It is started by test/scripts/benchmark.sh, from anywhere in the tree. A Redis server is started for
// the run and ended with it; see package redisproc for how to choose another. compare, scale and doors save
// what they measured as JSON and then do what render does: they write docs/benchmarks.md and the charts
// beside it. With -only, nothing but the JSON is written, and only where -json says so: a part of the
// contenders is no comparison to publish.
//
// Package contender holds what is compared and what is fair, package measure drives it, package report
// judges and writes.
package main
