package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCircuitAndDenialCache: what is given arrives, and so do the defaults, for each provider.
func TestCircuitAndDenialCache(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct {
		circuit  Circuit
		denials  DenialCache
		coalesce bool
	}{
		"ok_circuit_off.yaml":    {Circuit{false, 1000, time.Minute}, DenialCache{true, 1}, false},
		"ok_minimal_redis.yaml":  {Circuit{true, 5, 250 * time.Millisecond}, DenialCache{false, 65536}, true},
		"ok_minimal_memory.yaml": {Circuit{true, 5, 250 * time.Millisecond}, DenialCache{false, 65536}, true},
		"ok_disabled.yaml":       {},
	} {
		c, err := Load(Source{File: "testdata/" + file})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.circuit, c.RateLimit.Circuit); diff != "" {
			t.Errorf("%s: circuit (-want +got):\n%s", file, diff)
		}
		if diff := cmp.Diff(want.denials, c.RateLimit.DenialCache); diff != "" {
			t.Errorf("%s: denial cache (-want +got):\n%s", file, diff)
		}
		if c.RateLimit.Redis.Coalesce != want.coalesce || c.CircuitBreaker.Redis.Coalesce || c.Cache.Redis.Coalesce {
			t.Errorf("%s: coalesce %v, %v, %v", file, c.RateLimit.Redis.Coalesce, c.CircuitBreaker.Redis.Coalesce, c.Cache.Redis.Coalesce)
		}
	}
}
