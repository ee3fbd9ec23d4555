package contracttest

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func passageTests() []contractTest {
	return []contractTest{
		{name: "IdleThenBurst", needs: needs(CapabilitySetTime), runEach: idleThenBurst},
		{name: "SustainedWindows", needs: needs(CapabilitySetTime), runEach: sustainedWindows},
		{name: "SustainedTTL", needs: needs(CapabilitySetTime, CapabilityTTL), runEach: sustainedTTL},
	}
}

// idleThenBurst: idle time saves up no more than the limit. Casebook 19.
func idleThenBurst(h *harness, k kind) {
	const limit = 10
	p := h.policy(k.config("idle", limit, time.Second))
	l := h.b.New(h, p)
	subject := h.subject(0)
	start := h.align(time.Minute)
	h.admitted(l, p, subject, 1, limit-1)
	h.setMillis(start + 10*time.Minute.Milliseconds())
	for left := int64(limit - 1); left >= 0; left-- {
		h.admitted(l, p, subject, 1, left)
	}
	for range limit {
		h.denied(l, p, subject, 1, 0)
	}
}

// sustainedWindows: under steady traffic at twice the limit the quota comes back in each window, and
// no more than the algorithm's bound in all. Casebook 20.
func sustainedWindows(h *harness, k kind) {
	const limit, windows = 10, 3
	p := h.policy(k.config("steady", limit, time.Second))
	l := h.b.New(h, p)
	subject := h.subject(0)
	start := h.align(time.Minute)
	want := newOracle(p, h.b.Source)
	admitted := make([]int, windows)
	for ms := int64(0); ms < windows*1000; ms += 50 {
		h.setMillis(start + ms)
		expected := want.outcome(start+ms, 1)
		h.expect(l, p, subject, 1, expected)
		if ratelimit.Allows(expected) {
			admitted[ms/1000]++
		}
	}
	total := 0
	for i, n := range admitted {
		if n < limit/2 {
			h.Errorf("window %d admitted %d of %d", i, n, limit)
		}
		total += n
	}
	// Fixed window and log: limit in each. Sliding counter: fewer. Bucket, GCRA: one burst and the refill.
	if total < limit*windows-limit || total > limit*windows+limit {
		h.Errorf("admitted %v in %d windows of %d", admitted, windows, limit)
	}
}

// sustainedTTL: use does not prolong what is stored: for aligned windows it never outlives the end of
// what it counts plus grace; for a log the last admission's window plus grace; for a bucket and GCRA
// the full limit plus grace plus the time to fill it. Casebook 20.
func sustainedTTL(h *harness, k kind) {
	const limit = 10
	p := h.policy(k.config("unprolonged", limit, time.Second))
	l := h.b.New(h, p)
	subject := h.subject(0)
	start := h.align(time.Minute)
	var firstExpiry int64
	window := int64(-1)
	for ms := int64(0); ms < 3000; ms += 50 {
		now := start + ms
		h.setMillis(now)
		if !ratelimit.Allows(h.evaluate(l, p, subject, 1)) {
			continue
		}
		ttl, ok := h.b.TTL(h, p, subject)
		if !ok {
			h.Fatalf("no TTL after an admission at %d ms", ms)
		}
		expiry := now + ttl.Milliseconds()
		if ms/1000 != window {
			window, firstExpiry = ms/1000, expiry
		}
		if k.aligned && expiry > firstExpiry {
			h.Fatalf("at %d ms the state lives until %d, at the window's first admission until %d", ms, expiry, firstExpiry)
		}
		if most := now + 3*time.Second.Milliseconds() + defaultGrace.Milliseconds(); expiry > most {
			h.Fatalf("at %d ms the state lives until %d, want %d at most", ms, expiry, most)
		}
	}
}
