package contracttest

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func clockTests() []contractTest {
	return []contractTest{
		{name: "StepsOfTheClock", needs: needs(CapabilitySetTime), runEach: stepsOfTheClock},
		{name: "LargeStepBackIsUnsafe", needs: needs(CapabilitySetTime), runEach: largeStepBackIsUnsafe},
		{name: "NoStepBackTolerated", needs: needs(CapabilitySetTime), runEach: noStepBackTolerated},
		{name: "StepsNeverRefillTwice", needs: needs(CapabilitySetTime), runEach: stepsNeverRefillTwice},
	}
}

// stepsOfTheClock: now, now-1 ms, now, now-3 s, now-10 min, and now+10 min with a write and back.
// Casebook 18.
func stepsOfTheClock(h *harness, k kind) {
	p := h.policy(k.config("steps", 5, time.Minute))
	l := h.b.New(h, p)
	subject := h.subject(0)
	want := newOracle(p, h.b.Source)
	start := h.align(time.Hour) + 30_000
	tenMinutes := 10 * time.Minute.Milliseconds()
	for _, offset := range []int64{0, -1, 0, -3000, 0, -tenMinutes, 0, tenMinutes, 0, tenMinutes - 2000, tenMinutes - 2001, tenMinutes} {
		now := start + offset
		h.setMillis(now)
		before := h.state(p, subject)
		expected := want.outcome(now, 1)
		h.expect(l, p, subject, 1, expected)
		if u, ok := expected.(ratelimit.Unavailable); ok {
			if after := h.state(p, subject); after != before {
				h.Fatalf("%+v at offset %d changed the state", u, offset)
			}
		}
	}
}

// largeStepBackIsUnsafe: beyond the tolerance nothing is decided or written, the shortfall is named
// to the millisecond, and after it the old state rules again. Casebook 18.
func largeStepBackIsUnsafe(h *harness, k kind) {
	p := h.policy(k.config("unsafe", 5, year))
	l := h.b.New(h, p)
	subject := h.subject(0)
	last := h.align(time.Hour) + 1234
	h.setMillis(last)
	h.admitted(l, p, subject, 3, 2)
	tolerance := defaultRegression.Milliseconds()
	for _, back := range []int64{tolerance + 1, tolerance + 5000, 10 * time.Minute.Milliseconds(), 24 * time.Hour.Milliseconds()} {
		h.setMillis(last - back)
		shortfall := time.Duration(back-tolerance) * time.Millisecond
		h.unchanged(p, subject, "an unsafe clock", func() {
			h.expect(l, p, subject, 1, ratelimit.Unavailable{
				PolicyID: p.ID(), RetryAfter: shortfall, Category: ratelimit.UnavailableClockUnsafe,
			})
		})
		// A new subject has no last write to go back behind.
		h.admitted(l, p, h.subject(1+int(back)), 1, 4)
	}
	// The shortfall after the last step has passed: the clock is tolerable again.
	h.setMillis(last - tolerance)
	h.denied(l, p, subject, 3, 2)
	h.admitted(l, p, subject, 2, 0)
	h.setMillis(last)
	h.denied(l, p, subject, 1, 0)
}

// noStepBackTolerated: a tolerance of zero makes one millisecond unsafe.
func noStepBackTolerated(h *harness, k kind) {
	config := k.config("strict", 5, year)
	config.MaxClockRegression = 0
	config.CleanupGrace = 0
	p := h.policy(config)
	l := h.b.New(h, p)
	subject := h.subject(0)
	last := h.align(time.Hour) + 10
	h.setMillis(last)
	h.admitted(l, p, subject, 1, 4)
	h.setMillis(last - 1)
	h.expect(l, p, subject, 1, ratelimit.Unavailable{
		PolicyID: p.ID(), RetryAfter: time.Millisecond, Category: ratelimit.UnavailableClockUnsafe,
	})
	h.setMillis(last)
	h.admitted(l, p, subject, 1, 3)
}

// stepsNeverRefillTwice: swinging the clock between two moments, within the tolerance or beyond it,
// grants each window's limit once. Casebook 18.
func stepsNeverRefillTwice(h *harness, k kind) {
	const limit = 5
	for i, swing := range []int64{1, 1000, defaultRegression.Milliseconds(), 3000, 10 * time.Minute.Milliseconds()} {
		p := h.policy(k.config("swing", limit, time.Minute))
		l := h.b.New(h, p)
		subject := h.subject(i)
		// The early moment is the last of a window and the late one in a later window, where most could go wrong.
		early := h.align(time.Hour) + time.Hour.Milliseconds() - 1
		admitted := 0
		for range 6 {
			for _, now := range []int64{early, early + swing} {
				h.setMillis(now)
				for range 2 * limit {
					if ratelimit.Allows(h.evaluate(l, p, subject, 1)) {
						admitted++
					}
				}
			}
		}
		if admitted > 2*limit {
			h.Errorf("swings of %d ms admitted %d, want at most %d", swing, admitted, 2*limit)
		}
		if admitted < limit {
			h.Errorf("swings of %d ms admitted %d, want at least %d", swing, admitted, limit)
		}
	}
}
