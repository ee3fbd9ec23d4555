// Package edge is what the doors in front of requests (net/http, forward-auth, gRPC) have in common:
// who asks ([Subject], [TrustedProxies]), one question to the port ([Asker]), what the answer means
// ([Verdict]), and the header fields that tell a client of it ([Fields]).
//
// It knows no transport. The doors give it texts that they read from a request, each within bounds,
// and write the fields that it gives. Packages httpedge and grpcedge show its types to their users.
//
// # What it holds
//
// Only [ratelimit.Allows] makes a [VerdictAllow]. A raw identity goes into the digester and nowhere
// else: no error, report or log line of this package repeats one.
//
// # Concurrency
//
// Everything is immutable after construction and safe for concurrent use.
package edge
