// Package differential holds the Lua programs on real Redis to the arithmetic in Go: the same
// arguments and the same stored state give the same seven fields, the same state after and the same
// lifetime, to the last character.
package differential
