// Package httpapi is the JSON API of the service: one evaluation, the policies, and two probes.
//
//	POST /v1/rate-limit/evaluate   one evaluation
//	GET  /v1/policies              the policies, without secrets
//	GET  /livez                    the process answers
//	GET  /readyz                   evaluations can be decided, or the reason why not
//
// It knows the port of shared-contract/ratelimit and the standard library, and no provider. It
// listens on nothing: [New] makes an [net/http.Handler], and app-bootstrap/service serves it.
//
// # What it is strict about
//
// A request body is one JSON object in UTF-8 whose names are compared by their exact letters.
// Unknown names, names given twice, null, numbers that are not written as integers, unpaired
// surrogates and anything after the object are refused. A body that is not of that shape gets 400,
// one of the right shape with a value out of range gets 422; both are RFC 9457 problems that name
// the field.
//
// # Privacy
//
// A raw subject is turned into a digest as soon as it is read. No response, no log line and no error
// of this package repeats it, nor any other text of a body.
//
// # Concurrency and errors
//
// A handler is safe for concurrent use. A panic while it serves becomes a 500 problem and a log
// line. The deadline of an evaluation starts when its body has been read; the context that the port
// gets is the request's, so that the provider learns of a caller who went away and says itself
// whether anything was spent.
//
// docs/http-api.md shows every shape, and a test runs the examples there.
package httpapi
