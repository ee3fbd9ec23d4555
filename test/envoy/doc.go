// Package envoy tests the door for Envoy as a whole: a real gRPC client, the server of
// app-bootstrap/envoydoor, and the provider in memory and on the Redis of every lane.
//
// testdata/examples.yaml is a list of the documented examples of envoyproxy/ratelimit: rules, requests, and
// the codes, limits and remaining counts that it promises. Where an answer differs, the list says what it
// is there and why; every reason is one of rules.Differences.
package envoy
