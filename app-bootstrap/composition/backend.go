package composition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/internal/connect"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit/denialcache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// backend is one provider behind the port.
type backend interface {
	ratelimit.EdgeRateLimitPort
	Readiness
	// with gives a port that decides by other policies and shares everything else.
	with(policies *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error)
	// circuit is the state of the circuit around the store, StateInvalid where there is none.
	circuit() breaker.State
	// start begins to look for the store and returns at once.
	start()
	// wait waits until the store is usable, or gives the reason why it is not when ctx ends.
	wait(ctx context.Context) error
	// stop refuses new evaluations, waits for those in flight within ctx, and ends everything.
	stop(ctx context.Context) error
}

// newBackend makes the configured provider.
func newBackend(cfg config.RateLimit, secret []byte, log *slog.Logger) (backend, error) {
	var b backend
	var err error
	switch cfg.Provider {
	case config.ProviderRedis:
		b, err = newRedisBackend(cfg, secret, log)
	case config.ProviderMemory:
		b, err = newMemoryBackend(cfg)
	case config.ProviderInvalid:
		err = errors.New("composition: app.rate-limit.provider is missing")
	}
	if err != nil || !cfg.DenialCache.Enabled {
		return b, err
	}
	cached := &denialBackend{backend: b, maxEntries: cfg.DenialCache.MaxEntries, retryAfter: cfg.UnavailableRetryAfter}
	if cached.port, err = cached.over(b, cfg.Policies); err != nil {
		return nil, errors.Join(err, b.stop(context.Background())) // Nothing is in flight.
	}
	return cached, nil
}

// redisBackend decides in Redis.
type redisBackend struct {
	*cacheredis.EdgeRateLimiter
	store *cacheredis.Store
}

func newRedisBackend(cfg config.RateLimit, secret []byte, log *slog.Logger) (backend, error) {
	connection, err := cacheredis.NewStore(storeConfig(cfg, log))
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	settings := limiterConfig(cfg, secret)
	if cfg.Circuit.Enabled {
		settings.Circuit = &cacheredis.CircuitConfig{
			Failures: cfg.Circuit.Failures, OpenTimeout: cfg.Circuit.OpenTimeout, Changed: newCircuitLog(log, time.Now).note,
		}
	}
	limiter, err := cacheredis.NewEdgeRateLimiter(connection, settings)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("composition: %w", err), connection.Close())
	}
	return &redisBackend{EdgeRateLimiter: limiter, store: connection}, nil
}

func storeConfig(cfg config.RateLimit, log *slog.Logger) cacheredis.StoreConfig {
	return connect.StoreConfig(cfg.Redis, cfg.Key, store.RatePrograms(), log)
}

// limiterConfig has no circuit: whoever enforces adds it.
func limiterConfig(cfg config.RateLimit, secret []byte) cacheredis.LimiterConfig {
	return cacheredis.LimiterConfig{
		Policies:              cfg.Policies,
		Namespace:             cfg.Key.Namespace,
		Secret:                secret,
		MaxInFlight:           cfg.Admission.MaxInFlight,
		CommandTimeout:        cfg.Redis.CommandTimeout,
		UnavailableRetryAfter: cfg.UnavailableRetryAfter,
	}
}

func (b *redisBackend) with(policies *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	return b.WithPolicies(policies)
}

func (b *redisBackend) Ready() error                   { return b.store.Ready() }
func (b *redisBackend) circuit() breaker.State         { return b.CircuitState() }
func (b *redisBackend) start()                         { b.store.Start() }
func (b *redisBackend) wait(ctx context.Context) error { return b.store.WaitReady(ctx) }

func (b *redisBackend) stop(ctx context.Context) error {
	return errors.Join(b.Drain(ctx), b.store.Close())
}

// memoryBackend decides in this process.
type memoryBackend struct {
	gated
	limiter *memory.EdgeRateLimiter
}

func newMemoryBackend(cfg config.RateLimit) (backend, error) {
	limiter, err := memory.NewEdgeRateLimiter(memory.Config{
		Policies: cfg.Policies, MaxKeys: cfg.Memory.MaxKeys, UnavailableRetryAfter: cfg.UnavailableRetryAfter,
	})
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	return &memoryBackend{gated{&gate{}, limiter, cfg.Policies, cfg.UnavailableRetryAfter}, limiter}, nil
}

func (b *memoryBackend) with(policies *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	limiter, err := b.limiter.WithPolicies(policies)
	if err != nil {
		return nil, err
	}
	return &gated{b.gate, limiter, policies, b.retryAfter}, nil
}

func (b *memoryBackend) Ready() error {
	if b.gate.isClosed() {
		return errors.New("the limiter was stopped")
	}
	return nil
}

func (b *memoryBackend) circuit() breaker.State { return breaker.StateInvalid }

func (b *memoryBackend) start() {}

func (b *memoryBackend) wait(context.Context) error { return nil }

func (b *memoryBackend) stop(ctx context.Context) error { return b.gate.drain(ctx) }

// denialBackend remembers denials of another backend. It has a gate of its own: what was stopped answers
// nothing, not even what it remembers.
type denialBackend struct {
	backend
	port       ratelimit.EdgeRateLimitPort
	gate       gate
	maxEntries int
	retryAfter time.Duration
}

// over puts a cache of its own, which holds nothing yet, over a port: that denials are forgotten when
// policies change costs one question each.
func (b *denialBackend) over(port ratelimit.EdgeRateLimitPort, policies *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	cache, err := denialcache.New(port, denialcache.Config{Policies: policies, MaxEntries: b.maxEntries})
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	return &gated{&b.gate, cache, policies, b.retryAfter}, nil
}

// Evaluate denies from memory what it can.
func (b *denialBackend) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return b.port.Evaluate(ctx, request)
}

func (b *denialBackend) with(policies *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	port, err := b.backend.with(policies)
	if err != nil {
		return nil, err
	}
	return b.over(port, policies)
}

func (b *denialBackend) stop(ctx context.Context) error {
	return errors.Join(b.gate.drain(ctx), b.backend.stop(ctx))
}
