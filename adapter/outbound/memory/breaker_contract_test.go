package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func newBreaker(t testing.TB, maxKeys int, clock func() time.Time, policies ...*breaker.Policy) *CircuitBreaker {
	t.Helper()
	set, err := breaker.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewCircuitBreaker(BreakerConfig{Policies: set, Clock: clock, MaxKeys: maxKeys, UnavailableRetryAfter: 250 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCircuitBreakerContract(t *testing.T) {
	t.Parallel()
	contracttest.RunCircuitBreaker(t, func(testing.TB) *contracttest.BreakerBackend {
		clock := newManualClock()
		ports := map[*breaker.Policy]*CircuitBreaker{}
		find := func(p *breaker.Policy, resource breaker.ResourceDigest) *breakerState {
			b := ports[p]
			b.mu.Lock()
			defer b.mu.Unlock()
			state := b.states[breakerKey{policy: p, resource: resource}]
			if state == nil || state.expiresAt <= clock.peek().UnixMilli() {
				return nil
			}
			return state
		}
		return &contracttest.BreakerBackend{
			New: func(t testing.TB, policies ...*breaker.Policy) breaker.CircuitBreakerPort {
				b := newBreaker(t, 1000, clock.now, policies...)
				for _, p := range policies {
					ports[p] = b
				}
				return b
			},
			Source: ratelimit.SourceLocalMemory, Now: clock.peek, SetTime: clock.set, Advance: clock.advance,
			TTL: func(_ testing.TB, p *breaker.Policy, resource breaker.ResourceDigest) (time.Duration, bool) {
				state := find(p, resource)
				if state == nil {
					return 0, false
				}
				return time.Duration(state.expiresAt-clock.peek().UnixMilli()) * time.Millisecond, true
			},
			State: func(_ testing.TB, p *breaker.Policy, resource breaker.ResourceDigest) string {
				if state := find(p, resource); state != nil {
					return fmt.Sprintf("%+v", state.stored)
				}
				return ""
			},
			Missing: map[contracttest.Capability]string{
				contracttest.CapabilityShare:      "a breaker's state is its own and ends with it, so no other instance or revision meets it",
				contracttest.CapabilityPutForeign: "states are typed values that only the breaker makes",
				contracttest.CapabilityCorrupt:    "states are typed values that only the breaker makes",
			},
		}
	})
}
