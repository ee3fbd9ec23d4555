package contracttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func decisionTests() []contractTest {
	return []contractTest{
		{name: "RandomSequence", needs: needs(CapabilitySetTime), runEach: randomSequence},
		{name: "RemainingCountsDown", runEach: remainingCountsDown},
		{name: "MixedCosts", runEach: mixedCosts},
		{name: "SlidingThreeMillionPerHour", needs: needs(CapabilitySetTime), run: slidingThreeMillionPerHour},
		{name: "RefillRemainderIsCarried", needs: needs(CapabilitySetTime), run: refillRemainderIsCarried},
	}
}

// randomSequence: over random costs, steps of the clock in both directions and several shapes of
// policy, every field of every decision is that of shared-contract/algorithm, and what is not an
// admission leaves the state alone.
func randomSequence(h *harness, k kind) {
	shapes := []struct {
		limit  int64
		window time.Duration
	}{
		{1, time.Millisecond},
		{1, time.Second},
		{3, 7 * time.Millisecond},
		{7, time.Second},
		{10, 3 * time.Second},
		{100, time.Minute},
		{3_000_000, time.Hour},
		{1000, year},
	}
	const steps = 120
	for i, shape := range shapes {
		shape.limit = min(shape.limit, k.mostLimit)
		p := h.policy(k.config(fmt.Sprintf("random-%d", i), shape.limit, shape.window))
		l := h.b.New(h, p)
		subject := h.subject(i)
		want := newOracle(p, h.b.Source)
		rng := rand.New(rand.NewPCG(20, uint64(i)))
		now := h.align(min(shape.window, time.Hour))
		for step := range steps {
			now += randomStep(rng, shape.window.Milliseconds())
			h.setMillis(now)
			cost := 1 + rng.Int64N(shape.limit)
			if rng.IntN(2) == 0 {
				cost = 1 + rng.Int64N(max(shape.limit/4, 1))
			}
			before := h.state(p, subject)
			expected := want.outcome(now, cost)
			got := h.evaluate(l, p, subject, cost)
			if got != expected {
				h.Fatalf("limit %d per %v, step %d, cost %d at %d:\n got %+v\nwant %+v", shape.limit, shape.window, step, cost, now, got, expected)
			}
			if after := h.state(p, subject); !ratelimit.Allows(got) && after != before {
				h.Fatalf("limit %d per %v, step %d: %+v changed the state\nbefore %q\n after %q", shape.limit, shape.window, step, got, before, after)
			}
		}
	}
}

// randomStep is mostly a small step forward, seldom one back (tolerated or not) or over windows.
func randomStep(rng *rand.Rand, window int64) int64 {
	switch n := rng.IntN(20); {
	case n < 2:
		return 0
	case n < 10:
		return 1 + rng.Int64N(max(window/8, 1))
	case n < 15:
		return rng.Int64N(window + 1)
	case n < 17:
		return window + rng.Int64N(window+1)
	case n < 19:
		return -rng.Int64N(defaultRegression.Milliseconds() + 1)
	default:
		return -rng.Int64N(3 * defaultRegression.Milliseconds())
	}
}

// remainingCountsDown: from limit-1 to 0, then denials that say 0.
func remainingCountsDown(h *harness, k kind) {
	const limit = 25
	p := h.policy(k.config("down", limit, year))
	l := h.b.New(h, p)
	subject := h.subject(0)
	for left := int64(limit - 1); left >= 0; left-- {
		h.admitted(l, p, subject, 1, left)
	}
	for range 3 {
		h.denied(l, p, subject, 1, 0)
	}
}

// mixedCosts: costs above one, and the maximum, are all or nothing.
func mixedCosts(h *harness, k kind) {
	config := k.config("mixed", 10, year)
	config.MaxCost = 7
	p := h.policy(config)
	l := h.b.New(h, p)
	subject := h.subject(0)
	h.admitted(l, p, subject, 7, 3)
	h.denied(l, p, subject, 7, 3)
	h.denied(l, p, subject, 4, 3)
	h.admitted(l, p, subject, 2, 1)
	h.denied(l, p, subject, 2, 1)
	h.admitted(l, p, subject, 1, 0)
	h.denied(l, p, subject, 1, 0)
}

// slidingThreeMillionPerHour: the weighted product of a large count and a long window does not
// overflow, so a full window before leaves exactly its decayed share. Casebook 12.
func slidingThreeMillionPerHour(h *harness) {
	const limit = 3_000_000
	sliding := kinds()[1]
	for i, minutes := range []int64{0, 1, 20, 30, 59} {
		p := h.policy(sliding.config(fmt.Sprintf("hour-%d", i), limit, time.Hour))
		l := h.b.New(h, p)
		subject := h.subject(i)
		start := h.align(time.Hour)
		h.admitted(l, p, subject, limit, 0)
		h.denied(l, p, subject, 1, 0)
		h.setMillis(start + (60+minutes)*time.Minute.Milliseconds())
		// The count before is weighted by the share of its window that is left, in millionths, rounded up.
		weight := ((60-minutes)*1_000_000 + 59) / 60
		free := limit - limit/1_000_000*weight
		if free > 0 {
			h.admitted(l, p, subject, free, 0)
		}
		h.denied(l, p, subject, 1, 0)
	}
}

// refillRemainderIsCarried: a refill of a third of a token per evaluation is not lost, so 1,000
// evaluations a second apart and one after 1,000 s find the same tokens. Casebook 16.
func refillRemainderIsCarried(h *harness) {
	bucket := kinds()[2]
	config := bucket.config("thirds", 1, 3*time.Second)
	config.Parameters = ratelimit.TokenBucketParameters{Capacity: 2000, RefillTokens: 1, RefillPeriod: 3 * time.Second}
	config.MaxCost = 2000
	p := h.policy(config)
	l := h.b.New(h, p)
	often, once := h.subject(0), h.subject(1)
	start := h.align(time.Second)
	h.admitted(l, p, often, 1999, 1)
	h.admitted(l, p, once, 1999, 1)
	var spent int64
	for second := int64(1); second <= 1000; second++ {
		h.setMillis(start + second*1000)
		// An admission each second writes the remainder each second; what it may not spend it leaves.
		if ratelimit.Allows(h.evaluate(l, p, often, 1)) {
			spent++
		}
	}
	// 1 token was left and floor(1000/3) came.
	if spent != 334 {
		h.Errorf("evaluated each second: %d tokens spent, want 334", spent)
	}
	h.denied(l, p, often, 1, 0)
	h.admitted(l, p, once, 334, 0)
	h.setMillis(start + 1_002_000 - 1)
	h.denied(l, p, often, 1, 0)
	h.denied(l, p, once, 1, 0)
	h.setMillis(start + 1_002_000)
	h.admitted(l, p, often, 1, 0)
	h.admitted(l, p, once, 1, 0)
}
