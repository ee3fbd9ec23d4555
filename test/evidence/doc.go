// Package evidence holds docs/evidence.md to the tests that it names, and the places where people look
// to what R1 claims and does not claim.
package evidence
