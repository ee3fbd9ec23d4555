package contract

import (
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/test/embedded"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// start is where settable clocks begin.
var start = time.Date(2026, time.January, 2, 3, 4, 5, 6_000_000, time.UTC)

// TestEmbeddedRedis runs the suite over the provider on a Redis in this process.
func TestEmbeddedRedis(t *testing.T) {
	contracttest.RunEdgeRateLimit(t, func(t testing.TB) *contracttest.Backend {
		server := embedded.Start(t, start)
		now := start
		backend := newBench(t, server.Addr()).backend()
		backend.Now = func() time.Time { return now }
		backend.SetTime = func(to time.Time) {
			now = to
			server.SetTime(to)
		}
		backend.Advance = func(d time.Duration) { backend.SetTime(now.Add(d)) }
		return backend
	})
}

// TestRedisUnderASetClock runs the suite over the provider on a real Redis whose own clock is set, so
// that steps and expiry are real.
func TestRedisUnderASetClock(t *testing.T) {
	server := lanes.StartFaketime(t)
	contracttest.RunEdgeRateLimit(t, func(t testing.TB) *contracttest.Backend {
		// The test before may have left the clock a century ahead, where nothing is accepted.
		server.SetTime(start)
		backend := newBench(t, server.Addr).backend()
		backend.Serial = true
		backend.Now = server.Now
		backend.SetTime = server.SetTime
		backend.Advance = server.Advance
		return backend
	})
}

// TestRedis runs the suite over the provider on the real Redis of each lane, whose clock cannot be
// set.
func TestRedis(t *testing.T) {
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			contracttest.RunEdgeRateLimit(t, func(t testing.TB) *contracttest.Backend {
				b := newBench(t, server.Addr)
				backend := b.backend()
				backend.Now = func() time.Time {
					now, err := b.client.Time(t.Context()).Result()
					if err != nil {
						t.Fatal(err)
					}
					return now
				}
				backend.Missing = map[contracttest.Capability]string{
					contracttest.CapabilitySetTime: "the clock of this server is the machine's; TestRedisUnderASetClock sets one",
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
