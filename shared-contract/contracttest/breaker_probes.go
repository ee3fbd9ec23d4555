package contracttest

import (
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

func breakerProbeTests() []breakerTest {
	return []breakerTest{
		{name: "ProbesAreBounded", needs: needs(CapabilityAdvance), run: probesAreBounded},
		{name: "ProbeSuccessesClose", needs: needs(CapabilityAdvance), run: probeSuccessesClose},
		{name: "ProbeFailureOpens", needs: needs(CapabilityAdvance), run: probeFailureOpens},
		{name: "ProbeIsReleased", needs: needs(CapabilityAdvance), run: probeIsReleased},
		{name: "LeaseIsExact", needs: needs(CapabilitySetTime), run: leaseIsExact},
		{name: "DeadHolder", needs: needs(CapabilityAdvance), run: deadHolder},
		{name: "ProbeRush", needs: needs(CapabilityAdvance), run: probeRush},
		{name: "TripRush", run: tripRush},
	}
}

// probesAreBounded: as many as the policy says, and a slot whose result is there is free again.
func probesAreBounded(h *breakerHarness) {
	for _, probes := range []int64{1, 2, breaker.MostProbes} {
		config := soon("bounded", 1)
		config.MaxProbes, config.ProbeSuccesses = probes, 100
		p := h.policy(config)
		o := h.one(h.b.New(h, p), p, int(probes))
		o.trip()
		o.wait()
		permits := make([]breaker.Permit, probes)
		for i := range permits {
			permits[i] = o.probe()
		}
		if r := o.rejected(breaker.StateHalfOpen); r.RetryAfter > p.ProbeLease() {
			h.Errorf("retry after %v, a lease is %v", r.RetryAfter, p.ProbeLease())
		}
		if seen := o.observe(breaker.StateHalfOpen); seen.ProbesLeased != probes || seen.ProbeSuccesses != 0 || seen.RetryAfter <= 0 {
			h.Errorf("%+v, want %d probes leased", seen, probes)
		}
		last := permits[probes-1]
		o.record(last, breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateHalfOpen)
		if seen := o.observe(breaker.StateHalfOpen); seen.ProbesLeased != probes-1 || seen.ProbeSuccesses != 1 || seen.RetryAfter != 0 {
			h.Errorf("after a success %+v", seen)
		}
		o.late(last, breaker.ResultSuccess, breaker.StateHalfOpen) // Told once.
		o.late(last, breaker.ResultFailure, breaker.StateHalfOpen)
		o.probe()
		o.rejected(breaker.StateHalfOpen)
	}
}

// probeSuccessesClose: exactly as many as the policy says, and the breaker begins anew.
func probeSuccessesClose(h *breakerHarness) {
	config := soon("close", 2)
	config.ProbeSuccesses = 3
	o := h.fresh(config)
	o.fail(1)
	o.trip()
	o.wait()
	for range 2 {
		o.record(o.probe(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateHalfOpen)
	}
	o.record(o.probe(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateClosed)
	if seen := o.observe(breaker.StateClosed); seen.Failures != 0 || seen.Since.IsZero() || seen.ProbeSuccesses != 0 {
		h.Errorf("after closing: %+v", seen)
	}
	o.fail(1)
	o.trip()
}

// probeFailureOpens: one is enough, the timeout begins anew, and successes before it are forgotten.
func probeFailureOpens(h *breakerHarness) {
	config := soon("again", 1)
	config.MaxProbes, config.ProbeSuccesses = 3, 2
	o := h.fresh(config)
	o.trip()
	o.wait()
	o.record(o.probe(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateHalfOpen)
	other := o.probe()
	o.record(o.probe(), breaker.ResultFailure, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateOpen)
	o.wait()
	// The other probe's lease still runs, but it belongs to the period before.
	o.late(other, breaker.ResultSuccess, breaker.StateHalfOpen)
	o.record(o.probe(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateHalfOpen)
	o.record(o.probe(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateClosed)
}

// probeIsReleased: a probe that says nothing frees its slot and counts nothing.
func probeIsReleased(h *breakerHarness) {
	config := soon("released", 1)
	config.MaxProbes, config.ProbeSuccesses = 1, 1
	o := h.fresh(config)
	o.trip()
	o.wait()
	p := o.probe()
	o.rejected(breaker.StateHalfOpen)
	o.record(p, breaker.ResultNeither, breaker.StatusReleased, breaker.StateHalfOpen, breaker.StateHalfOpen)
	o.late(p, breaker.ResultSuccess, breaker.StateHalfOpen)
	o.record(o.probe(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateClosed)
}

// leaseIsExact: a rejection names the end of the earliest lease; at that moment the slot is free and
// the result of its holder late, and a millisecond earlier neither.
func leaseIsExact(h *breakerHarness) {
	config := consecutive("lease", 1)
	config.OpenTimeout, config.ProbeLease, config.MaxProbes = 10*time.Second, 3*time.Second, 2
	o := h.fresh(config)
	at := h.hold()
	o.trip()
	at += 10_000
	h.setMillis(at)
	first := o.probe()
	h.setMillis(at + 1000)
	second := o.probe()
	for _, offset := range []int64{1000, 1001, 2999} {
		h.setMillis(at + offset)
		if r := o.rejected(breaker.StateHalfOpen); r.RetryAfter != time.Duration(3000-offset)*time.Millisecond {
			h.Errorf("at %d ms: retry after %v", offset, r.RetryAfter)
		}
	}
	h.setMillis(at + 3000)
	o.late(first, breaker.ResultSuccess, breaker.StateHalfOpen)
	o.late(first, breaker.ResultFailure, breaker.StateHalfOpen)
	if seen := o.observe(breaker.StateHalfOpen); seen.ProbesLeased != 1 || seen.RetryAfter != 0 {
		h.Errorf("after the first lease: %+v", seen)
	}
	third := o.probe()
	o.rejected(breaker.StateHalfOpen)
	h.setMillis(at + 3999)
	o.record(second, breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateHalfOpen)
	h.setMillis(at + 5999)
	o.record(third, breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateClosed)
}

// deadHolder: a probe whose holder died gives its slot back after the lease; the breaker is not stuck.
// Casebook 30.
func deadHolder(h *breakerHarness) {
	config := soon("dead", 1)
	config.MaxProbes, config.ProbeSuccesses, config.ProbeLease = 1, 1, 2*time.Second
	o := h.fresh(config)
	o.trip()
	o.wait()
	dead := o.probe()
	r := o.rejected(breaker.StateHalfOpen)
	h.b.Advance(r.RetryAfter)
	p := o.probe()
	o.late(dead, breaker.ResultFailure, breaker.StateHalfOpen)
	o.record(p, breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateClosed)
	o.late(dead, breaker.ResultFailure, breaker.StateClosed)
	o.call()
}

// rush runs f many times at once.
func rush(calls int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// probeRush: of many that ask at once, exactly as many are let through as there are probes.
func probeRush(h *breakerHarness) {
	config := soon("rush", 1)
	config.MaxProbes = 3
	o := h.fresh(config)
	o.trip()
	o.wait()
	outcomes := make([]breaker.AcquireOutcome, 64)
	rush(len(outcomes), func(i int) { outcomes[i], _ = o.port.Acquire(h.Context(), o.ask()) })
	let := 0
	for _, outcome := range outcomes {
		if _, ok := outcome.(breaker.Permitted); ok {
			let++
		} else if _, ok := outcome.(breaker.Rejected); !ok {
			h.Errorf("under contention: %+v", outcome)
		}
	}
	if let != 3 {
		h.Errorf("%d probes let through at once, want 3", let)
	}
}

// tripRush: of many failures at once, one trips, and those after it are late.
func tripRush(h *breakerHarness) {
	const threshold, calls = 20, 64
	o := h.fresh(consecutive("trip-rush", threshold))
	permits := make([]breaker.Permit, calls)
	for i := range permits {
		permits[i] = o.call()
	}
	outcomes := make([]breaker.RecordOutcome, calls)
	rush(calls, func(i int) {
		outcomes[i], _ = o.port.Record(h.Context(), breaker.RecordRequest{Permit: permits[i], Result: breaker.ResultFailure, Deadline: h.future()})
	})
	counted, trips := 0, 0
	for _, outcome := range outcomes {
		r, ok := outcome.(breaker.Recorded)
		if !ok {
			h.Fatalf("under contention: %+v", outcome)
		}
		if r.Status == breaker.StatusCounted {
			counted++
		}
		if r.Before != r.After {
			trips++
		}
	}
	if counted != threshold || trips != 1 {
		h.Errorf("%d counted and %d trips, want %d and 1", counted, trips, threshold)
	}
}

func (o one) ask() breaker.AcquireRequest {
	return breaker.AcquireRequest{PolicyID: o.policy.ID(), Resource: o.resource, Deadline: o.h.future()}
}
