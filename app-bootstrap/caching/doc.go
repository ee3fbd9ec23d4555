// Package caching puts the cache of app.cache.redis together from its configuration, as an fx module in
// a host application:
//
//	app := fx.New(caching.FromHost(k), catalog.Module, ...)   // k is the host's own koanf
//
// Enabled, the module "edgelimit-cache" provides [cache.CachePort]; disabled, it provides nothing at
// all, so consumers take it as optional. From the host's graph it takes a *slog.Logger, if it is there.
//
// # What it is not
//
// It is no part of the rate limiter, and package composition does not know it: the two share neither
// settings nor a connection, and the limiter does not know the fail-open decorator. A test in test/isolation
// holds them to that.
//
// # Lifecycle
//
// fx makes the cache for the first consumer that takes it. OnStart begins to look for the Redis and
// returns at once; until it is found, and whenever it is lost, the cache is unavailable, which with
// fail-open means empty. OnStop closes the connection.
//
// # Errors
//
// A configuration that is wrong is an *config.Error, which FromHost turns into an error of the whole
// application, before anything starts.
//
// # Concurrency
//
// What the module provides is safe for concurrent use.
package caching
