package contract

import (
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/test/embedded"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestBreakerOverMemoryStore runs the breaker's suite over the provider for Redis, unchanged, on a
// memory store.
func TestBreakerOverMemoryStore(t *testing.T) {
	contracttest.RunCircuitBreaker(t, func(t testing.TB) *contracttest.BreakerBackend {
		return newMemoryBench(t).breakerBackend()
	})
}

// TestBreakerOnEmbeddedRedis runs the breaker's suite on a Redis in this process.
func TestBreakerOnEmbeddedRedis(t *testing.T) {
	contracttest.RunCircuitBreaker(t, func(t testing.TB) *contracttest.BreakerBackend {
		server := embedded.Start(t, start)
		now := start
		backend := newBench(t, server.Addr()).breakerBackend()
		backend.Now = func() time.Time { return now }
		backend.SetTime = func(to time.Time) {
			now = to
			server.SetTime(to)
		}
		backend.Advance = func(d time.Duration) { backend.SetTime(now.Add(d)) }
		return backend
	})
}

// TestBreakerUnderASetClock runs the breaker's suite on a real Redis whose own clock is set.
func TestBreakerUnderASetClock(t *testing.T) {
	server := lanes.StartFaketime(t)
	contracttest.RunCircuitBreaker(t, func(t testing.TB) *contracttest.BreakerBackend {
		server.SetTime(start)
		backend := newBench(t, server.Addr).breakerBackend()
		backend.Serial = true
		backend.Now = server.Now
		backend.SetTime = server.SetTime
		backend.Advance = server.Advance
		return backend
	})
}

// TestBreaker runs the breaker's suite on the real Redis of each lane.
func TestBreaker(t *testing.T) {
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			contracttest.RunCircuitBreaker(t, func(t testing.TB) *contracttest.BreakerBackend {
				b := newBench(t, server.Addr)
				backend := b.breakerBackend()
				backend.Now = func() time.Time {
					now, err := b.client.Time(t.Context()).Result()
					if err != nil {
						t.Fatal(err)
					}
					return now
				}
				backend.Missing = map[contracttest.Capability]string{
					contracttest.CapabilitySetTime: "the clock of this server is the machine's; TestBreakerUnderASetClock sets one",
				}
				backend.Advance = func(d time.Duration) {
					for end := backend.Now().Add(d); backend.Now().Before(end); {
						time.Sleep(min(d, 5*time.Millisecond))
					}
				}
				return backend
			})
		})
	}
}
