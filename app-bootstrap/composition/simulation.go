package composition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Simulation evaluates at given times, apart from all state that enforcement uses.
type Simulation interface {
	// EvaluateAt decides a request as if the clock showed at, 1 ms or more after the Unix epoch. It
	// is for one caller at a time. The deadline of ctx or of the request is one of real time.
	EvaluateAt(ctx context.Context, at time.Time, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error)
	// Close removes the simulation's state.
	Close(ctx context.Context) error
}

// NewSimulation makes a simulation of the configured policies over a provider, which need not be the
// configured one: the memory provider needs none of its settings. For Redis the configuration must
// be one for Redis, since nothing else was judged; it waits within ctx until Redis is ready.
func NewSimulation(ctx context.Context, cfg config.RateLimit, provider config.Provider) (Simulation, error) {
	if !cfg.Enabled {
		return nil, errors.New("composition: app.rate-limit is not enabled")
	}
	switch provider {
	case config.ProviderMemory:
		return newMemorySimulation(cfg)
	case config.ProviderRedis:
		if cfg.Provider != config.ProviderRedis {
			return nil, fmt.Errorf("composition: app.rate-limit.provider is %v: a simulation over redis needs a configuration for redis", cfg.Provider)
		}
		sim, err := cacheredis.NewSimulation(ctx, cacheredis.SimulationConfig{
			Store: storeConfig(cfg, nil), Limiter: limiterConfig(cfg, cfg.Key.Secret.Reveal()),
		})
		if err != nil {
			return nil, fmt.Errorf("composition: %w", err)
		}
		return sim, nil
	case config.ProviderInvalid:
	}
	return nil, fmt.Errorf("composition: no provider %v", provider)
}

// memorySimulation is the memory provider under a clock that is set.
type memorySimulation struct {
	limiter  ratelimit.EdgeRateLimitPort
	policies *ratelimit.PolicySet

	mu     sync.Mutex
	now    time.Time
	closed bool
}

func newMemorySimulation(cfg config.RateLimit) (*memorySimulation, error) {
	sim := &memorySimulation{policies: cfg.Policies, now: time.UnixMilli(1)}
	limiter, err := memory.NewEdgeRateLimiter(memory.Config{
		Policies: cfg.Policies, MaxKeys: cfg.Memory.MaxKeys, UnavailableRetryAfter: cfg.UnavailableRetryAfter,
		Clock: func() time.Time { return sim.now },
	})
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	sim.limiter = limiter
	return sim, nil
}

// EvaluateAt decides a request at a time.
func (s *memorySimulation) EvaluateAt(ctx context.Context, at time.Time, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	if ms := at.UnixMilli(); ms < 1 || ms > algorithm.MaxNowMillis {
		return nil, fmt.Errorf("composition: simulated time %d ms is outside 1..%d", ms, algorithm.MaxNowMillis)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("composition: the simulation was closed")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, _, err := s.policies.Admit(ctx, request); err != nil {
		return nil, err
	}
	// The memory provider compares the deadline with its clock, which shows simulated time: the real
	// deadline was judged above, and one of simulated time takes its place.
	s.now, request.Deadline = at, at.Add(time.Hour)
	return s.limiter.Evaluate(context.WithoutCancel(ctx), request)
}

// Close forgets all state.
func (s *memorySimulation) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.limiter = true, nil
	return nil
}
