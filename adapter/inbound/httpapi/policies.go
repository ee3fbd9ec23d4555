package httpapi

import (
	"net/http"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// PolicyList is the answer of GET /v1/policies.
type PolicyList struct {
	// DefaultPolicyID is what an evaluation without a policyId uses.
	DefaultPolicyID string `json:"defaultPolicyId"`
	// Policies are in the order of their IDs.
	Policies []Policy `json:"policies"`
}

// Policy is a policy as the API writes it. It holds no secret.
type Policy struct {
	ID                       string     `json:"id"`
	Revision                 int64      `json:"revision"`
	Algorithm                string     `json:"algorithm"`
	Parameters               Parameters `json:"parameters"`
	MaxCost                  int64      `json:"maxCost"`
	CleanupGraceMillis       int64      `json:"cleanupGraceMillis"`
	MaxClockRegressionMillis int64      `json:"maxClockRegressionMillis"`
	FailurePolicy            string     `json:"failurePolicy"`
	Certainty                string     `json:"certainty"`
	Default                  bool       `json:"default"`
}

// Parameters are those of one algorithm: limit and windowMillis of a window or log, capacity,
// refillTokens and refillPeriodMillis of a token bucket, limit, periodMillis and burst of GCRA. None of
// them is ever 0, so an absent one is one that the algorithm does not have.
type Parameters struct {
	Limit              int64 `json:"limit,omitempty"`
	WindowMillis       int64 `json:"windowMillis,omitempty"`
	Capacity           int64 `json:"capacity,omitempty"`
	RefillTokens       int64 `json:"refillTokens,omitempty"`
	RefillPeriodMillis int64 `json:"refillPeriodMillis,omitempty"`
	PeriodMillis       int64 `json:"periodMillis,omitempty"`
	Burst              int64 `json:"burst,omitempty"`
}

// Policies gives the JSON shape of a policy set.
func Policies(set *ratelimit.PolicySet, defaultPolicy ratelimit.PolicyID) PolicyList {
	list := PolicyList{DefaultPolicyID: string(defaultPolicy), Policies: []Policy{}}
	for _, p := range set.All() {
		list.Policies = append(list.Policies, Policy{
			ID:                       string(p.ID()),
			Revision:                 p.Revision(),
			Algorithm:                p.Algorithm().String(),
			Parameters:               presentParameters(p.Parameters()),
			MaxCost:                  p.MaxCost(),
			CleanupGraceMillis:       p.CleanupGrace().Milliseconds(),
			MaxClockRegressionMillis: p.MaxClockRegression().Milliseconds(),
			FailurePolicy:            p.FailurePolicy().String(),
			Certainty:                p.Certainty().String(),
			Default:                  p.ID() == defaultPolicy,
		})
	}
	return list
}

func presentParameters(parameters ratelimit.Parameters) Parameters {
	switch p := parameters.(type) {
	case ratelimit.FixedWindowParameters:
		return Parameters{Limit: p.Limit, WindowMillis: p.Window.Milliseconds()}
	case ratelimit.SlidingWindowCounterParameters:
		return Parameters{Limit: p.Limit, WindowMillis: p.Window.Milliseconds()}
	case ratelimit.TokenBucketParameters:
		return Parameters{Capacity: p.Capacity, RefillTokens: p.RefillTokens, RefillPeriodMillis: p.RefillPeriod.Milliseconds()}
	case ratelimit.GCRAParameters:
		return Parameters{Limit: p.Limit, PeriodMillis: p.Period.Milliseconds(), Burst: p.Burst}
	case ratelimit.SlidingWindowLogParameters:
		return Parameters{Limit: p.Limit, WindowMillis: p.Window.Milliseconds()}
	}
	return Parameters{}
}

func (a *api) listPolicies(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "application/json", a.policies)
}
