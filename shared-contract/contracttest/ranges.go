package contracttest

import (
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

const century = time.Duration(algorithm.MaxHorizonMillis) * time.Millisecond

func rangeTests() []contractTest {
	return []contractTest{
		{name: "WindowsOfAllSizes", needs: needs(CapabilitySetTime), runEach: windowsOfAllSizes},
		{name: "LimitsAtTheEdge", runEach: limitsAtTheEdge},
		{name: "BucketAtTheEdge", run: bucketAtTheEdge},
		{name: "GCRAAtTheEdge", run: gcraAtTheEdge},
		{name: "LongLog", run: longLog},
		{name: "LargestGraceAndRegression", runEach: largestGraceAndRegression},
	}
}

// windowsOfAllSizes: a millisecond, a month, a year and the longest window are exact, for a limit of
// one and of more. Casebook 17.
func windowsOfAllSizes(h *harness, k kind) {
	for i, window := range []time.Duration{time.Millisecond, 2 * time.Millisecond, month, year, century} {
		for j, limit := range []int64{1, 2, 1000} {
			p := h.policy(k.config(fmt.Sprintf("size-%d-%d", i, j), limit, window))
			l := h.b.New(h, p)
			subject := h.subject(10*i + j)
			want := newOracle(p, h.b.Source)
			now := h.nowMillis()
			h.setMillis(now)
			for _, cost := range []int64{limit, 1, limit} {
				h.expect(l, p, subject, cost, want.outcome(now, cost))
			}
			for _, step := range []int64{1, min(window.Milliseconds()/2, month.Milliseconds()), 1} {
				now += step
				h.setMillis(now)
				h.expect(l, p, subject, 1, want.outcome(now, 1))
				h.expect(l, p, subject, limit, want.outcome(now, limit))
			}
		}
	}
}

// limitsAtTheEdge: the greatest limit of each algorithm is granted to the unit. Casebook 17. That
// one above it is refused is a matter of ratelimit.NewRateLimitPolicy.
func limitsAtTheEdge(h *harness, k kind) {
	// In lowest terms D*(N+1) is 2^53-2^20, and the fill time is near its bound too.
	const bucketRefill, bucketPeriod = 1<<20 - 1, 1<<33 - 1
	edges := map[ratelimit.Algorithm]ratelimit.Parameters{
		ratelimit.AlgorithmFixedWindow: ratelimit.FixedWindowParameters{Limit: algorithm.MaxExact, Window: year},
		ratelimit.AlgorithmSlidingWindowCounter: ratelimit.SlidingWindowCounterParameters{
			Limit: algorithm.MaxSlidingCounterLimit, Window: year,
		},
		ratelimit.AlgorithmTokenBucket: ratelimit.TokenBucketParameters{
			Capacity: algorithm.MaxHorizonMillis / bucketPeriod * bucketRefill, RefillTokens: bucketRefill,
			RefillPeriod: bucketPeriod * time.Millisecond,
		},
		ratelimit.AlgorithmGCRA: ratelimit.GCRAParameters{
			Limit: bucketRefill, Period: bucketPeriod * time.Millisecond, Burst: algorithm.MaxHorizonMillis / bucketPeriod * bucketRefill,
		},
		ratelimit.AlgorithmSlidingWindowLog: ratelimit.SlidingWindowLogParameters{Limit: algorithm.MaxSlidingLogLimit, Window: year},
	}
	config := k.config("edge", 1, year)
	config.Parameters = edges[k.algorithm]
	config.MaxCost = limitOf(config.Parameters)
	p := h.policy(config)
	l := h.b.New(h, p)
	whole, parts := h.subject(0), h.subject(1)
	h.admitted(l, p, whole, p.Limit(), 0)
	h.denied(l, p, whole, p.Limit(), 0)
	h.admitted(l, p, parts, 1, p.Limit()-1)
	h.denied(l, p, parts, p.Limit(), p.Limit()-1)
	h.admitted(l, p, parts, p.Limit()-2, 1)
	h.denied(l, p, parts, 2, 1)
	h.admitted(l, p, parts, 1, 0)
	h.denied(l, p, parts, 1, 0)
}

func limitOf(parameters ratelimit.Parameters) int64 {
	switch p := parameters.(type) {
	case ratelimit.FixedWindowParameters:
		return p.Limit
	case ratelimit.SlidingWindowCounterParameters:
		return p.Limit
	case ratelimit.TokenBucketParameters:
		return p.Capacity
	case ratelimit.GCRAParameters:
		return p.Burst
	case ratelimit.SlidingWindowLogParameters:
		return p.Limit
	}
	return 0
}

// bucketAtTheEdge: buckets at each of the three bounds of their range (D*(N+1), capacity+N+1, the
// fill time), with the clock held where that can be done.
func bucketAtTheEdge(h *harness) {
	edges := []ratelimit.TokenBucketParameters{
		// D*(N+1) = 6361*69431 * 20394401 = 2^53-1, in lowest terms.
		{Capacity: 100_000_000_000, RefillTokens: 20_394_400, RefillPeriod: 6361 * 69431 * time.Millisecond},
		{Capacity: algorithm.MaxExact - 1 - 1<<40, RefillTokens: 1 << 40, RefillPeriod: time.Millisecond},
		{Capacity: 1, RefillTokens: 1, RefillPeriod: century},
	}
	for i, parameters := range edges {
		config := kinds()[2].config(fmt.Sprintf("bucket-%d", i), 1, time.Second)
		config.Parameters = parameters
		config.MaxCost = parameters.Capacity
		h.atTheEdge(config, h.subject(i))
	}
}

// atTheEdge asks for all, one and a third, with the clock held where that can be done.
func (h *harness) atTheEdge(config ratelimit.RateLimitPolicyConfig, subject ratelimit.SubjectDigest) {
	h.Helper()
	p := h.policy(config)
	l := h.b.New(h, p)
	if h.b.SetTime == nil {
		h.admitted(l, p, subject, p.Limit(), 0)
		return
	}
	want := newOracle(p, h.b.Source)
	now := h.nowMillis()
	h.setMillis(now)
	for _, step := range []int64{0, 0, 1, 1, 999, 12_345, 3_600_000} {
		now += step
		h.setMillis(now)
		for _, cost := range []int64{p.Limit(), 1, max(p.Limit()/3, 1)} {
			h.expect(l, p, subject, cost, want.outcome(now, cost))
		}
	}
}

// gcraAtTheEdge: GCRA at each of the bounds of its range (L*(P+1), the span of the burst, the burst),
// with the clock held where that can be done.
func gcraAtTheEdge(h *harness) {
	edges := []ratelimit.GCRAParameters{
		// L*(P+1) = 6361*69431 * 20394401 = 2^53-1, in lowest terms.
		{Limit: 6361 * 69431, Period: (20_394_401 - 1) * time.Millisecond, Burst: 1_000_000_000_000},
		{Limit: 1 << 52, Period: (1 << 40) * time.Millisecond, Burst: algorithm.MaxExact},
		{Limit: 1, Period: century, Burst: 1},
		{Limit: 1, Period: time.Millisecond, Burst: algorithm.MaxHorizonMillis},
	}
	for i, parameters := range edges {
		config := kindOf(ratelimit.AlgorithmGCRA).config(fmt.Sprintf("gcra-%d", i), 1, time.Second)
		config.Parameters = parameters
		config.MaxCost = parameters.Burst
		h.atTheEdge(config, h.subject(i))
	}
}

// longLog: a log that holds many entries is exact, whichever of them a denial waits for and however
// many have died since.
func longLog(h *harness) {
	const limit = 500
	p := h.policy(kindOf(ratelimit.AlgorithmSlidingWindowLog).config("long", limit, time.Hour))
	l := h.b.New(h, p)
	subject := h.subject(0)
	if h.b.SetTime == nil {
		for left := int64(limit - 1); left >= 0; left-- {
			h.admitted(l, p, subject, 1, left)
		}
		for _, cost := range []int64{1, 2, limit / 2, limit} {
			h.denied(l, p, subject, cost, 0)
		}
		return
	}
	want := newOracle(p, h.b.Source)
	now := h.align(time.Hour)
	ask := func(step, cost int64) {
		now += step
		h.setMillis(now)
		h.expect(l, p, subject, cost, want.outcome(now, cost))
	}
	for i := range int64(limit) {
		ask(i%7, 1+i%2)
	}
	for _, step := range []int64{0, 1, time.Hour.Milliseconds() - 1500, 500, 400, 300, time.Hour.Milliseconds()} {
		for _, cost := range []int64{1, 2, 3, limit / 3, limit / 2, limit - 1, limit} {
			ask(step, cost)
			step = 0
		}
	}
}

// largestGraceAndRegression: the longest durations of a policy leave no range.
func largestGraceAndRegression(h *harness, k kind) {
	config := k.config("durations", 2, century)
	config.CleanupGrace = century
	config.MaxClockRegression = time.Duration(algorithm.MaxRegressionMillis) * time.Millisecond
	p := h.policy(config)
	l := h.b.New(h, p)
	subject := h.subject(0)
	h.admitted(l, p, subject, 1, 1)
	h.admitted(l, p, subject, 1, 0)
	d := h.denied(l, p, subject, 1, 0)
	if d.ResetAt.Before(h.b.Now()) {
		h.Errorf("reset at %v, before now", d.ResetAt)
	}
}
