package composition

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// gate lets evaluations through to ports that cannot be closed themselves, until it is closed.
type gate struct {
	mu       sync.Mutex
	closed   bool
	inFlight int
	empty    chan struct{} // closed when a drain found nothing in flight any more
}

// gated is a port behind a gate.
type gated struct {
	gate       *gate
	port       ratelimit.EdgeRateLimitPort
	policies   *ratelimit.PolicySet
	retryAfter time.Duration
}

// Evaluate asks the port, or answers Unavailable(CLOSED). A request that cannot be asked stays an
// error.
func (g *gated) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	if !g.gate.enter() {
		policy, _, err := g.policies.Admit(ctx, request)
		if err != nil {
			return nil, err
		}
		return ratelimit.Unavailable{PolicyID: policy.ID(), RetryAfter: g.retryAfter, Category: ratelimit.UnavailableClosed}, nil
	}
	defer g.gate.leave()
	return g.port.Evaluate(ctx, request)
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inFlight++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	if g.inFlight == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// drain closes the gate and waits until nothing is in flight or ctx ends.
func (g *gate) drain(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	if g.inFlight == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.empty == nil {
		g.empty = make(chan struct{})
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("composition: evaluations are still in flight: %w", ctx.Err())
	}
}
