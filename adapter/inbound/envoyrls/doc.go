// Package envoyrls is the door for Envoy: envoy.service.ratelimit.v3.RateLimitService over gRPC, with
// the rules of envoyproxy/ratelimit.
//
//	service, err := envoyrls.New(envoyrls.Config{Rules: loaded, Ports: limiter, Digester: digester, ...})
//	ratelimitv3.RegisterRateLimitServiceServer(server, service)
//
// # What a request is answered
//
// Every descriptor of a request is looked up in the rules (package rules); what has no rule is OK. All
// rules that apply are evaluated, each once, whatever the others come to: a descriptor that is allowed
// has spent its cost even where another one denies the request, and a denied one has spent nothing. The
// overall code is OVER_LIMIT where any descriptor's is.
//
// An outcome other than Evaluated is never OK. By default the call fails with an error, and Envoy's
// failure_mode_deny decides; with [FailureDeny] the descriptor is OVER_LIMIT. Where another descriptor
// of the same request is over its limit, the answer is OVER_LIMIT in both, and the code of the one that
// was not decided is UNKNOWN: what is denied stays denied.
//
// # Generations
//
// Rules, policies and the port that decides by them are one generation. [Service.Replace] swaps it as a
// whole; a request uses the one that it began with to its end.
//
// # Identity
//
// Domain and entries become the subject's digest, each preceded by its length, so that no separator
// makes two descriptors one. Nothing of them is logged or becomes part of an error.
//
// # What it is not
//
// It opens no listener, reads no file and knows no provider: app-bootstrap/envoydoor puts it behind a
// server.
//
// # Errors
//
// What a request may not say is InvalidArgument. What could not be decided is Unavailable, with
// google.rpc.ErrorInfo (the outcome's word, its policy and category) and google.rpc.RetryInfo where a
// time is known; an incompatible store is Internal, since asking again does not help.
//
// # Concurrency
//
// A Service is safe for concurrent use. Descriptors of one request are evaluated side by side unless
// two of them count at the same place, which keeps their order.
//
// The documents are docs/envoy.md and docs/examples/envoy.
package envoyrls
