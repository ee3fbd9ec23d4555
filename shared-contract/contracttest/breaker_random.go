package contracttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

func breakerRandomTests() []breakerTest {
	return []breakerTest{
		{name: "RandomHistories", needs: needs(CapabilitySetTime), run: randomHistories},
	}
}

// randomHistories: every outcome of long random histories is that of the pure transitions at the same
// clock reading.
func randomHistories(h *breakerHarness) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 7))
		config := consecutive(fmt.Sprintf("random-%d", seed), 1+random.Int64N(4))
		if seed%2 == 1 {
			buckets := 1 + random.Int64N(5)
			config.Trip = breaker.FailureRate{
				Window: time.Duration(buckets) * 250 * time.Millisecond, Buckets: buckets, MinimumCalls: 1 + random.Int64N(5), RatePermille: 500,
			}
		}
		config.OpenTimeout = time.Duration(1+random.Int64N(2000)) * time.Millisecond
		config.ProbeLease = time.Duration(1+random.Int64N(2000)) * time.Millisecond
		config.MaxProbes, config.ProbeSuccesses = 1+random.Int64N(4), 1+random.Int64N(3)
		p := h.policy(config)
		h.history(random, h.one(h.b.New(h, p), p, int(seed)))
	}
}

func (h *breakerHarness) history(random *rand.Rand, o one) {
	h.Helper()
	m := o.policy.Machine()
	var model breaker.Stored
	var permits []breaker.Permit
	now := h.hold()
	expiresAt := int64(0)
	steps := []int64{0, 0, 1, 1, 10, 100, m.OpenTimeoutMillis, m.ProbeLeaseMillis, -1, -m.Clock.MaxRegressionMillis, -3000, m.LifetimeMillis()}
	for step := range 150 {
		move := steps[random.IntN(len(steps))]
		if move < 0 && random.IntN(4) > 0 || move == m.LifetimeMillis() && random.IntN(8) > 0 {
			move = 1
		}
		if move < 0 && now >= expiresAt {
			move = 1 // What has expired may be gone, and so not reveal a step back.
		}
		now += move
		h.setMillis(now)
		var t breaker.Transition
		var next breaker.Stored
		switch {
		case len(permits) == 0 || random.IntN(2) == 0:
			got := o.acquire()
			tok := ""
			if granted, ok := got.(breaker.Permitted); ok {
				tok = granted.Permit.Token
				permits = append(permits, granted.Permit)
			}
			t, next = m.Acquire(model, now, tok)
			if want := breaker.ConcludeAcquire(o.policy, o.resource, tok, t, h.b.Source); got != want {
				h.Fatalf("step %d, acquire at %d:\n got %+v\nwant %+v", step, now, got, want)
			}
		default:
			permit := permits[len(permits)-1-random.IntN(min(len(permits), 4))]
			result := breaker.Results()[random.IntN(3)]
			got := o.tell(permit, result)
			t, next = m.Record(model, now, breaker.Report{
				Kind: permit.Kind, Token: permit.Token, Generation: permit.Generation, AcquiredAt: permit.AcquiredAt, Result: result,
			})
			if want := breaker.ConcludeRecord(o.policy, t, h.b.Source); got != want {
				h.Fatalf("step %d, record %v at %d:\n got %+v\nwant %+v", step, result, now, got, want)
			}
		}
		if t.Writes {
			expiresAt = t.EffectiveNowMillis + m.LifetimeMillis()
		}
		model = next
		seen, err := o.port.Read(h.Context(), breaker.ReadRequest{PolicyID: o.policy.ID(), Resource: o.resource, Deadline: h.future()})
		if want := breaker.ConcludeRead(o.policy, m.Read(model, now), h.b.Source); err != nil || seen != want {
			h.Fatalf("step %d, read at %d:\n got %+v, %v\nwant %+v", step, now, seen, err, want)
		}
	}
}
