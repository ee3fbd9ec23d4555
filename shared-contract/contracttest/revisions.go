package contracttest

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func revisionTests() []contractTest {
	return []contractTest{
		{name: "RevisionsRoll", needs: needs(CapabilityShare), runEach: revisionsRoll},
		{name: "SameRevisionOtherParameters", needs: needs(CapabilityShare), runEach: sameRevisionOtherParameters},
	}
}

// revisionsRoll: limit 10, then 100, then 10, at a new revision each time: each starts fresh, both
// live side by side while a deployment rolls, and the old state expires by itself. Casebook 21.
func revisionsRoll(h *harness, k kind) {
	subject := h.subject(0)
	var policies []*ratelimit.RateLimitPolicy
	var limiters []ratelimit.EdgeRateLimitPort
	for i, limit := range []int64{10, 100, 10} {
		config := k.config("rolled", limit, year)
		config.Revision = int64(i + 1)
		p := h.policy(config)
		l := h.b.New(h, p)
		h.admitted(l, p, subject, limit, 0)
		h.denied(l, p, subject, 1, 0)
		if h.b.TTL != nil {
			if ttl, ok := h.b.TTL(h, p, subject); !ok || ttl <= 0 || ttl > 2*year+2*defaultGrace {
				h.Errorf("the state of revision %d lives for %v (finite: %v)", p.Revision(), ttl, ok)
			}
		}
		policies, limiters = append(policies, p), append(limiters, l)
	}
	for i, p := range policies {
		h.denied(limiters[i], p, subject, 1, 0)
	}
}

// sameRevisionOtherParameters: a change of any parameter without a new revision is Incompatible, in
// both directions, and the state stays as it was. Casebook 21.
func sameRevisionOtherParameters(h *harness, k kind) {
	config := k.config("edited", 10, year)
	config.MaxCost = 5
	p := h.policy(config)
	l := h.b.New(h, p)
	changes := []func(*ratelimit.RateLimitPolicyConfig){
		func(c *ratelimit.RateLimitPolicyConfig) { c.Parameters = k.parameters(100, year) },
		func(c *ratelimit.RateLimitPolicyConfig) { c.Parameters = k.parameters(10, year-24*time.Hour) },
		func(c *ratelimit.RateLimitPolicyConfig) { c.MaxCost = 6 },
		func(c *ratelimit.RateLimitPolicyConfig) { c.CleanupGrace += time.Millisecond },
		func(c *ratelimit.RateLimitPolicyConfig) { c.MaxClockRegression -= time.Millisecond },
	}
	for i, change := range changes {
		edited := config
		change(&edited)
		other := h.policy(edited)
		otherLimiter := h.b.New(h, other)
		subject := h.subject(i)
		incompatible := ratelimit.Incompatible{PolicyID: p.ID(), Category: ratelimit.IncompatibleState}
		h.admitted(l, p, subject, 1, 9)
		h.unchanged(p, subject, "a policy with other parameters", func() {
			h.expect(otherLimiter, other, subject, 1, incompatible)
		})
		h.admitted(l, p, subject, 1, 8)

		reverse := h.subject(100 + i)
		h.admitted(otherLimiter, other, reverse, 1, other.Limit()-1)
		h.expect(l, p, reverse, 1, incompatible)
	}
}
