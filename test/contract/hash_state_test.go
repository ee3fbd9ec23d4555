package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// hashPart is one part of the state that a program keeps in a hash: its one field's name, which is the
// identity, or one of the numbers of its value.
type hashPart struct {
	field contracttest.StateField
	place int // among the numbers; -1 is the name
}

// fields are those of the headers of the programs.
func fields(policy *ratelimit.RateLimitPolicy) []contracttest.StateField {
	var all []contracttest.StateField
	if p, ok := policy.Parameters().(ratelimit.SlidingWindowLogParameters); ok {
		for _, part := range logParts(p) {
			all = append(all, part.field)
		}
		return all
	}
	for _, part := range hashParts(policy) {
		all = append(all, part.field)
	}
	return all
}

func hashParts(policy *ratelimit.RateLimitPolicy) []hashPart {
	last := contracttest.StateField{Name: "last observed", Max: algorithm.MaxNowMillis}
	expiry := contracttest.StateField{Name: "expiry", Max: algorithm.MaxExact}
	var numbers []contracttest.StateField
	switch p := policy.Parameters().(type) {
	case ratelimit.FixedWindowParameters:
		numbers = []contracttest.StateField{{Name: "window id", Max: algorithm.MaxNowMillis}, {Name: "consumed", Max: p.Limit}, last}
	case ratelimit.SlidingWindowCounterParameters:
		numbers = []contracttest.StateField{
			{Name: "window id", Max: algorithm.MaxNowMillis},
			{Name: "count", Max: p.Limit},
			{Name: "previous window id", Max: algorithm.MaxNowMillis},
			{Name: "previous count", Max: p.Limit},
			last,
		}
	case ratelimit.TokenBucketParameters:
		rate := p.Arithmetic(policy.Clock()).Rate()
		numbers = []contracttest.StateField{
			{Name: "tokens", Max: p.Capacity - 1}, {Name: "remainder", Max: rate.Denominator - 1}, last, expiry,
		}
	case ratelimit.GCRAParameters:
		rate := p.Arithmetic(policy.Clock()).Rate()
		numbers = []contracttest.StateField{
			{Name: "arrival", Max: algorithm.MaxNowMillis + algorithm.MaxHorizonMillis}, {Name: "fraction", Max: rate.Numerator - 1}, last, expiry,
		}
	case ratelimit.SlidingWindowLogParameters:
		return nil // no hash
	}
	parts := []hashPart{{contracttest.StateField{Name: "identity", Text: true}, -1}}
	for i, number := range numbers {
		parts = append(parts, hashPart{number, i})
	}
	return parts
}

func findHashPart(t testing.TB, policy *ratelimit.RateLimitPolicy, field string) hashPart {
	t.Helper()
	for _, part := range hashParts(policy) {
		if part.field.Name == field {
			return part
		}
	}
	t.Fatalf("no state of %s has a %s", policy.ID(), field)
	return hashPart{}
}

// replaced is name and value with the part changed.
func (h hashPart) replaced(identity, state, value string) (name, text string) {
	if h.place < 0 {
		return value, state
	}
	parts := strings.Split(state, " ")
	parts[h.place] = value
	return identity, strings.Join(parts, " ")
}

// dropped is name and value without the part.
func (h hashPart) dropped(identity, state string) (name, text string) {
	if h.place < 0 {
		return "", state
	}
	parts := strings.Split(state, " ")
	return identity, strings.Join(slices.Delete(parts, h.place, h.place+1), " ")
}
