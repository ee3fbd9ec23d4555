// Package hotkey loads one key of a real Redis from many goroutines and compares the number admitted
// with what an exact model admits at the server times of the replies.
package hotkey
