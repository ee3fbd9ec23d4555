package contracttest

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

func breakerSharingTests() []breakerTest {
	return []breakerTest{
		{name: "ResourcesAndPoliciesAreApart", run: resourcesAndPoliciesAreApart},
		{name: "RevisionsBeginClosed", needs: needs(CapabilityShare), run: revisionsBeginClosed},
		{name: "OtherParametersOfOneRevision", needs: needs(CapabilityShare), run: otherParametersOfOneRevision},
		{name: "InstancesAgree", needs: needs(CapabilityShare, CapabilityAdvance), run: instancesAgree},
	}
}

// resourcesAndPoliciesAreApart: no breaker moves another. Casebook 27.
func resourcesAndPoliciesAreApart(h *breakerHarness) {
	a, b := h.policy(consecutive("a", 1)), h.policy(consecutive("b", 1))
	port := h.b.New(h, a, b)
	tripped := h.one(port, a, 0)
	tripped.trip()
	h.one(port, a, 1).call()
	h.one(port, b, 0).call()
	tripped.rejected(breaker.StateOpen)
}

// revisionsBeginClosed: a new revision has breakers of its own. Casebook 21.
func revisionsBeginClosed(h *breakerHarness) {
	config := consecutive("rolls", 1)
	first := h.policy(config)
	config.Revision = 2
	second := h.policy(config)
	old, next := h.one(h.b.New(h, first), first, 0), h.one(h.b.New(h, second), second, 0)
	old.trip()
	next.call()
	old.rejected(breaker.StateOpen)
}

// otherParametersOfOneRevision: two instances that differ in a number do not read each other's state.
func otherParametersOfOneRevision(h *breakerHarness) {
	config := consecutive("differs", 1)
	one := h.policy(config)
	config.ProbeLease += time.Millisecond
	other := h.policy(config)
	a, b := h.one(h.b.New(h, one), one, 0), h.one(h.b.New(h, other), other, 0)
	a.trip()
	b.incompatible("the state of other parameters")
	a.rejected(breaker.StateOpen)
}

// instancesAgree: what one instance does, the other sees at its next call; no clock but the store's
// counts. Casebook 31.
func instancesAgree(h *breakerHarness) {
	config := soon("fleet", 3)
	config.MaxProbes, config.ProbeSuccesses = 2, 2
	p := h.policy(config)
	one, two := h.one(h.b.New(h, p), p, 0), h.one(h.b.New(h, p), p, 0)
	agree := func(state breaker.State) {
		h.Helper()
		a, b := one.observe(state), two.observe(state)
		a.RetryAfter, b.RetryAfter = 0, 0 // Time passes between the two.
		if a != b {
			h.Fatalf("they disagree:\n%+v\n%+v", a, b)
		}
	}
	agree(breaker.StateClosed)
	one.fail(1)
	two.fail(1)
	agree(breaker.StateClosed)
	one.trip()
	agree(breaker.StateOpen)
	two.rejected(breaker.StateOpen)
	two.wait()
	agree(breaker.StateHalfOpen)
	first, second := one.probe(), two.probe()
	one.rejected(breaker.StateHalfOpen)
	two.rejected(breaker.StateHalfOpen)
	// A permit is the store's: either instance may tell its result.
	two.record(first, breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateHalfOpen)
	agree(breaker.StateHalfOpen)
	one.record(second, breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateClosed)
	agree(breaker.StateClosed)
	two.call()
}
