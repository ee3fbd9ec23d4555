package contract

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/test/embedded"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestCircuitOverEmbeddedRedis runs the rate-limit suite over a limiter whose circuit one failure opens,
// for longer than any test takes: nothing that the suite does may count as one.
func TestCircuitOverEmbeddedRedis(t *testing.T) {
	var changes atomic.Int64
	t.Run("suite", func(t *testing.T) {
		contracttest.RunEdgeRateLimit(t, func(t testing.TB) *contracttest.Backend {
			server := embedded.Start(t, start)
			now := start
			b := newBench(t, server.Addr())
			b.circuit = &cacheredis.CircuitConfig{
				Failures: 1, OpenTimeout: time.Minute, Changed: func(cacheredis.CircuitChange) { changes.Add(1) },
			}
			backend := b.backend()
			backend.Now = func() time.Time { return now }
			backend.SetTime = func(to time.Time) {
				now = to
				server.SetTime(to)
			}
			backend.Advance = func(d time.Duration) { backend.SetTime(now.Add(d)) }
			return backend
		})
	})
	if n := changes.Load(); n != 0 {
		t.Errorf("the circuit changed %d times", n)
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestComposedCircuit loses a real Redis under the whole composition, by a kill and by silence: callers are
// told so without the wait, by whichever policies they ask, and are served again by themselves.
func TestComposedCircuit(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]struct{ away, back func(*lanes.Process) }{
		"killed": {(*lanes.Process).Kill, (*lanes.Process).Restart},
		"silent": {(*lanes.Process).Pause, (*lanes.Process).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := lanes.StartProcess(t, lanes.Options{})
			set, err := ratelimit.NewPolicySet(circuitPolicy(t, "p"))
			if err != nil {
				t.Fatal(err)
			}
			others, err := ratelimit.NewPolicySet(circuitPolicy(t, "q"))
			if err != nil {
				t.Fatal(err)
			}
			log := &lockedBuffer{}
			ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
			defer cancel()
			l, err := composition.NewLimiter(ctx, config.RateLimit{
				Enabled: true, Provider: config.ProviderRedis, DefaultPolicy: "p", Policies: set,
				Redis:     config.Redis{Address: server.Addr, CommandTimeout: 50 * time.Millisecond, PoolSize: 4, Coalesce: true},
				Key:       config.Key{Namespace: "composed", Secret: config.NewSecret([]byte(strings.Repeat("s", 32)))},
				Admission: config.Admission{MaxInFlight: 64}, UnavailableRetryAfter: time.Second,
				Circuit: config.Circuit{Enabled: true, Failures: 5, OpenTimeout: 250 * time.Millisecond},
			}, composition.Telemetry{Logger: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := l.Close(ctx); err != nil {
					t.Error(err)
				}
			}()
			other, err := l.WithPolicies(others)
			if err != nil {
				t.Fatal(err)
			}
			subject, err := l.Digester().Digest("one")
			if err != nil {
				t.Fatal(err)
			}
			ask := func(port ratelimit.EdgeRateLimitPort, policy ratelimit.PolicyID) ratelimit.Outcome {
				outcome, err := port.Evaluate(ctx, ratelimit.RateLimitRequest{PolicyID: policy, Subject: subject, Cost: 1})
				if err != nil {
					t.Fatal(err)
				}
				return outcome
			}
			open := func(port ratelimit.EdgeRateLimitPort, policy ratelimit.PolicyID) func() bool {
				return func() bool {
					u, ok := ask(port, policy).(ratelimit.Unavailable)
					return ok && u.Category == ratelimit.UnavailableCircuit && u.RetryAfter >= time.Millisecond && u.RetryAfter <= 250*time.Millisecond
				}
			}
			served := func(port ratelimit.EdgeRateLimitPort, policy ratelimit.PolicyID) func() bool {
				return func() bool { return ratelimit.Allows(ask(port, policy)) }
			}
			until(t, "the first is served", served(l, "p"))
			lose.away(server)
			until(t, "the circuit opens", open(l, "p"))
			until(t, "it is open for other policies", open(other, "q"))
			lose.back(server)
			until(t, "other policies are served", served(other, "q"))
			until(t, "the first are served", served(l, "p"))
			if l.CircuitState() != breaker.StateClosed {
				t.Errorf("serves while %v", l.CircuitState())
			}
			text := log.String()
			if strings.Count(text, "edgelimit: circuit opened") != 1 || strings.Count(text, "edgelimit: circuit closed") != 1 {
				t.Errorf("the log says:\n%s", text)
			}
		})
	}
}

func circuitPolicy(t *testing.T, id ratelimit.PolicyID) *ratelimit.RateLimitPolicy {
	t.Helper()
	p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID: id, Revision: 1, Algorithm: ratelimit.AlgorithmTokenBucket,
		Parameters: ratelimit.TokenBucketParameters{Capacity: 1_000_000, RefillTokens: 1, RefillPeriod: 50 * time.Minute},
		MaxCost:    1, CleanupGrace: time.Minute, FailurePolicy: ratelimit.FailClosed,
	})
	if err != nil {
		t.Fatal(fmt.Errorf("policy %s: %w", id, err))
	}
	return p
}

// until polls until the condition holds.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
