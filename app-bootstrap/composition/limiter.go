package composition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
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
	instruments  *instruments
	policies     *ratelimit.PolicySet
	digester     *ratelimit.SubjectDigester
	log          *slog.Logger
	randomSecret bool
}

var (
	_ ratelimit.EdgeRateLimitPort = (*Limiter)(nil)
	_ Readiness                   = (*Limiter)(nil)
)

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
	var secret []byte
	secret, l.randomSecret = secretOf(cfg.Key, cfg.Provider)
	var err error
	if l.digester, err = ratelimit.NewSubjectDigester(secret); err != nil {
		return nil, fmt.Errorf("composition: app.rate-limit.key: %w", err)
	}
	if l.instruments, err = newInstruments(telemetry); err != nil {
		return nil, err
	}
	if l.backend, err = newBackend(cfg, secret, log); err != nil {
		return nil, err
	}
	l.EdgeRateLimitPort = l.instruments.around(l.backend, cfg.Policies)
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

// WithPolicies gives a port that decides by other policies and shares everything else with this one: the
// store and its circuit, the slots or the states in memory, the telemetry, and what Close does. Both go
// on deciding; whoever changes policies while calls are under way exchanges the one for the other. A
// policy that is the same in both goes on where it was, any other revision or parameter starts fresh.
//
// A denial cache begins empty. Metrics tell up to 10,000 policy IDs apart over the life of the limiter,
// however often policies change; those that come later share the label "_other".
func (l *Limiter) WithPolicies(policies *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	if policies == nil {
		return nil, errors.New("composition: no policies")
	}
	port, err := l.backend.with(policies)
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	return l.instruments.around(port, policies), nil
}

// CircuitState is that of the circuit around Redis, breaker.StateInvalid where there is none.
func (l *Limiter) CircuitState() breaker.State { return l.backend.circuit() }

// Policies are those of the configuration.
func (l *Limiter) Policies() *ratelimit.PolicySet { return l.policies }

// Digester turns identities into subjects.
func (l *Limiter) Digester() *ratelimit.SubjectDigester { return l.digester }

// Close refuses new evaluations as closed, waits for those in flight within ctx, and ends
// everything. It does nothing the second time.
func (l *Limiter) Close(ctx context.Context) error { return l.backend.stop(ctx) }
