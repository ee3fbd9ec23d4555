package contracttest

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

func breakerLateTests() []breakerTest {
	return []breakerTest{
		{name: "CallsOfBeforeATripAreLate", needs: needs(CapabilityAdvance), run: callsOfBeforeATripAreLate},
		{name: "CallsAreLateAfterTheLifetime", needs: needs(CapabilitySetTime), run: callsAreLateAfterTheLifetime},
		{name: "UnknownProbeIsLate", needs: needs(CapabilityAdvance), run: unknownProbeIsLate},
		{name: "Forgotten", needs: needs(CapabilitySetTime), run: forgotten},
	}
}

// callsOfBeforeATripAreLate: results of calls that were let through before a trip count nothing after
// it: not while open, nor half-open, nor in the closed period that follows.
func callsOfBeforeATripAreLate(h *breakerHarness) {
	for i, config := range []breaker.PolicyConfig{soon("before", 1), rate("before-rate", 1, 1)} {
		config.OpenTimeout, config.ProbeSuccesses = time.Second, 1
		p := h.policy(config)
		o := h.one(h.b.New(h, p), p, i)
		old := o.call()
		o.trip()
		for _, result := range breaker.Results() {
			o.late(old, result, breaker.StateOpen)
		}
		o.wait()
		o.late(old, breaker.ResultFailure, breaker.StateHalfOpen)
		probe := o.probe()
		o.late(old, breaker.ResultFailure, breaker.StateHalfOpen)
		o.record(probe, breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateClosed)
		o.late(old, breaker.ResultFailure, breaker.StateClosed)
		o.late(probe, breaker.ResultFailure, breaker.StateClosed)
		o.trip()
	}
}

// callsAreLateAfterTheLifetime: a result so late that a trip between could be forgotten counts nothing.
func callsAreLateAfterTheLifetime(h *breakerHarness) {
	o := h.fresh(consecutive("lifetime", 1))
	at := h.hold()
	old, other := o.call(), o.call()
	limit := (o.policy.Lifetime() - o.policy.MaxClockRegression()).Milliseconds()
	h.setMillis(at + limit)
	o.late(old, breaker.ResultFailure, breaker.StateClosed)
	h.setMillis(at + limit - 1)
	o.record(other, breaker.ResultFailure, breaker.StatusCounted, breaker.StateClosed, breaker.StateOpen)
}

// unknownProbeIsLate: a token that nobody leased frees no slot.
func unknownProbeIsLate(h *breakerHarness) {
	config := soon("unknown", 1)
	config.MaxProbes, config.ProbeSuccesses = 1, 1
	o := h.fresh(config)
	o.trip()
	o.wait()
	forged := o.probe()
	forged.Token = token(7)
	for _, result := range breaker.Results() {
		o.late(forged, result, breaker.StateHalfOpen)
	}
	o.rejected(breaker.StateHalfOpen)
}

// forgotten: a breaker that nobody used for its lifetime is closed, and not a millisecond earlier.
func forgotten(h *breakerHarness) {
	config := consecutive("forgotten", 2)
	config.OpenTimeout = 10 * time.Second
	o := h.fresh(config)
	at := h.hold()
	o.fail(1)
	o.trip()
	lifetime := o.policy.Lifetime().Milliseconds()
	h.setMillis(at + lifetime - 1)
	o.observe(breaker.StateHalfOpen)
	h.setMillis(at + lifetime)
	if seen := o.observe(breaker.StateClosed); seen.Failures != 0 || !seen.Since.IsZero() {
		h.Errorf("forgotten: %+v", seen)
	}
	o.fail(1)
	o.trip()
}
