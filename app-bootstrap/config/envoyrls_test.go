package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

func TestEnvoyDefaults(t *testing.T) {
	t.Parallel()
	loaded, err := Load(Source{File: filepath.Join("testdata", "ok_envoy_minimal.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	want := EnvoyRLS{
		Enabled: true, RulesDir: "rules", Address: "127.0.0.1:8081", Failure: EnvoyFailureError, DefaultDeadline: 200 * time.Millisecond,
		MaxDescriptors: 32, MaxMessageBytes: 262144, MaxConcurrentStreams: 1024, CleanupGrace: 5 * time.Second, MaxClockRegression: 2 * time.Second,
		Keepalive:  EnvoyKeepalive{Time: time.Minute, Timeout: 20 * time.Second, MinTime: 10 * time.Second, MaxConnectionAgeGrace: 10 * time.Second},
		Reflection: true, Rescan: 30 * time.Second, ShutdownTimeout: 10 * time.Second,
	}
	if loaded.EnvoyRLS != want {
		t.Errorf("%+v\nwant %+v", loaded.EnvoyRLS, want)
	}
	for failure, word := range map[EnvoyFailure]string{EnvoyFailureError: "error", EnvoyFailureDeny: "deny", 7: "INVALID"} {
		if failure.String() != word {
			t.Errorf("%v, want %s", failure, word)
		}
	}
}

// TestEnvoySettings: each key reaches its own setting, from flags and the environment too.
func TestEnvoySettings(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	loaded, err := Load(Source{
		File: filepath.Join("testdata", "ok_envoy_minimal.yaml"),
		Environ: []string{
			"EDGELIMIT_APP__ENVOY_RLS__MERGE_DOMAINS=true", "EDGELIMIT_APP__ENVOY_RLS__KEEPALIVE__MAX_CONNECTION_AGE=1h",
			"EDGELIMIT_APP__ENVOY_RLS__RESPONSE_HEADERS__ENABLED=true", "EDGELIMIT_APP__ENVOY_RLS__RESPONSE_HEADERS__RESET=",
		},
		Flags: map[string]any{
			"app.envoy-rls.address": "0.0.0.0:0", "app.envoy-rls.tls-cert": cert, "app.envoy-rls.tls-key": key, "app.envoy-rls.tls-client-ca": cert,
			"app.envoy-rls.failure-mode": "deny", "app.envoy-rls.mode": "shadow", "app.envoy-rls.default-deadline": "1s",
			"app.envoy-rls.max-descriptors": 7, "app.envoy-rls.max-message-bytes": 2048, "app.envoy-rls.max-concurrent-streams": 9,
			"app.envoy-rls.dynamic-metadata": true, "app.envoy-rls.cleanup-grace": "1m", "app.envoy-rls.max-clock-regression": "3s",
			"app.envoy-rls.keepalive.time": "2s", "app.envoy-rls.keepalive.timeout": "3s", "app.envoy-rls.keepalive.min-time": "4s",
			"app.envoy-rls.keepalive.max-connection-age-grace": "5s", "app.envoy-rls.reflection": false,
			"app.envoy-rls.rescan-interval": "6s", "app.envoy-rls.shutdown-timeout": "7s", "app.envoy-rls.allow-plaintext": true,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := EnvoyRLS{
		Enabled: true, RulesDir: "rules", MergeDomains: true, Address: "0.0.0.0:0", TLSCert: cert, TLSKey: key, TLSClientCA: cert, AllowPlaintext: true,
		Failure: EnvoyFailureDeny, Shadow: true, DefaultDeadline: time.Second, MaxDescriptors: 7, MaxMessageBytes: 2048, MaxConcurrentStreams: 9,
		Headers:         EnvoyHeaders{Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", RetryAfter: "Retry-After"},
		DynamicMetadata: true, CleanupGrace: time.Minute, MaxClockRegression: 3 * time.Second,
		Keepalive: EnvoyKeepalive{Time: 2 * time.Second, Timeout: 3 * time.Second, MinTime: 4 * time.Second, MaxConnectionAge: time.Hour, MaxConnectionAgeGrace: 5 * time.Second},
		Rescan:    6 * time.Second, ShutdownTimeout: 7 * time.Second,
	}
	if loaded.EnvoyRLS != want {
		t.Errorf("%+v\nwant %+v", loaded.EnvoyRLS, want)
	}
}

func TestHostEnvoy(t *testing.T) {
	t.Parallel()
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(map[string]any{"app": map[string]any{
		"envoy-rls": map[string]any{"enabled": "true", "rules-dir": "r", "max-descriptors": "3"},
		"rate-limit": map[string]any{
			"enabled": true, "provider": "memory", "default-policy": "p",
			"policies": map[string]any{"p": map[string]any{"revision": 1, "algorithm": "fixed-window", "limit": 1, "window": "1s"}},
		},
		"service": map[string]any{"its": "own"},
	}}, "."), nil); err != nil {
		t.Fatal(err)
	}
	limiter, envoy, err := EnvoyRLSFromKoanf(k)
	if err != nil || !limiter.Enabled || !envoy.Enabled || envoy.MaxDescriptors != 3 {
		t.Errorf("%+v, %v", envoy, err)
	}
	flat := koanf.New("/")
	if err := flat.Load(confmap.Provider(map[string]any{"app.envoy-rls.enabled": true}, "/"), nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err = EnvoyRLSFromKoanf(flat); err == nil || !strings.Contains(err.Error(), "is one flat key") {
		t.Errorf("a flat key: %v", err)
	}
}
