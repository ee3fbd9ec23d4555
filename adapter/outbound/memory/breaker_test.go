package memory

import (
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func breakerPolicy(t testing.TB) *breaker.Policy {
	t.Helper()
	p, err := breaker.NewPolicy(breaker.PolicyConfig{
		ID: "p", Revision: 1, Trip: breaker.ConsecutiveFailures{Threshold: 3}, OpenTimeout: time.Second, MaxProbes: 1,
		ProbeLease: time.Second, ProbeSuccesses: 1, CleanupGrace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func failOnce(t testing.TB, b *CircuitBreaker, n int) breaker.RecordOutcome {
	t.Helper()
	acquired, err := b.Acquire(t.Context(), breaker.AcquireRequest{PolicyID: "p", Resource: subjectOf(t, n), Deadline: farAway})
	granted, ok := acquired.(breaker.Permitted)
	if err != nil || !ok {
		t.Fatalf("%+v, %v", acquired, err)
	}
	recorded, err := b.Record(t.Context(), breaker.RecordRequest{Permit: granted.Permit, Result: breaker.ResultFailure, Deadline: farAway})
	if err != nil {
		t.Fatal(err)
	}
	return recorded
}

// TestBreakerCapacity: at the bound a resource without state is refused one, those with one go on, and
// room comes back by expiry. Casebook 25.
func TestBreakerCapacity(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	b := newBreaker(t, 2, clock.now, breakerPolicy(t))
	counted := breaker.Recorded{
		PolicyID: "p", Status: breaker.StatusCounted, Before: breaker.StateClosed, After: breaker.StateClosed, Source: ratelimit.SourceLocalMemory,
	}
	full := breaker.Unavailable{PolicyID: "p", RetryAfter: 250 * time.Millisecond, Category: ratelimit.UnavailableCapacity}
	for _, step := range []struct {
		resource int
		want     breaker.RecordOutcome
	}{{0, counted}, {1, counted}, {2, full}, {0, counted}} {
		if got := failOnce(t, b, step.resource); got != step.want {
			t.Errorf("resource %d: %+v, want %+v", step.resource, got, step.want)
		}
	}
	clock.advance(2 * time.Second)
	if got := failOnce(t, b, 2); got != counted {
		t.Errorf("after the lifetime: %+v", got)
	}
	if n := b.StoredStates(); n != 1 {
		t.Errorf("%d states are held, want 1", n)
	}
}

// TestBreakerReclaims: what has expired goes as calls come in.
func TestBreakerReclaims(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	b := newBreaker(t, 1000, clock.now, breakerPolicy(t))
	for n := range 400 {
		failOnce(t, b, n)
		clock.advance(time.Millisecond)
	}
	for n := range 400 { // Each state is renewed in another order than it was made.
		failOnce(t, b, (n*7)%400)
		clock.advance(time.Millisecond)
	}
	if n := b.StoredStates(); n != 400 {
		t.Errorf("%d states, want 400", n)
	}
	clock.advance(time.Minute)
	for range 100 {
		if _, err := b.Read(t.Context(), breaker.ReadRequest{PolicyID: "p", Resource: subjectOf(t, 1), Deadline: farAway}); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.StoredStates(); n != 0 {
		t.Errorf("%d states are left", n)
	}
}

func TestBreakerConfig(t *testing.T) {
	t.Parallel()
	_, err := NewCircuitBreaker(BreakerConfig{})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Errorf("got %v, want three faults", err)
	}
}

// TestBreakerClockOutOfRange: a clock that no state can hold decides nothing.
func TestBreakerClockOutOfRange(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	b := newBreaker(t, 1, clock.now, breakerPolicy(t))
	clock.set(time.UnixMilli(-1))
	got, err := b.Read(t.Context(), breaker.ReadRequest{PolicyID: "p", Resource: subjectOf(t, 1), Deadline: farAway})
	if want := (breaker.Incompatible{PolicyID: "p", Category: ratelimit.IncompatibleProgram}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
