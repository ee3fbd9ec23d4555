package contracttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func denialTests() []contractTest {
	return []contractTest{
		{name: "DenialSpendsNothing", runEach: denialSpendsNothing},
		{name: "DenialWritesNothing", needs: needs(CapabilityState), runEach: denialWritesNothing},
	}
}

func retryTests() []contractTest {
	return []contractTest{
		{name: "RetryAfterIsExact", needs: needs(CapabilitySetTime), runEach: retryAfterIsExact},
		{name: "RetryAfterOnceWaited", needs: needs(CapabilityAdvance), runEach: retryAfterOnceWaited},
		{name: "ResetAtIsExact", needs: needs(CapabilitySetTime), runEach: resetAtIsExact},
	}
}

// denialSpendsNothing: after any number of denials exactly what was left is admitted. Casebook 15
// (a denied cost leaves no debt).
func denialSpendsNothing(h *harness, k kind) {
	p := h.policy(k.config("kept", 10, year))
	l := h.b.New(h, p)
	subject := h.subject(0)
	h.admitted(l, p, subject, 7, 3)
	for range 20 {
		h.denied(l, p, subject, 4, 3)
		h.denied(l, p, subject, 10, 3)
	}
	h.admitted(l, p, subject, 3, 0)
	for range 20 {
		h.denied(l, p, subject, 1, 0)
	}
}

// denialWritesNothing: the stored state is the same before and after.
func denialWritesNothing(h *harness, k kind) {
	p := h.policy(k.config("unwritten", 10, year))
	l := h.b.New(h, p)
	subject := h.subject(0)
	h.admitted(l, p, subject, 7, 3)
	if h.state(p, subject) == "" {
		h.Fatal("an admission stored nothing")
	}
	for _, cost := range []int64{4, 10} {
		h.unchanged(p, subject, "a denial", func() { h.denied(l, p, subject, cost, 3) })
	}
	before := h.state(p, subject)
	h.admitted(l, p, subject, 3, 0)
	if h.state(p, subject) == before {
		h.Fatal("an admission changed nothing")
	}
	h.unchanged(p, subject, "a denial of a spent limit", func() { h.denied(l, p, subject, 1, 0) })
}

// retryAfterIsExact: with no other traffic the denied request is admitted at exactly the moment that
// the denial named, and not a millisecond before; after a tolerated step back of the clock too.
func retryAfterIsExact(h *harness, k kind) {
	shapes := []struct {
		limit  int64
		window time.Duration
	}{{1, time.Millisecond}, {1, time.Second}, {3, time.Second}, {7, 1009 * time.Millisecond}, {1000, time.Hour}, {50, month}}
	for i, shape := range shapes {
		p := h.policy(k.config(fmt.Sprintf("retry-%d", i), shape.limit, shape.window))
		l := h.b.New(h, p)
		rng := rand.New(rand.NewPCG(21, uint64(i)))
		now := h.align(min(shape.window, time.Hour))
		window := shape.window.Milliseconds()
		denials := 0
		for step := 0; denials < 12 && step < 500; step++ {
			now += rng.Int64N(window/4 + 2)
			h.setMillis(now)
			cost := 1 + rng.Int64N(shape.limit)
			d := h.decide(l, p, h.subject(i), cost)
			if d.Allowed {
				continue
			}
			denials++
			if denials%3 == 0 {
				now -= 1 + rng.Int64N(1000)
				h.setMillis(now)
				if d = h.decide(l, p, h.subject(i), cost); d.Allowed {
					h.Fatalf("a step back admits what was denied: %+v", d)
				}
			}
			wait := d.RetryAfter.Milliseconds()
			h.setMillis(now + wait - 1)
			if early := h.evaluate(l, p, h.subject(i), cost); ratelimit.Allows(early) {
				h.Fatalf("limit %d per %v, cost %d: admitted 1 ms before the %d ms that the denial at %d named", shape.limit, shape.window, cost, wait, now)
			}
			now += wait
			h.setMillis(now)
			if inTime := h.evaluate(l, p, h.subject(i), cost); !ratelimit.Allows(inTime) {
				h.Fatalf("limit %d per %v, cost %d: %+v after the %d ms that the denial named, want it allowed", shape.limit, shape.window, cost, inTime, wait)
			}
		}
		if denials < 12 {
			h.Fatalf("limit %d per %v: only %d denials to judge", shape.limit, shape.window, denials)
		}
	}
}

// retryAfterOnceWaited: retryAfterIsExact for a clock that can only be waited for.
func retryAfterOnceWaited(h *harness, k kind) {
	p := h.policy(k.config("waited", 2, 400*time.Millisecond))
	l := h.b.New(h, p)
	subject := h.subject(0)
	for range 3 {
		d := h.decide(l, p, subject, 2)
		for tries := 0; d.Allowed && tries < 1000; tries++ {
			d = h.decide(l, p, subject, 2)
		}
		if d.Allowed {
			h.Fatal("never denied")
		}
		if d.RetryAfter > 2*400*time.Millisecond {
			h.Fatalf("retry after %v with a window of 400 ms", d.RetryAfter)
		}
		h.b.Advance(d.RetryAfter)
		if after := h.decide(l, p, subject, 2); !after.Allowed {
			h.Fatalf("%+v once %v had passed, want it allowed", after, d.RetryAfter)
		}
	}
}

// resetAtIsExact: at reset-at the full limit is there, and a millisecond before it is not.
func resetAtIsExact(h *harness, k kind) {
	shapes := []struct {
		limit  int64
		window time.Duration
		cost   int64
	}{{1, time.Millisecond, 1}, {1, time.Second, 1}, {7, time.Second, 2}, {10, time.Minute, 10}, {1000, year, 1}}
	for i, shape := range shapes {
		p := h.policy(k.config(fmt.Sprintf("reset-%d", i), shape.limit, shape.window))
		l := h.b.New(h, p)
		now := h.align(min(shape.window, time.Hour)) + shape.window.Milliseconds()/3
		h.setMillis(now)
		subject := h.subject(i)
		d := h.admitted(l, p, subject, shape.cost, shape.limit-shape.cost)
		reset := d.ResetAt.UnixMilli()
		if reset <= now {
			h.Fatalf("limit %d per %v: reset at %d, not after %d", shape.limit, shape.window, reset, now)
		}
		// A denial names the same moment.
		if shape.limit == shape.cost {
			if denied := h.denied(l, p, subject, 1, 0); denied.ResetAt != d.ResetAt {
				h.Errorf("limit %d per %v: a denial says reset at %v, the admission said %v", shape.limit, shape.window, denied.ResetAt, d.ResetAt)
			}
		}
		h.setMillis(reset - 1)
		if early := h.decide(l, p, subject, shape.limit); early.Allowed {
			h.Errorf("limit %d per %v: the full limit is there 1 ms before reset-at", shape.limit, shape.window)
		}
		h.setMillis(reset)
		h.admitted(l, p, subject, shape.limit, 0)
	}
}
