package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func simulationConfig(t testing.TB, address string) SimulationConfig {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policy(t))
	if err != nil {
		t.Fatal(err)
	}
	return SimulationConfig{
		Store: StoreConfig{Address: address, CommandTimeout: 10 * testTimeout, PoolSize: 2, Namespace: "test"},
		Limiter: LimiterConfig{
			Policies: set, Namespace: "test", MaxInFlight: 1, CommandTimeout: 10 * testTimeout, UnavailableRetryAfter: testRetryAfter,
		},
	}
}

// TestSimulation evaluates at the given time on keys of the kind sim, and removes every one of them.
func TestSimulation(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	config := simulationConfig(t, server.address())
	sim, err := NewSimulation(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	const subjects = removeBatch + 3
	for i := range subjects {
		r := request(t)
		r.Subject = subject(t, fmt.Sprint(i))
		outcome, err := sim.EvaluateAt(t.Context(), time.UnixMilli(int64(i+1)), r)
		if err != nil || !ratelimit.Allows(outcome) {
			t.Fatalf("%v, %v", outcome, err)
		}
		got := server.received("EVALSHA")
		if key := got[3]; !strings.HasPrefix(key, "edgelimit:test:rate:login:sim:") {
			t.Errorf("key %q", key)
		}
		if clock := got[len(got)-1]; clock != fmt.Sprint(i+1) {
			t.Errorf("clock is %s, want %d", clock, i+1)
		}
	}
	for _, at := range []time.Time{time.UnixMilli(0), time.UnixMilli(-1), time.UnixMilli(1<<42 + 1), {}} {
		if _, err := sim.EvaluateAt(t.Context(), at, request(t)); err == nil || !strings.Contains(err.Error(), "outside 1..4398046511104") {
			t.Errorf("at %v: %v", at, err)
		}
	}
	var invalid *ratelimit.InvalidRequestError
	if _, err := sim.EvaluateAt(t.Context(), time.UnixMilli(1), ratelimit.RateLimitRequest{}); !errors.As(err, &invalid) {
		t.Errorf("an empty request: %v", err)
	}
	if server.stored() != subjects {
		t.Errorf("%d keys are stored", server.stored())
	}
	before := server.count("DEL")
	for range 2 {
		if err := sim.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if server.stored() != 0 || server.count("DEL")-before != 2 {
		t.Errorf("%d keys are left after %d DEL", server.stored(), server.count("DEL")-before)
	}
	outcome, err := sim.EvaluateAt(t.Context(), time.UnixMilli(1), request(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unavailable(ratelimit.UnavailableClosed), outcome); diff != "" {
		t.Errorf("after Close, outcome (-want +got):\n%s", diff)
	}
}

// TestSimulationsDiffer: two of them never share a key.
func TestSimulationsDiffer(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	for range 2 {
		sim, err := NewSimulation(t.Context(), simulationConfig(t, server.address()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sim.EvaluateAt(t.Context(), time.UnixMilli(1), request(t)); err != nil {
			t.Fatal(err)
		}
		server.on("DEL", replies("-NOPERM x\r\n"))
		if err := sim.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "left to expire") {
			t.Errorf("Close without the right to remove: %v", err)
		}
		server.on("DEL", nil)
	}
	if server.stored() != 2 {
		t.Errorf("%d keys, want one of each simulation", server.stored())
	}
}

func TestNewSimulation(t *testing.T) {
	t.Parallel()
	config := simulationConfig(t, "127.0.0.1:6379")
	config.Store.CallerClock = func() int64 { return 1 }
	_, err := NewSimulation(t.Context(), config)
	wantFaults(t, err, "sets the caller's clock itself")

	config = simulationConfig(t, "nowhere")
	config.Store.PoolSize = 0
	_, err = NewSimulation(t.Context(), config)
	wantFaults(t, err, "is not host:port", "pool size")

	config = simulationConfig(t, "127.0.0.1:6379")
	config.Limiter.MaxInFlight, config.Limiter.Policies = 0, nil
	_, err = NewSimulation(t.Context(), config)
	wantFaults(t, err, "max in flight", "no policies")

	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	_, err = NewSimulation(ctx, simulationConfig(t, reservedAddress(t)))
	wantFaults(t, err, "redis is not ready")
}
