package cacheredis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// removeBatch is how many keys one DEL of a simulation removes.
const removeBatch = 200

// SimulationConfig describes a simulation. Store.CallerClock must be nil: the simulation sets it.
// Both namespaces are the deployment's; the simulation makes its keys unique by a secret of its own.
type SimulationConfig struct {
	Store   StoreConfig
	Limiter LimiterConfig
}

// Simulation evaluates at given times, on keys of the kind sim that no enforcement reads, and
// removes them when it is closed. Keys that it could not remove expire at the latest a day after the
// policy's own lifetime. It remembers each of its keys, so its memory grows with the number of
// different subjects.
type Simulation struct {
	store   *Store
	limiter *EdgeRateLimiter
	now     atomic.Int64

	mu   sync.Mutex
	keys map[string]struct{}
}

// NewSimulation connects and waits until the server is usable or ctx ends.
func NewSimulation(ctx context.Context, config SimulationConfig) (*Simulation, error) {
	if config.Store.CallerClock != nil {
		return nil, errors.New("cacheredis: a simulation sets the caller's clock itself")
	}
	sim := &Simulation{keys: make(map[string]struct{})}
	config.Store.CallerClock = sim.now.Load
	sim.now.Store(1)
	secret := make([]byte, ratelimit.MinSecretBytes)
	_, _ = rand.Read(secret) // crypto/rand.Read never fails.
	config.Limiter.Secret = secret
	s, err := NewStore(config.Store)
	if err != nil {
		return nil, err
	}
	sim.store = s
	sim.limiter, err = NewEdgeRateLimiter(s, config.Limiter)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Start()
	if err := s.WaitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cacheredis: redis is not ready: %w", err), s.Close())
	}
	return sim, nil
}

// EvaluateAt decides a request as if the clock showed at, which is 1 ms or more after the epoch. It
// is for one caller at a time.
func (s *Simulation) EvaluateAt(ctx context.Context, at time.Time, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	ms := at.UnixMilli()
	if ms < 1 || ms > algorithm.MaxNowMillis {
		return nil, fmt.Errorf("cacheredis: simulated time %d ms is outside 1..%d", ms, algorithm.MaxNowMillis)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := s.limiter.StateKey(request.PolicyID, request.Subject); key != "" && s.keys != nil {
		s.keys[key] = struct{}{}
	}
	s.now.Store(ms)
	return s.limiter.Evaluate(ctx, request)
}

// Close removes the simulation's keys within ctx and ends its connections. It does nothing the
// second time.
func (s *Simulation) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	command := make([]any, 1, removeBatch+1)
	command[0] = "DEL"
	var failed error
	remove := func() {
		if len(command) == 1 || failed != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, s.store.commandTimeout)
		defer cancel()
		if _, _, failure := s.store.command(ctx, "del", command); failure != nil {
			failed = fmt.Errorf("cacheredis: keys of the simulation are left to expire: %w", failure)
		}
		command = command[:1]
	}
	for key := range s.keys {
		command = append(command, key)
		if len(command) == cap(command) {
			remove()
		}
	}
	remove()
	s.keys = nil
	return errors.Join(failed, s.store.Close())
}
