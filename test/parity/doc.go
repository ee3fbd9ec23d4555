// Package parity holds the three forms of every program to each other: the Lua on real Redis, the same
// Lua on an embedded Redis, and the Go handlers of the memory Store. Random programs, arguments,
// states and clocks; replies, stored states and lifetimes are equal to the last character.
//
// The scalar methods of a Store, and the commands that handlers are written in, are compared in the
// same way.
//
// Flags: -steps is the length of each walk, -seed repeats one. A failure prints the seed.
package parity
