package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

// CircuitBreaker is app.circuit-breaker. Where Enabled is false, every other field is zero. It shares
// nothing with the rate limiter, neither its settings nor its connection.
type CircuitBreaker struct {
	Enabled               bool
	Provider              Provider
	Policies              *breaker.PolicySet `json:"-"`
	Redis                 Redis
	Key                   Key
	Memory                Memory
	Admission             Admission
	UnavailableRetryAfter time.Duration // the hint of Unavailable and Indeterminate, 1ms..1h
}

// Where the section and its policies stand.
const (
	breakerPath          = "app.circuit-breaker"
	breakerPoliciesPath  = breakerPath + ".policies"
	breakerPolicyPattern = breakerPoliciesPath + "." + anyPolicy
	pathBreakerEnabled   = breakerPath + ".enabled"
	pathBreakerProvider  = breakerPath + ".provider"
	pathBreakerHint      = breakerPath + ".unavailable-retry-after"
	pathBreakerMaxKeys   = breakerPath + ".memory.max-keys"
	pathBreakerInFlight  = breakerPath + ".admission.max-in-flight"
)

// breakerConnection is the circuit breaker's own.
var breakerConnection = connection{redis: breakerPath + ".redis", key: breakerPath + ".key"}

// circuitBreaker judges app.circuit-breaker and builds its settings; there says whether the section is
// there.
func (d *decoder) circuitBreaker(there bool) CircuitBreaker {
	switch {
	case !there:
		return CircuitBreaker{}
	case !d.values.given(pathBreakerEnabled):
		if !d.has(pathBreakerEnabled) && !d.has(breakerPath) {
			d.add(pathBreakerEnabled, "is missing, want true or false")
		}
		return CircuitBreaker{}
	case !d.values.boolean(pathBreakerEnabled):
		return CircuitBreaker{}
	}
	d.judge(breakerFields)
	v := d.values
	c := CircuitBreaker{
		Enabled:               true,
		Provider:              Provider(indexOf(providerWords, v.text(pathBreakerProvider))),
		Key:                   Key{Namespace: d.namespace(breakerConnection)},
		Memory:                Memory{MaxKeys: v.number(pathBreakerMaxKeys)},
		Admission:             Admission{MaxInFlight: v.number(pathBreakerInFlight)},
		UnavailableRetryAfter: v.duration(pathBreakerHint),
	}
	c.Key.Secret = d.hmacSecret(breakerConnection, c.Provider == ProviderRedis)
	if c.Provider == ProviderRedis {
		c.Redis = d.connect(breakerConnection)
	} else {
		c.Redis = d.connectionValues(breakerConnection)
		d.address(breakerConnection, false)
	}
	c.Policies = d.breakerPolicySet()
	return c
}

// breakerPolicySet builds all policies. What it gives where something is wrong is not used.
func (d *decoder) breakerPolicySet() *breaker.PolicySet {
	switch {
	case d.has(breakerPoliciesPath):
		return nil
	case len(d.breakers) == 0:
		d.add(breakerPoliciesPath, "is missing, want at least one policy")
		return nil
	case len(d.breakers) > maxPolicies:
		d.add(breakerPoliciesPath, "has %d policies, want at most %d", len(d.breakers), maxPolicies)
		return nil
	}
	var policies []*breaker.Policy
	for _, id := range slices.Sorted(maps.Keys(d.breakers)) {
		if d.has(join(breakerPoliciesPath, showKey(id))) {
			continue // it is no section
		}
		if p := d.breakerPolicy(id, d.breakers[id]); p != nil {
			policies = append(policies, p)
		}
	}
	set, err := breaker.NewPolicySet(policies...)
	if err != nil {
		return nil // no policy was made, and why was said
	}
	return set
}

// tripEntry says how one trip rule is configured.
type tripEntry struct {
	word string
	keys []string
	rule func(values) breaker.TripRule
}

