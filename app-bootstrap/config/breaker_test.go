package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

func TestCircuitBreakerOfAFile(t *testing.T) {
	t.Parallel()
	c, err := Load(Source{
		File: filepath.Join("testdata", "ok_full.yaml"),
		Environ: []string{
			"EDGELIMIT_APP__CIRCUIT_BREAKER__REDIS__POOL_SIZE=3",
			"EDGELIMIT_APP__CIRCUIT_BREAKER__POLICIES__PAYMENTS__THRESHOLD=7",
		},
		Flags: map[string]any{"app.circuit-breaker.policies.search.rate-permille": int64(250)},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := c.CircuitBreaker
	if !b.Enabled || b.Provider != ProviderRedis || b.Redis.PoolSize != 3 || b.Redis.CommandTimeout != 50*time.Millisecond ||
		b.Key.Namespace != "production" || b.Key.Secret.IsZero() || b.Memory.MaxKeys != 100_000 || b.Admission.MaxInFlight != 512 ||
		b.UnavailableRetryAfter != time.Second {
		t.Errorf("%+v", b)
	}
	payments, search := b.Policies.Get("payments"), b.Policies.Get("search")
	if payments.Trip() != (breaker.ConsecutiveFailures{Threshold: 7}) || payments.MaxProbes() != 2 || payments.ProbeSuccesses() != 3 ||
		payments.OpenTimeout() != 30*time.Second || payments.ProbeLease() != 10*time.Second || payments.Lifetime() != 90*time.Second {
		t.Errorf("payments: %+v", payments)
	}
	if search.Trip() != (breaker.FailureRate{Window: 10 * time.Second, Buckets: 10, MinimumCalls: 20, RatePermille: 250}) ||
		search.MaxProbes() != 1 || search.ProbeSuccesses() != 1 || search.MaxClockRegression() != 2*time.Second {
		t.Errorf("search: %+v", search)
	}
}

func TestCircuitBreakerOff(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"ok_circuit_breaker_disabled.yaml", "ok_minimal_memory.yaml"} {
		c, err := Load(Source{File: filepath.Join("testdata", file)})
		if err != nil || breakerOutOfRange(c.CircuitBreaker) != "" || c.CircuitBreaker.Enabled {
			t.Errorf("%s: %+v, %v", file, c.CircuitBreaker, err)
		}
	}
	// Off is still decoded strictly.
	_, err := Load(Source{File: write(t, "off.yaml", "app: {circuit-breaker: {enabled: false, polices: {}}}")})
	if got := faultsOf(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "app.circuit-breaker.polices: is no known key; the nearest is app.circuit-breaker.policies") {
		t.Errorf("%v", got)
	}
}

func TestCircuitBreakerFromKoanf(t *testing.T) {
	t.Parallel()
	load := func(text, delimiter string) *koanf.Koanf {
		k := koanf.New(delimiter)
		if err := k.Load(rawbytes.Provider([]byte(text)), yaml.Parser()); err != nil {
			t.Fatal(err)
		}
		return k
	}
	const text = `
app:
  rate-limit: the host's own matter
  circuit-breaker:
    enabled: "true"
    provider: memory
    policies: {p.q: {revision: "1", trip: consecutive-failures, threshold: 3.0, open-timeout: 1s, probe-lease: 1s}}
`
	c, err := CircuitBreakerFromKoanf(load(text, "/"))
	if err != nil || !c.Enabled || c.Policies.Get("p.q") == nil {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = CircuitBreakerFromKoanf(load("app.circuit-breaker.enabled: true", "/"))
	if got := faultsOf(t, err); len(got) != 1 || !strings.Contains(got[0], "flat key") {
		t.Errorf("%v", got)
	}
}

// TestTripRules: every key of a rule is a field, and every rule builds a policy.
func TestTripRules(t *testing.T) {
	t.Parallel()
	for _, entry := range trips {
		given := values{"window": 20 * time.Second}
		for _, key := range entry.keys {
			at := slices.IndexFunc(breakerPolicyFields, func(f *field) bool { return leaf(f.path) == key })
			if at < 0 || breakerPolicyFields[at].required != "for "+entry.word {
				t.Errorf("%s: no key %s that is required for it", entry.word, key)
			}
			if !given.given(key) {
				given[key] = int64(1)
			}
		}
		_, err := breaker.NewPolicy(breaker.PolicyConfig{
			ID: "p", Revision: 1, Trip: entry.rule(given), OpenTimeout: time.Second, MaxProbes: 1, ProbeLease: time.Second, ProbeSuccesses: 1,
		})
		if err != nil {
			t.Errorf("%s: %v", entry.word, err)
		}
		// Every key reaches the rule, and what is refused comes back under it.
		for _, key := range entry.keys {
			less := values{}
			for k, v := range given {
				if k != key {
					less[k] = v
				}
			}
			_, err := breaker.NewPolicy(breaker.PolicyConfig{Trip: entry.rule(less)})
			if !slices.ContainsFunc(breakerPolicyErrors(err), func(f *breaker.PolicyError) bool { return kebab(f.Field) == key }) {
				t.Errorf("%s without %s: %v", entry.word, key, err)
			}
		}
	}
}
