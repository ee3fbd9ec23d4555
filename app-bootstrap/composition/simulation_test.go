package composition

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestSimulationOverMemory(t *testing.T) {
	t.Parallel()
	// The policies of a configuration for Redis can be simulated without one.
	for _, text := range []string{memoryText, redisAt("127.0.0.1:1")} {
		sim, err := NewSimulation(t.Context(), configure(t, text), config.ProviderMemory)
		if err != nil {
			t.Fatal(err)
		}
		digester, err := ratelimit.NewSubjectDigester(make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		ctx, r := within(t, 10*time.Second), request(t, digester, "p")
		for _, year := range []int{1999, 2100} { // before and after any real deadline
			start := time.Date(year, 5, 1, 12, 0, 0, 0, time.UTC)
			for i, step := range []struct {
				at   time.Duration
				want bool
			}{{0, true}, {1, true}, {59 * time.Minute, false}, {time.Hour, true}} {
				outcome, err := sim.EvaluateAt(ctx, start.Add(step.at), r)
				if err != nil || ratelimit.Allows(outcome) != step.want {
					t.Errorf("%d, step %d: %+v, %v", year, i, outcome, err)
				}
			}
		}
		var invalid *ratelimit.InvalidRequestError
		if _, err := sim.EvaluateAt(context.Background(), time.Unix(1, 0), r); !errors.As(err, &invalid) || invalid.Fault != ratelimit.FaultDeadline { //nolint:usetesting // without a deadline
			t.Errorf("without a deadline: %v", err)
		}
		ended, end := context.WithCancel(ctx)
		end()
		if _, err := sim.EvaluateAt(ended, time.Unix(1, 0), r); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if _, err := sim.EvaluateAt(ctx, time.Unix(0, 0), r); err == nil {
			t.Error("the epoch itself is taken")
		}
		for range 2 {
			if err := sim.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		if _, err := sim.EvaluateAt(ctx, time.Unix(1, 0), r); err == nil {
			t.Error("a closed simulation evaluates")
		}
	}
}

func TestSimulationRefuses(t *testing.T) {
	t.Parallel()
	ctx := within(t, 300*time.Millisecond)
	for name, test := range map[string]struct {
		cfg      config.RateLimit
		provider config.Provider
	}{
		"disabled":                {config.RateLimit{}, config.ProviderMemory},
		"no provider":             {configure(t, memoryText), config.ProviderInvalid},
		"redis without its part":  {configure(t, memoryText), config.ProviderRedis},
		"redis that is not there": {configure(t, redisAt(deadAddress(t))), config.ProviderRedis},
	} {
		if sim, err := NewSimulation(ctx, test.cfg, test.provider); err == nil || sim != nil {
			t.Errorf("%s: %v, %v", name, sim, err)
		}
	}
}

func TestNewLimiter(t *testing.T) {
	t.Parallel()
	ctx := within(t, 10*time.Second)
	l, err := NewLimiter(ctx, configure(t, memoryText), Telemetry{})
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := l.Evaluate(ctx, request(t, l.Digester(), "p"))
	if err != nil || !ratelimit.Allows(outcome) || l.Ready() != nil || l.Policies().Get("p") == nil {
		t.Errorf("got %+v, %v", outcome, err)
	}
	for range 2 {
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	soon := within(t, 200*time.Millisecond)
	if _, err := NewLimiter(soon, configure(t, redisAt(deadAddress(t))), Telemetry{}); err == nil {
		t.Error("a Redis that is not there is ready")
	} else {
		t.Log(err)
	}
	if _, err := NewLimiter(ctx, config.RateLimit{}, Telemetry{}); err == nil {
		t.Error("a disabled limiter was made")
	}
}
