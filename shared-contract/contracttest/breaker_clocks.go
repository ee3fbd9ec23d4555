package contracttest

import (
	"context"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func breakerClockTests() []breakerTest {
	return []breakerTest{
		{name: "SmallStepsBackAreClamped", needs: needs(CapabilitySetTime), run: smallStepsBackAreClamped},
		{name: "LargeStepsBackAreUnsafe", needs: needs(CapabilitySetTime), run: largeStepsBackAreUnsafe},
	}
}

// smallStepsBackAreClamped: no timeout begins anew, none ends early, and waits count from the clock
// that is shown. Casebook 18.
func smallStepsBackAreClamped(h *breakerHarness) {
	config := consecutive("clamped", 1)
	config.OpenTimeout = 10 * time.Second
	o := h.fresh(config)
	at := h.hold()
	o.trip()
	back := o.policy.MaxClockRegression().Milliseconds()
	for _, step := range []int64{1, 500, back} {
		h.setMillis(at - step)
		want := time.Duration(10_000+step) * time.Millisecond
		if r := o.rejected(breaker.StateOpen); r.RetryAfter != want {
			h.Errorf("%d ms back: retry after %v, want %v", step, r.RetryAfter, want)
		}
	}
	h.setMillis(at + 10_000)
	p := o.probe()
	h.setMillis(at + 10_000 - back) // The half-open period does not end by it.
	o.observe(breaker.StateHalfOpen)
	o.record(p, breaker.ResultFailure, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateOpen)
	if seen := o.observe(breaker.StateOpen); seen.Since.UnixMilli() != at+10_000 {
		h.Errorf("opened at %d, want the clamped %d", seen.Since.UnixMilli(), at+10_000)
	}
}

// largeStepsBackAreUnsafe: nothing is decided or written, the shortfall is named to the millisecond,
// and after it the old state rules again. Casebook 18.
func largeStepsBackAreUnsafe(h *breakerHarness) {
	o := h.fresh(consecutive("unsafe", 2))
	at := h.hold()
	permit := o.call()
	o.fail(1)
	tolerance := o.policy.MaxClockRegression().Milliseconds()
	for _, back := range []int64{tolerance + 1, tolerance + 5000, 600_000} {
		h.setMillis(at - back)
		want := breaker.Unavailable{
			PolicyID: o.policy.ID(), RetryAfter: time.Duration(back-tolerance) * time.Millisecond, Category: ratelimit.UnavailableClockUnsafe,
		}
		before := o.stored()
		if got := o.acquire(); got != want {
			h.Errorf("acquire %d ms back: %+v, want %+v", back, got, want)
		}
		if got := o.tell(permit, breaker.ResultFailure); got != want {
			h.Errorf("record %d ms back: %+v, want %+v", back, got, want)
		}
		got, err := o.port.Read(context.Background(), breaker.ReadRequest{PolicyID: o.policy.ID(), Resource: o.resource, Deadline: h.future()})
		if err != nil || got != want {
			h.Errorf("read %d ms back: %+v, %v, want %+v", back, got, err, want)
		}
		if after := o.stored(); after != before {
			h.Errorf("an unsafe clock changed the state from %q to %q", before, after)
		}
	}
	h.setMillis(at - tolerance)
	o.record(permit, breaker.ResultFailure, breaker.StatusCounted, breaker.StateClosed, breaker.StateOpen)
}
