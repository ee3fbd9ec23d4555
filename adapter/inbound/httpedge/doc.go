// Package httpedge puts the limiter in front of HTTP: a middleware of net/http for Go services, and
// forward-auth for reverse proxies that ask before they pass a request on.
//
//	limit, err := httpedge.NewMiddleware(httpedge.Config{
//		Limiter: limiter, Policies: policies, Digester: digester,
//		Policy:   httpedge.OnePolicy("login"),
//		Subject:  subject, // of httpedge.ClientAddress, APIKey, Route, or one's own
//		Deadline: 200 * time.Millisecond,
//		Headers:  httpedge.DefaultHeaders(),
//		Mode:     httpedge.ModeEnforce,
//	})
//	mux.Handle("POST /login", limit(login))
//
// The middleware has the form that net/http, chi and gorilla share, and adds nothing around the
// ResponseWriter: streaming and hijacking work as without it.
//
// # What a client sees
//
//	allowed                       the handler's own answer, with the header fields
//	denied                        429 (or DenyStatus), the fields and Retry-After
//	unavailable, indeterminate    503 and Retry-After
//	incompatible                  500
//	nobody to limit, or cost      400
//	unknown policy                500
//
// Every answer that is not the handler's is an RFC 9457 problem. Nothing but an evaluated admission
// lets a request pass, except in shadow mode, which lets all of them pass and says what it would have
// done.
//
// # Privacy
//
// An address or a key becomes a digest at once. No answer, error, report or log line holds it.
//
// # Concurrency and errors
//
// Handlers are safe for concurrent use. Constructors say everything that is wrong with a configuration
// and repair nothing. The functions of a configuration run on the request's goroutine.
//
// docs/http-edge.md explains it, and docs/examples/middleware, nginx and caddy run.
package httpedge
