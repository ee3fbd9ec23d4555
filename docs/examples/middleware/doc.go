// Command middleware is a small service whose routes are limited by the middleware of package httpedge:
// a login by client address, an API by key, and a route in shadow mode. It decides in the memory of its
// process; with provider: redis in config.yaml all instances count together.
//
//	go run ./docs/examples/middleware
package main
