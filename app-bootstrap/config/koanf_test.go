package config

import (
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

func host(t *testing.T, delim, text string) *koanf.Koanf {
	t.Helper()
	k := koanf.New(delim)
	if err := k.Load(rawbytes.Provider([]byte(text)), yaml.Parser()); err != nil {
		t.Fatal(err)
	}
	return k
}

const hostText = `
database: {dsn: somewhere}
app:
  name: shop
  orders: {enabled: true}
  rate-limit:
    enabled: true
    provider: memory
    default-policy: v1.p
    policies:
      v1.p: {revision: 1, algorithm: fixed-window, limit: 2, window: 1s}
`

func TestHostKeepsItsOwnSections(t *testing.T) {
	t.Parallel()
	for _, delim := range []string{".", "/", "::"} {
		c, err := FromKoanf(host(t, delim, hostText))
		if err != nil {
			t.Fatal(err)
		}
		if !c.RateLimit.Enabled || c.RateLimit.Policies.Get("v1.p") == nil {
			t.Errorf("delimiter %q: %+v", delim, c.RateLimit)
		}
	}
}

func TestHostTextsAndFloats(t *testing.T) {
	t.Parallel()
	k := host(t, ".", hostText)
	// What an environment provider and a JSON parser of the host would give.
	err := k.Load(confmap.Provider(map[string]any{
		"app.rate-limit.enabled": "true", "app.rate-limit.redis.pool-size": "7", "app.rate-limit.admission.max-in-flight": 8.0,
	}, "."), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := RateLimitFromKoanf(k)
	if err != nil {
		t.Fatal(err)
	}
	if r.Redis.PoolSize != 7 || r.Admission.MaxInFlight != 8 {
		t.Errorf("got %+v", r)
	}
}

func TestHostWithoutSection(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "app: 5", "app: {name: x}", "other: {}"} {
		c, err := FromKoanf(host(t, ".", text))
		if err != nil || c.RateLimit.Enabled {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

func TestHostFaults(t *testing.T) {
	t.Parallel()
	flat := koanf.New(".")
	if err := flat.Load(confmap.Provider(map[string]any{"app.rate-limit.enabled": true}, ""), nil); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		k    *koanf.Koanf
		want string
	}{
		"none":    {nil, "app: there is no koanf to read"},
		"flat":    {flat, "app.rate-limit.enabled: is one flat key, want nested sections: give koanf's provider its delimiter"},
		"unknown": {host(t, ".", "app: {rate-limit: {enabled: false, provder: redis}}"), "app.rate-limit.provder: is no known key; the nearest is app.rate-limit.provider"},
		"null":    {host(t, ".", "app: {rate-limit: }"), "app.rate-limit.enabled: is missing, want true or false"},
		"number":  {host(t, ".", "app: {rate-limit: {enabled: false, redis: {command-timeout: 5}}}"), "app.rate-limit.redis.command-timeout: is 5, want a duration with its unit, 1ms..10s"},
		"service": {host(t, ".", "app: {service: {log-format: xml}}"), `app.service.log-format: is "xml", want text or json`},
		"scalar":  {host(t, ".", "app: {rate-limit: off}"), "app.rate-limit: is a text, want a section"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := FromKoanf(test.k)
			compareLines(t, []string{test.want}, faultsOf(t, err))
		})
	}
	// A host's own app.service is not read where only the limiter is asked for.
	if _, err := RateLimitFromKoanf(host(t, ".", "app: {service: {their: own}}")); err != nil {
		t.Error(err)
	}
}
