package service

import (
	"github.com/edgelimit/edgelimit/adapter/inbound/httpapi"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// The JSON shapes of the API, for programs that write what the API would: one shape, defined once.
type (
	// Outcome is an outcome as the API writes it.
	Outcome = httpapi.Outcome
	// Decision is an evaluated decision as the API writes it.
	Decision = httpapi.Decision
)

// Present gives an outcome's JSON shape; false for what is none of the four outcomes.
func Present(outcome ratelimit.Outcome) (Outcome, bool) {
	shape, _, ok := httpapi.Present(outcome)
	return shape, ok
}
