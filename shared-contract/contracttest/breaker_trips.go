package contracttest

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

func breakerTripTests() []breakerTest {
	return []breakerTest{
		{name: "ConsecutiveFailuresTrip", run: consecutiveFailuresTrip},
		{name: "FailureRateTrips", run: failureRateTrips},
		{name: "FailureRateHasAMinimum", run: failureRateHasAMinimum},
		{name: "WindowRolls", needs: needs(CapabilitySetTime), run: windowRolls},
		{name: "HealthStoresNothing", needs: needs(CapabilityState), run: healthStoresNothing},
		{name: "NeitherCountsNothing", run: neitherCountsNothing},
		{name: "OpenTimeoutIsExact", needs: needs(CapabilitySetTime), run: openTimeoutIsExact},
		{name: "OpenTimeoutPasses", needs: needs(CapabilityAdvance), run: openTimeoutPasses},
	}
}

// consecutiveFailuresTrip: exactly the threshold in a row, and a success begins anew.
func consecutiveFailuresTrip(h *breakerHarness) {
	o := h.fresh(consecutive("row", 3))
	o.fail(2)
	if seen := o.observe(breaker.StateClosed); seen.Failures != 2 || seen.Results != 2 || seen.RetryAfter != 0 || !seen.Since.IsZero() {
		h.Errorf("after two failures: %+v", seen)
	}
	o.record(o.call(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateClosed, breaker.StateClosed)
	o.fail(2)
	o.trip()
	if r := o.rejected(breaker.StateOpen); r.RetryAfter > o.policy.OpenTimeout() {
		h.Errorf("retry after %v, the open timeout is %v", r.RetryAfter, o.policy.OpenTimeout())
	}
	seen := o.observe(breaker.StateOpen)
	if seen.Failures != 0 || seen.Results != 0 || seen.Since.IsZero() || seen.RetryAfter <= 0 {
		h.Errorf("open: %+v", seen)
	}
	first := h.one(h.b.New(h, o.policy), o.policy, 1)
	first.fail(2)
	first.trip()
	single := h.fresh(consecutive("single", 1))
	single.trip()
}

// rate is a failure rate over a window that no test without a clock leaves.
func rate(id string, minimum, permille int64) breaker.PolicyConfig {
	config := consecutive(id, 1)
	config.Trip = breaker.FailureRate{Window: 1000 * time.Hour, Buckets: 10, MinimumCalls: minimum, RatePermille: permille}
	return config
}

// failureRateTrips: at exactly the rate, in thousandths, and not one result before.
func failureRateTrips(h *breakerHarness) {
	o := h.fresh(rate("third", 10, 334))
	// 4 of 12 are 333 permille, below; 5 of 13 are 384.
	for i := range 12 {
		result := breaker.ResultSuccess
		if i%3 == 2 {
			result = breaker.ResultFailure
		}
		o.record(o.call(), result, breaker.StatusCounted, breaker.StateClosed, breaker.StateClosed)
	}
	if seen := o.observe(breaker.StateClosed); seen.Failures != 4 || seen.Results != 12 {
		h.Errorf("counted %+v, want 4 of 12", seen)
	}
	o.trip()
	o.rejected(breaker.StateOpen)

	half := h.fresh(rate("half", 4, 500))
	half.record(half.call(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateClosed, breaker.StateClosed)
	half.record(half.call(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateClosed, breaker.StateClosed)
	half.fail(1)
	half.trip() // 2 of 4: exactly.
}

// failureRateHasAMinimum: below it nothing trips; the result that reaches it can, a success too.
func failureRateHasAMinimum(h *breakerHarness) {
	o := h.fresh(rate("minimum", 5, 1))
	o.fail(4)
	o.record(o.call(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateClosed, breaker.StateOpen)
}

// windowRolls: results leave the window bucket by bucket.
func windowRolls(h *breakerHarness) {
	config := rate("rolls", 4, 1000)
	config.Trip = breaker.FailureRate{Window: 400 * time.Millisecond, Buckets: 4, MinimumCalls: 4, RatePermille: 1000}
	o := h.fresh(config)
	base := (h.nowMillis()/400 + 1) * 400
	h.setMillis(base + 99)
	o.fail(2)
	h.setMillis(base + 100)
	o.fail(1)
	h.setMillis(base + 399)
	if seen := o.observe(breaker.StateClosed); seen.Failures != 3 || seen.Results != 3 {
		h.Errorf("in the last bucket of the window: %+v", seen)
	}
	h.setMillis(base + 400) // The first bucket is out.
	if seen := o.observe(breaker.StateClosed); seen.Failures != 1 || seen.Results != 1 {
		h.Errorf("after the first bucket: %+v", seen)
	}
	o.fail(2)
	h.setMillis(base + 500) // The second is out too.
	o.fail(1)
	h.setMillis(base + 799)
	o.trip()
}

// healthStoresNothing: letting calls through and their successes need no state and write none.
func healthStoresNothing(h *breakerHarness) {
	o := h.fresh(consecutive("healthy", 3))
	for range 3 {
		o.record(o.call(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateClosed, breaker.StateClosed)
		o.observe(breaker.StateClosed)
	}
	if s := o.stored(); s != "" {
		h.Errorf("successes left %q", s)
	}
	o.fail(1)
	if o.stored() == "" {
		h.Error("a failure left nothing")
	}
	before := o.stored()
	o.call()
	if o.stored() != before {
		h.Error("letting a call through changed the state")
	}
}

// neitherCountsNothing: a result that says nothing does not begin the row anew and does not end it.
func neitherCountsNothing(h *breakerHarness) {
	o := h.fresh(consecutive("neither", 2))
	o.fail(1)
	o.record(o.call(), breaker.ResultNeither, breaker.StatusReleased, breaker.StateClosed, breaker.StateClosed)
	o.trip()
	r := h.fresh(rate("neither-rate", 2, 1000))
	r.fail(1)
	r.record(r.call(), breaker.ResultNeither, breaker.StatusReleased, breaker.StateClosed, breaker.StateClosed)
	if seen := r.observe(breaker.StateClosed); seen.Results != 1 {
		h.Errorf("counted %+v, want one result", seen)
	}
}

// openTimeoutIsExact: a retry at the moment that a rejection names is let through, and one a
// millisecond earlier is not.
func openTimeoutIsExact(h *breakerHarness) {
	config := consecutive("exact", 1)
	config.OpenTimeout = 5 * time.Second
	o := h.fresh(config)
	tripped := h.hold()
	o.trip()
	for _, offset := range []int64{0, 1, 2500, 4999} {
		h.setMillis(tripped + offset)
		want := time.Duration(5000-offset) * time.Millisecond
		if r := o.rejected(breaker.StateOpen); r.RetryAfter != want {
			h.Errorf("%d ms after the trip: retry after %v, want %v", offset, r.RetryAfter, want)
		}
		if seen := o.observe(breaker.StateOpen); seen.RetryAfter != want || seen.Since.UnixMilli() != tripped {
			h.Errorf("%d ms after the trip: %+v", offset, seen)
		}
	}
	h.setMillis(tripped + 5000)
	if seen := o.observe(breaker.StateHalfOpen); seen.RetryAfter != 0 || seen.Since.UnixMilli() != tripped+5000 || seen.ProbesLeased != 0 {
		h.Errorf("at the end of the timeout: %+v", seen)
	}
	p := o.probe()
	if want := tripped + 5000 + o.policy.ProbeLease().Milliseconds(); p.LeaseUntil.UnixMilli() != want {
		h.Errorf("the lease is until %d, want %d", p.LeaseUntil.UnixMilli(), want)
	}
}

// openTimeoutPasses: on whatever clock the store has.
func openTimeoutPasses(h *breakerHarness) {
	o := h.fresh(soon("passes", 1))
	o.trip()
	o.wait()
	o.observe(breaker.StateHalfOpen)
	o.probe()
}
