package config

import (
	"slices"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// TestEveryAlgorithmIsConfigurable fails where shared-contract has an algorithm that the registry lacks.
func TestEveryAlgorithmIsConfigurable(t *testing.T) {
	t.Parallel()
	for _, a := range ratelimit.Algorithms() {
		if findAlgorithm(a.String()) == nil {
			t.Errorf("%v is not in the registry", a)
		}
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	kinds := make(map[string]kind)
	for _, entry := range registry {
		given := make(values)
		for _, p := range entry.parameters {
			if k, seen := kinds[p.key]; seen && k != p.kind {
				t.Errorf("%s is a %v and a %v", p.key, k, p.kind)
			}
			kinds[p.key] = p.kind
			for _, f := range policyFields {
				if leaf(f.path) == p.key {
					t.Errorf("%s is a key of every policy", p.key)
				}
			}
			given[p.key] = any(int64(1))
			if p.kind == kindDuration {
				given[p.key] = time.Second
			}
		}
		config := ratelimit.RateLimitPolicyConfig{
			ID: "p", Revision: 1, Algorithm: entry.algorithm, Parameters: entry.build(given), MaxCost: 1, FailurePolicy: ratelimit.FailClosed,
		}
		if _, err := ratelimit.NewRateLimitPolicy(config); err != nil {
			t.Errorf("%v cannot be built from ones: %v", entry.algorithm, err)
		}
		// Every parameter reaches the policy, and what is refused comes back under its key.
		for _, p := range entry.parameters {
			less := make(values)
			for k, v := range given {
				if k != p.key {
					less[k] = v
				}
			}
			config.Parameters = entry.build(less)
			_, err := ratelimit.NewRateLimitPolicy(config)
			faults := policyErrors(err)
			if !slices.ContainsFunc(faults, func(f *ratelimit.PolicyError) bool { return kebab(f.Field) == p.key }) {
				t.Errorf("%v without %s: %v", entry.algorithm, p.key, err)
			}
		}
	}
}

func TestDefaultsAreInRange(t *testing.T) {
	t.Parallel()
	for _, f := range allFields {
		if f.def != nil && f.judge(f.def) != "" && f.path != pathAddress {
			t.Errorf("%s: the default %s", f.path, f.judge(f.def))
		}
		if f.def == nil && f.required == "" {
			t.Errorf("%s has no default and is not required", f.path)
		}
		if segments, found := locate(f.path); found != f {
			t.Errorf("%s is not found by its path %v", f.path, segments)
		}
	}
	if minSecretBytes != ratelimit.MinSecretBytes {
		t.Error("the least length of a secret differs from the contract's")
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ section, key, policy, want string }{
		{rateLimitPath, "command-timeout", "", pathCommandTimeout},
		{rateLimitPath, "Enabled", "", pathEnabled},
		{rateLimitPath + ".redis", "enabled", "", pathEnabled},
		{policyPattern, "windw", "login", policiesPath + ".login.window"},
		{rateLimitPath, "limit", "", policyPattern + ".limit"},
		{"app", "ratelimit", "", rateLimitPath},
	} {
		if got := nearest(test.section, test.key, test.policy); got != test.want {
			t.Errorf("nearest(%s, %s) is %s, want %s", test.section, test.key, got, test.want)
		}
	}
}

func TestReferenceNamesEveryKeyOnce(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, e := range Reference() {
		if seen[e.Path] {
			t.Errorf("%s is there twice", e.Path)
		}
		seen[e.Path] = true
	}
	for _, path := range []string{pathAddress, policyPattern + ".capacity", servicePath + ".log-level"} {
		if !seen[path] {
			t.Errorf("%s is missing", path)
		}
	}
}
