package ratelimit

import (
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

func TestConclude(t *testing.T) {
	t.Parallel()
	fixed := mustPolicy(t, goodConfig())
	counter := mustPolicy(t, counterConfig(SlidingWindowCounterParameters{Limit: 10, Window: time.Minute}))
	decided := algorithm.Decision{
		Status: algorithm.StatusDenied, ServerNowMillis: 1000, EffectiveNowMillis: 1001, Limit: 10, Remaining: 3, RetryAfterMillis: 59_000, ResetAtMillis: 60_000,
	}
	evaluated := RateLimitDecision{
		Limit: 10, Remaining: 3, RetryAfter: 59 * time.Second, ResetAt: time.Date(1970, 1, 1, 0, 1, 0, 0, time.UTC),
		PolicyID: "api", PolicyRevision: 3, Source: SourceLocalMemory, Certainty: CertaintyCertain,
	}
	with := func(status algorithm.Status) algorithm.Decision {
		d := decided
		d.Status = status
		return d
	}
	allowed, approximate := evaluated, evaluated
	allowed.Allowed = true
	approximate.Certainty = CertaintyApproximateAlgorithm
	for name, c := range map[string]struct {
		policy *RateLimitPolicy
		d      algorithm.Decision
		want   Outcome
		allows bool
	}{
		"allowed":      {fixed, with(algorithm.StatusAllowed), Evaluated{Decision: allowed}, true},
		"denied":       {fixed, decided, Evaluated{Decision: evaluated}, false},
		"approximate":  {counter, decided, Evaluated{Decision: approximate}, false},
		"clock":        {fixed, with(algorithm.StatusClockUnsafe), Unavailable{PolicyID: "api", RetryAfter: 59 * time.Second, Category: UnavailableClockUnsafe}, false},
		"incompatible": {fixed, with(algorithm.StatusStateIncompatible), Incompatible{PolicyID: "api", Category: IncompatibleState}, false},
		"invalid":      {fixed, with(algorithm.StatusInvalid), Incompatible{PolicyID: "api", Category: IncompatibleProgram}, false},
		"unspecified":  {fixed, with(algorithm.StatusUnspecified), Incompatible{PolicyID: "api", Category: IncompatibleReply}, false},
		"unknown":      {fixed, with(algorithm.StatusInvalid + 1), Incompatible{PolicyID: "api", Category: IncompatibleReply}, false},
	} {
		if got := Conclude(c.policy, c.d, SourceLocalMemory); got != c.want || Allows(got) != c.allows {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestAllowsIsForEvaluatedAndAllowedAlone(t *testing.T) {
	t.Parallel()
	yes := Evaluated{Decision: RateLimitDecision{Allowed: true}}
	if !Allows(yes) {
		t.Error("an admission is not allowed")
	}
	var none *Evaluated
	for name, o := range map[string]Outcome{
		"nil": nil, "denied": Evaluated{}, "a pointer": &yes, "a nil pointer": none, "unavailable": Unavailable{},
		"indeterminate": Indeterminate{}, "incompatible": Incompatible{}, "pointer to unavailable": &Unavailable{},
	} {
		if Allows(o) {
			t.Errorf("%s is allowed", name)
		}
	}
}

// Every type of outcome carries the marker, and no other type can.
func TestOutcomesAreSealed(t *testing.T) {
	t.Parallel()
	for _, o := range []Outcome{Evaluated{}, Unavailable{}, Indeterminate{}, Incompatible{}} {
		o.outcome()
	}
}
