// Package problem is the one shape in which the doors that speak HTTP say what went wrong: an RFC 9457
// problem detail without a type of its own, told apart by a code.
//
// It is for adapter/inbound alone, knows no limiter, and is safe for concurrent use. Nothing in it
// fails: a problem is made of texts and a number, which always encode.
package problem