// trips lists the rules; every key of one is required with it and refused with the other.
var trips = []tripEntry{
	{"consecutive-failures", []string{"threshold"}, func(v values) breaker.TripRule {
		return breaker.ConsecutiveFailures{Threshold: v.integer("threshold")}
	}},
	{"failure-rate", []string{"window", "buckets", "minimum-calls", "rate-permille"}, func(v values) breaker.TripRule {
		return breaker.FailureRate{
			Window: v.duration("window"), Buckets: v.integer("buckets"),
			MinimumCalls: v.integer("minimum-calls"), RatePermille: v.integer("rate-permille"),
		}
	}},
}

func tripWords() []string {
	words := []string{"INVALID"}
	for _, entry := range trips {
		words = append(words, entry.word)
	}
	return words
}

// breakerPolicy judges one policy, whose values are by key. It gives nil where something is wrong.
func (d *decoder) breakerPolicy(id string, given values) *breaker.Policy {
	path := join(breakerPoliciesPath, showKey(id))
	before := len(d.faults)
	word := given.text("trip")
	for _, f := range breakerPolicyFields {
		key := leaf(f.path)
		owner := slices.IndexFunc(trips, func(e tripEntry) bool { return slices.Contains(e.keys, key) })
		needed := f.required == "always" || owner >= 0 && trips[owner].word == word
		switch {
		case given.given(key) && owner >= 0 && indexOf(tripWords(), word) > 0 && trips[owner].word != word:
			d.add(join(path, key), "belongs to %s, not to %s", trips[owner].word, word)
		case given.given(key):
		case needed && !d.has(join(path, key)):
			d.add(join(path, key), "is missing, want %s", f.want())
		case f.def != nil:
			given[key] = f.def
		}
	}
	rule := breaker.TripRule(breaker.ConsecutiveFailures{Threshold: 1}) // while the rule is not known
	if n := indexOf(tripWords(), word); n > 0 {
		rule = trips[n-1].rule(given)
	} else if given.given("trip") {
		d.add(join(path, "trip"), "is %s, want %s", quote(word), orList(tripWords()[1:]))
	}
	policy, err := breaker.NewPolicy(breaker.PolicyConfig{
		ID:                 breaker.PolicyID(id),
		Revision:           given.integer("revision"),
		Trip:               rule,
		OpenTimeout:        given.duration("open-timeout"),
		MaxProbes:          given.integer("max-probes"),
		ProbeLease:         given.duration("probe-lease"),
		ProbeSuccesses:     given.integer("probe-successes"),
		CleanupGrace:       given.duration("cleanup-grace"),
		MaxClockRegression: given.duration("max-clock-regression"),
	})
	for _, fault := range breakerPolicyErrors(err) {
		at := join(path, kebab(fault.Field))
		if fault.Field == "ID" {
			at = path
		}
		// What concerns a key that is wrong or missing already is a consequence of that.
		if !d.has(at) {
			d.add(at, "%v", fault.Err)
		}
	}
	if err != nil || len(d.faults) > before {
		return nil
	}
	return policy
}

// breakerPolicyErrors lists the faults that breaker.NewPolicy found.
func breakerPolicyErrors(err error) []*breaker.PolicyError {
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var faults []*breaker.PolicyError
	for _, each := range all {
		var fault *breaker.PolicyError
		if !errors.As(each, &fault) {
			fault = &breaker.PolicyError{Field: "ID", Err: each}
		}
		faults = append(faults, fault)
	}
	return faults
}

// policyTrees are the sections whose keys are the IDs of policies.
var policyTrees = []string{policiesPath, breakerPoliciesPath}

// inPolicy splits a path below a section of policies into that section and the rest.
func inPolicy(path string) (tree, rest string, ok bool) {
	for _, tree := range policyTrees {
		if rest, ok := strings.CutPrefix(path, tree+"."); ok {
			return tree, rest, true
		}
	}
	return "", "", false
}

// policiesAt is what was given in a section of policies, nil for any other section.
func (d *decoder) policiesAt(path string) map[string]values {
	switch path {
	case policiesPath:
		return d.policies
	case breakerPoliciesPath:
		return d.breakers
	}
	return nil
}
