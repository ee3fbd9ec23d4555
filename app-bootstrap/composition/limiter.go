package composition

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Readiness tells whether the limiter can decide.
type Readiness interface {
	// Ready is nil when it can, and otherwise says why not.
	Ready() error
}

// Limiter is a limiter with everything that belongs to it. It is the port, and its readiness.
type Limiter struct {
	ratelimit.EdgeRateLimitPort // instrumented

	backend      backend
	policies     *ratelimit.PolicySet
	digester     *ratelimit.SubjectDigester
	log          *slog.Logger
	randomSecret bool
}

var (
	_ ratelimit.EdgeRateLimitPort = (*Limiter)(nil)
	_ Readiness                   = (*Limiter)(nil)
)

// backend is one provider behind the port.
type backend interface {
	ratelimit.EdgeRateLimitPort
	Readiness
	// start begins to look for the store and returns at once.
	start()
	// wait waits until the store is usable, or gives the reason why it is not when ctx ends.
	wait(ctx context.Context) error
	// stop refuses new evaluations, waits for those in flight within ctx, and ends everything.
	stop(ctx context.Context) error
}

// NewLimiter makes a limiter, starts it and waits within ctx until it can decide. It is for a
// command that asks once; a service uses Module, which does not wait. The caller closes it.
func NewLimiter(ctx context.Context, cfg config.RateLimit, telemetry Telemetry) (*Limiter, error) {
	l, err := build(cfg, telemetry)
	if err != nil {
		return nil, err
	}
	l.start()
	if err := l.backend.wait(ctx); err != nil {
		// What ctx allows is over; closing an idle limiter needs no time.
		return nil, errors.Join(fmt.Errorf("composition: the limiter is not ready: %w", err), l.Close(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// build makes a limiter that is not started.
func build(cfg config.RateLimit, telemetry Telemetry) (*Limiter, error) {
	if !cfg.Enabled {
		return nil, errors.New("composition: app.rate-limit is not enabled")
	}
	log := telemetry.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Limiter{policies: cfg.Policies, log: log}
	secret := cfg.Key.Secret.Reveal()
	if cfg.Key.Secret.IsZero() && cfg.Provider == config.ProviderMemory {
		l.randomSecret = true
		secret = make([]byte, ratelimit.MinSecretBytes)
		_, _ = rand.Read(secret) // crypto/rand.Read never fails
	}
	var err error
	if l.digester, err = ratelimit.NewSubjectDigester(secret); err != nil {
		return nil, fmt.Errorf("composition: app.rate-limit.key: %w", err)
	}
	switch cfg.Provider {
	case config.ProviderRedis:
		l.backend, err = newRedisBackend(cfg, secret, log)
	case config.ProviderMemory:
		l.backend, err = newMemoryBackend(cfg)
	case config.ProviderInvalid:
		err = errors.New("composition: app.rate-limit.provider is missing")
	}
	if err != nil {
		return nil, err
	}
	l.EdgeRateLimitPort, err = Instrument(l.backend, cfg.Policies, telemetry)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// start begins to look for the store and returns at once.
func (l *Limiter) start() {
	if l.randomSecret {
		l.log.Warn("edgelimit: no secret is configured, this process uses a random one: digests differ between instances and do not survive a restart")
	}
	l.backend.start()
}

// Ready is nil when evaluations can be decided, and otherwise says why not.
func (l *Limiter) Ready() error { return l.backend.Ready() }

// Policies are those of the configuration.
func (l *Limiter) Policies() *ratelimit.PolicySet { return l.policies }

// Digester turns identities into subjects.
func (l *Limiter) Digester() *ratelimit.SubjectDigester { return l.digester }

// Close refuses new evaluations as closed, waits for those in flight within ctx, and ends
// everything. It does nothing the second time.
func (l *Limiter) Close(ctx context.Context) error { return l.backend.stop(ctx) }

// redisBackend decides in Redis.
type redisBackend struct {
	*cacheredis.EdgeRateLimiter
	store *cacheredis.Store
}

func newRedisBackend(cfg config.RateLimit, secret []byte, log *slog.Logger) (backend, error) {
	store, err := cacheredis.NewStore(storeConfig(cfg, log))
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	limiter, err := cacheredis.NewEdgeRateLimiter(store, limiterConfig(cfg, secret))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("composition: %w", err), store.Close())
	}
	return &redisBackend{EdgeRateLimiter: limiter, store: store}, nil
}

func storeConfig(cfg config.RateLimit, log *slog.Logger) cacheredis.StoreConfig {
	return cacheredis.StoreConfig{
		Address:        cfg.Redis.Address,
		Username:       cfg.Redis.Username,
		Password:       string(cfg.Redis.Password.Reveal()),
		Database:       cfg.Redis.Database,
		TLS:            cfg.Redis.TLS,
		CommandTimeout: cfg.Redis.CommandTimeout,
		PoolSize:       cfg.Redis.PoolSize,
		Namespace:      cfg.Key.Namespace,
		Programs:       store.RatePrograms(),
		Logger:         log,
	}
}

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

func (b *redisBackend) Ready() error                   { return b.store.Ready() }
func (b *redisBackend) start()                         { b.store.Start() }
func (b *redisBackend) wait(ctx context.Context) error { return b.store.WaitReady(ctx) }

func (b *redisBackend) stop(ctx context.Context) error {
	return errors.Join(b.Drain(ctx), b.store.Close())
}

// memoryBackend decides in this process.
type memoryBackend struct {
	gate
}

func newMemoryBackend(cfg config.RateLimit) (backend, error) {
	limiter, err := memory.NewEdgeRateLimiter(memory.Config{
		Policies: cfg.Policies, MaxKeys: cfg.Memory.MaxKeys, UnavailableRetryAfter: cfg.UnavailableRetryAfter,
	})
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	return &memoryBackend{gate{port: limiter, policies: cfg.Policies, retryAfter: cfg.UnavailableRetryAfter}}, nil
}

func (b *memoryBackend) Ready() error {
	if b.isClosed() {
		return errors.New("the limiter was stopped")
	}
	return nil
}

func (b *memoryBackend) start() {}

func (b *memoryBackend) wait(context.Context) error { return nil }

func (b *memoryBackend) stop(ctx context.Context) error { return b.drain(ctx) }
