// Package vectors holds golden vectors, one file per rate program: policy, stored state before, clock
// and cost, and then the seven fields, the state after and the lifetime that the call sets. One file
// drives the arithmetic in Go, the Lua programs on real Redis and the reply parser.
//
// The files are written by `go test ./test/vectors -update` alone; a file that is missing or differs
// from what the generator makes fails the test.
package vectors
