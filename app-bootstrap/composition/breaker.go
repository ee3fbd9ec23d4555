package composition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/knadh/koanf/v2"
	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/internal/connect"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// breakerModuleName is what fx shows in its errors and events.
const breakerModuleName = "edgelimit-circuit-breaker"

// CircuitBreakerModule provides the circuit breaker of a configuration, or nothing at all where it is
// not enabled: [breaker.CircuitBreakerPort], [*breaker.PolicySet] and [*breaker.ResourceDigester]. It
// has no readiness: whoever depends on a breaker serves without it, too.
func CircuitBreakerModule(cfg config.CircuitBreaker) fx.Option {
	if !cfg.Enabled {
		return fx.Options()
	}
	return fx.Module(breakerModuleName,
		fx.Supply(cfg, fx.Private),
		fx.Provide(newBreakerFromGraph, fx.Private),
		fx.Provide(provideBreaker),
	)
}

// CircuitBreakerFromHost is CircuitBreakerModule of what stands at app.circuit-breaker in the host
// application's own koanf.
func CircuitBreakerFromHost(k *koanf.Koanf) fx.Option {
	cfg, err := config.CircuitBreakerFromKoanf(k)
	if err != nil {
		return fx.Error(err)
	}
	return CircuitBreakerModule(cfg)
}

// breakerHost is what the module takes from its host's graph.
type breakerHost struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    config.CircuitBreaker
	Logger    *slog.Logger `optional:"true"`
}

// breakerProvided is what the module gives to its host's graph.
type breakerProvided struct {
	fx.Out

	Port     breaker.CircuitBreakerPort
	Policies *breaker.PolicySet
	Digester *breaker.ResourceDigester
}

// circuitBreaker is a breaker with everything that belongs to it.
type circuitBreaker struct {
	port     breaker.CircuitBreakerPort
	policies *breaker.PolicySet
	digester *breaker.ResourceDigester
	start    func()
	stop     func(ctx context.Context) error
}

func newBreakerFromGraph(h breakerHost) (*circuitBreaker, error) {
	c, err := buildBreaker(h.Config, h.Logger)
	if err != nil {
		return nil, err
	}
	h.Lifecycle.Append(fx.Hook{
		OnStart: func(context.Context) error {
			c.start()
			return nil
		},
		OnStop: c.stop,
	})
	return c, nil
}

func provideBreaker(c *circuitBreaker) breakerProvided {
	return breakerProvided{Port: c.port, Policies: c.policies, Digester: c.digester}
}

// buildBreaker makes a circuit breaker that is not started.
func buildBreaker(cfg config.CircuitBreaker, log *slog.Logger) (*circuitBreaker, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &circuitBreaker{policies: cfg.Policies}
	secret, random := secretOf(cfg.Key, cfg.Provider)
	var err error
	if c.digester, err = breaker.NewResourceDigester(secret); err != nil {
		return nil, fmt.Errorf("composition: app.circuit-breaker.key: %w", err)
	}
	switch cfg.Provider {
	case config.ProviderRedis:
		err = c.overRedis(cfg, secret, log)
	case config.ProviderMemory:
		err = c.inMemory(cfg)
	case config.ProviderInvalid:
		err = errors.New("app.circuit-breaker.provider is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	c.port = tellBreaker(c.port, log)
	begin := c.start
	c.start = func() {
		if random {
			log.Warn("edgelimit: no secret of the circuit breaker is configured, this process uses a random one: digests do not survive a restart")
		}
		begin()
	}
	return c, nil
}

func (c *circuitBreaker) overRedis(cfg config.CircuitBreaker, secret []byte, log *slog.Logger) error {
	s, err := cacheredis.NewStore(connect.StoreConfig(cfg.Redis, cfg.Key, store.BreakerPrograms(), log))
	if err != nil {
		return err
	}
	port, err := cacheredis.NewCircuitBreaker(s, cacheredis.BreakerConfig{
		Policies:              cfg.Policies,
		Namespace:             cfg.Key.Namespace,
		Secret:                secret,
		MaxInFlight:           cfg.Admission.MaxInFlight,
		CommandTimeout:        cfg.Redis.CommandTimeout,
		UnavailableRetryAfter: cfg.UnavailableRetryAfter,
	})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	c.port, c.start = port, s.Start
	c.stop = func(ctx context.Context) error { return errors.Join(port.Drain(ctx), s.Close()) }
	return nil
}

func (c *circuitBreaker) inMemory(cfg config.CircuitBreaker) error {
	port, err := memory.NewCircuitBreaker(memory.BreakerConfig{
		Policies: cfg.Policies, MaxKeys: cfg.Memory.MaxKeys, UnavailableRetryAfter: cfg.UnavailableRetryAfter,
	})
	if err != nil {
		return err
	}
	// It waits for nothing and holds nothing but memory, so there is nothing to start and to stop.
	c.port, c.start, c.stop = port, func() {}, func(context.Context) error { return nil }
	return nil
}
