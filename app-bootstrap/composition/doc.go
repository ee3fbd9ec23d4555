// Package composition puts the limiter together from its configuration: as an fx module in a host
// application, or by hand for a command that asks once or replays.
//
//	app := fx.New(composition.FromHost(k), orders.Module, ...)   // k is the host's own koanf
//
// # What the module gives
//
// Enabled, the module "edgelimit" provides [ratelimit.EdgeRateLimitPort], [*ratelimit.PolicySet],
// [*ratelimit.SubjectDigester] and [Readiness]; disabled, it provides nothing at all, so consumers
// take them as optional:
//
//	type params struct {
//		fx.In
//		Limiter ratelimit.EdgeRateLimitPort `optional:"true"`
//	}
//
// From the host's graph it takes, each if it is there, a *slog.Logger, a metric.MeterProvider and a
// trace.TracerProvider. Nothing global is used.
//
// [CircuitBreakerFromHost] does the same for a circuit breaker, from a section and with a connection of
// its own; docs/circuit-breaker.md says what it gives.
//
// # What stands around a provider
//
// From the inside: the circuit around Redis (in the provider), a cache of denials if it is turned on, and
// what tells of evaluations, which so sees each of them wherever it was answered.
// [Limiter.WithPolicies] gives a second port of other policies over the same provider.
//
// # Lifecycle
//
// fx makes the limiter for the first consumer that takes any of the four. Its OnStart begins to look
// for the store and returns at once: the service starts without Redis and becomes ready by itself,
// and until then evaluations are Unavailable. Its OnStop refuses new evaluations as closed, waits for
// those in flight within fx's stop timeout, and closes. fx stops in reverse order, so whoever takes
// the port has stopped before.
//
// # What it is not
//
// It decides nothing and knows no program of Redis. It never falls back from one provider to another.
//
// # Errors
//
// A configuration that is wrong is an *config.Error, which FromHost turns into an error of the whole
// application, before anything starts.
//
// # Concurrency
//
// Everything that the module provides is safe for concurrent use.
//
// A runnable example stands in docs/examples/monolith.
package composition
