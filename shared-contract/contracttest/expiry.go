package contracttest

import (
	"fmt"
	"time"
)

func expiryTests() []contractTest {
	return []contractTest{
		{name: "TTLIsFinite", needs: needs(CapabilityTTL), runEach: ttlIsFinite},
		{name: "TTLCoversTheState", needs: needs(CapabilityTTL, CapabilitySetTime), runEach: ttlCoversTheState},
		{name: "StateGoesByItself", needs: needs(CapabilityState, CapabilitySetTime), runEach: stateGoesByItself},
	}
}

// ttlIsFinite: after each write, whatever the first cost, what is stored expires: not before the
// full limit is there and the grace has passed, and in a bounded time. Casebook 24.
func ttlIsFinite(h *harness, k kind) {
	const limit = 10
	p := h.policy(k.config("finite", limit, time.Hour))
	l := h.b.New(h, p)
	for i, costs := range [][]int64{{1, 1, 1}, {10}, {5, 5}, {9, 1}, {3, 2, 1, 1, 1, 1, 1}} {
		subject := h.subject(i)
		for _, cost := range costs {
			if d := h.decide(l, p, subject, cost); !d.Allowed {
				h.Fatalf("cost %d: %+v, want it allowed", cost, d)
			}
			ttl, ok := h.b.TTL(h, p, subject)
			if !ok || ttl <= 0 {
				h.Fatalf("first cost %d: TTL %v, finite %v", costs[0], ttl, ok)
			}
			if most := 3*time.Hour + defaultGrace; ttl > most {
				h.Fatalf("first cost %d: lives for %v, want %v at most", costs[0], ttl, most)
			}
		}
	}
	if ttl, ok := h.b.TTL(h, p, h.subject(100)); ok {
		h.Errorf("a subject never seen lives for %v", ttl)
	}
}

// ttlCoversTheState: the expiry is at least reset-at plus grace at each write, and exactly the one
// that shared-contract/algorithm names.
func ttlCoversTheState(h *harness, k kind) {
	for i, window := range []time.Duration{time.Millisecond, time.Second, time.Hour, year} {
		p := h.policy(k.config(fmt.Sprintf("covered-%d", i), 10, window))
		l := h.b.New(h, p)
		subject := h.subject(i)
		want := newOracle(p, h.b.Source)
		now := h.align(min(window, time.Hour))
		for range 12 {
			expected := want.outcome(now, 1)
			h.expect(l, p, subject, 1, expected)
			ttl, ok := h.b.TTL(h, p, subject)
			if expiry := now + ttl.Milliseconds(); !ok || expiry != want.expiresAt {
				h.Fatalf("window %v: the state lives until %d (finite: %v), want %d", window, expiry, ok, want.expiresAt)
			}
			now += window.Milliseconds()/7 + 1
			h.setMillis(now)
		}
	}
}

// stateGoesByItself: past its expiry nothing is left, though nobody asks again. Casebook 21, 25.
func stateGoesByItself(h *harness, k kind) {
	p := h.policy(k.config("gone", 10, time.Second))
	l := h.b.New(h, p)
	subject := h.subject(0)
	want := newOracle(p, h.b.Source)
	now := h.align(time.Minute)
	h.expect(l, p, subject, 3, want.outcome(now, 3))
	h.setMillis(want.expiresAt - 1)
	if h.state(p, subject) == "" {
		h.Error("the state was gone before its expiry")
	}
	h.setMillis(want.expiresAt + 1)
	if s := h.state(p, subject); s != "" {
		h.Errorf("past its expiry the state is still %q", s)
	}
	h.admitted(l, p, subject, 10, 0)
}
