// Package replay asks policies what they would have decided of the requests in access logs, each at
// the time at which it was logged.
//
// [Run] reads logs, puts their lines in order, evaluates each request once under each policy, writes
// one JSON line for each evaluation where it is asked to, and gives a [Summary].
//
// # What it is not
//
// It decides nothing itself and knows no provider: a [Simulator] does. It draws nothing: the summary
// holds numbers.
//
// # Memory
//
// A log is never held as a whole. Held are the items that wait for their turn (within the bounds of
// package accesslog), one counter for each subject that was denied under a policy, and a fixed number
// of points over time. Raw subjects become digests as soon as their line is read.
//
// # Concurrency and errors
//
// Run uses one goroutine, so that evaluations have one order. It ends early with an error where a log
// cannot be read, the output cannot be written, the context ends, or the simulator says that it
// cannot be asked so. What was counted up to there is in the summary that comes with the error.
// Outcomes that are no decisions are counted by their names.
package replay
