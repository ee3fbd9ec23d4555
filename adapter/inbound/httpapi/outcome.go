package httpapi

import (
	"net/http"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// The words of outcomes.
const (
	OutcomeEvaluated     = "EVALUATED"
	OutcomeUnavailable   = "UNAVAILABLE"
	OutcomeIndeterminate = "INDETERMINATE"
	OutcomeIncompatible  = "INCOMPATIBLE"
)

// Outcome is an outcome as the API writes it. Which fields are there depends on the word: EVALUATED
// has decision alone; UNAVAILABLE policyId, category and retryAfterMillis; INDETERMINATE policyId and
// retryAfterMillis; INCOMPATIBLE policyId and category.
type Outcome struct {
	Outcome          string    `json:"outcome"`
	Decision         *Decision `json:"decision,omitempty"`
	PolicyID         string    `json:"policyId,omitempty"`
	Category         string    `json:"category,omitempty"`
	RetryAfterMillis *int64    `json:"retryAfterMillis,omitempty"`
}

// Decision is an evaluated decision as the API writes it. All fields are always there.
type Decision struct {
	Allowed          bool   `json:"allowed"`
	Limit            int64  `json:"limit"`
	Remaining        int64  `json:"remaining"`
	RetryAfterMillis int64  `json:"retryAfterMillis"`
	ResetAtMillis    int64  `json:"resetAtMillis"`
	PolicyID         string `json:"policyId"`
	PolicyRevision   int64  `json:"policyRevision"`
	Source           string `json:"source"`
	Certainty        string `json:"certainty"`
}

// Present gives an outcome's JSON shape and the status that the API answers it with. An outcome that
// is none of the four, nil among them, gives false.
func Present(outcome ratelimit.Outcome) (shape Outcome, status int, ok bool) {
	switch o := outcome.(type) {
	case ratelimit.Evaluated:
		d := o.Decision
		return Outcome{Outcome: OutcomeEvaluated, Decision: &Decision{
			Allowed:          d.Allowed,
			Limit:            d.Limit,
			Remaining:        d.Remaining,
			RetryAfterMillis: ceilMillis(d.RetryAfter),
			ResetAtMillis:    d.ResetAt.UnixMilli(),
			PolicyID:         string(d.PolicyID),
			PolicyRevision:   d.PolicyRevision,
			Source:           d.Source.String(),
			Certainty:        d.Certainty.String(),
		}}, http.StatusOK, true
	case ratelimit.Unavailable:
		retry := ceilMillis(o.RetryAfter)
		return Outcome{
			Outcome: OutcomeUnavailable, PolicyID: string(o.PolicyID), Category: o.Category.String(), RetryAfterMillis: &retry,
		}, http.StatusServiceUnavailable, true
	case ratelimit.Indeterminate:
		retry := ceilMillis(o.RetryAfter)
		return Outcome{
			Outcome: OutcomeIndeterminate, PolicyID: string(o.PolicyID), RetryAfterMillis: &retry,
		}, http.StatusServiceUnavailable, true
	case ratelimit.Incompatible:
		return Outcome{
			Outcome: OutcomeIncompatible, PolicyID: string(o.PolicyID), Category: o.Category.String(),
		}, http.StatusInternalServerError, true
	default:
		return Outcome{}, http.StatusInternalServerError, false
	}
}

// ceilMillis rounds up, so that nobody is told to come back too early.
func ceilMillis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// ceilSeconds gives milliseconds in whole seconds, rounded up, at least 1: a Retry-After of 0 would
// invite an immediate retry.
func ceilSeconds(ms int64) int64 {
	if ms <= 0 {
		return 1
	}
	return (ms-1)/1000 + 1
}
