// Package service assembles the standalone service: the JSON API of adapter/inbound/httpapi, and where
// it is configured the forward-auth of adapter/inbound/httpedge, over the port that
// app-bootstrap/composition provides, behind an HTTP server.
//
//	fx.New(composition.Module(cfg.RateLimit), service.Module(cfg.Service, cfg.RateLimit.DefaultPolicy))
//
// [Module] is for fx; [Server] is the same without it. The package also names the JSON shapes of the
// API for programs that write them elsewhere.
//
// # What it is not
//
// It reads no configuration, handles no signals and never exits: cmd/edgelimit does.
//
// # Start and stop
//
// Start listens and returns; what serves then runs in the background, and fails through
// [Server.Failed]. Stop makes /readyz answer 503, closes the listener, and waits for requests in
// flight until the shutdown timeout or its context ends; what is left then is cut off, and an error
// says so.
//
// # Concurrency
//
// A Server is safe for concurrent use; it starts once and stops once.
package service
