package config

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// policy judges one policy, whose values are by key. It gives nil where something is wrong.
func (d *decoder) policy(id string, given values) *ratelimit.RateLimitPolicy {
	path := join(policiesPath, showKey(id))
	before := len(d.faults)
	require := func(key, want string) {
		if !given.given(key) && !d.has(join(path, key)) {
			d.add(join(path, key), "is missing, want %s", want)
		}
	}
	for _, f := range policyFields {
		key := leaf(f.path)
		if f.required != "" {
			require(key, f.want())
		} else if !given.given(key) {
			given[key] = f.def
		}
	}
	word := given.text("algorithm")
	entry := findAlgorithm(word)
	if entry == nil {
		if given.given("algorithm") {
			d.add(join(path, "algorithm"), "is %s, want %s", quote(word), orList(algorithmWords()[1:]))
		}
		// The parameters cannot be judged, but the rest can: the first algorithm stands in, and what
		// is said about its parameters is dropped.
		entry = &registry[0]
	} else {
		d.parameters(path, entry, given, require)
	}
	policy, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID:                 ratelimit.PolicyID(id),
		Revision:           given.integer("revision"),
		Algorithm:          entry.algorithm,
		Parameters:         entry.build(given),
		MaxCost:            given.integer("max-cost"),
		CleanupGrace:       given.duration("cleanup-grace"),
		MaxClockRegression: given.duration("max-clock-regression"),
		FailurePolicy:      ratelimit.FailClosed,
	})
	d.refusals(path, err, func(key string) bool {
		return word != entry.algorithm.String() && entry.parameter(key) != nil
	})
	if err != nil || len(d.faults) > before {
		return nil
	}
	return policy
}

// parameters says which of an algorithm's keys are missing and which given ones are another's.
func (d *decoder) parameters(path string, entry *algorithmEntry, given values, require func(key, want string)) {
	word := entry.algorithm.String()
	for _, p := range entry.parameters {
		f := field{kind: p.kind, allowed: p.span}
		require(p.key, f.want()+": "+word+" needs it")
	}
	for key := range given {
		if belongs := owners(key); len(belongs) > 0 && !slices.Contains(belongs, word) {
			d.add(join(path, key), "belongs to %s, not to %s", strings.Join(belongs, ", "), word)
		}
	}
}

// refusals puts what a policy's constructor said under the paths of the keys. What concerns a key
// that is wrong or missing already is a consequence of that, and is left out.
func (d *decoder) refusals(path string, err error, drop func(key string) bool) {
	for _, fault := range policyErrors(err) {
		key := kebab(fault.Field)
		at := join(path, key)
		if fault.Field == "ID" {
			at = path
		}
		if !d.has(at) && !drop(key) {
			d.add(at, "%v", fault.Err)
		}
	}
}

// policyErrors lists the faults that NewRateLimitPolicy joined.
func policyErrors(err error) []*ratelimit.PolicyError {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []*ratelimit.PolicyError{{Field: "ID", Err: err}}
	}
	var faults []*ratelimit.PolicyError
	for _, each := range joined.Unwrap() {
		var fault *ratelimit.PolicyError
		if !errors.As(each, &fault) {
			fault = &ratelimit.PolicyError{Field: "ID", Err: each}
		}
		faults = append(faults, fault)
	}
	return faults
}

// kebab turns a Go field's name into a key: RefillTokens into refill-tokens.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
