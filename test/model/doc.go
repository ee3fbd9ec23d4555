// Package model is what each rate program must do, in Go: the arithmetic of
// shared-contract/algorithm between the program's wire arguments, the stored hash as text, and the
// reply. Golden vectors and differential tests hold the Lua programs to it; they share no code.
package model
