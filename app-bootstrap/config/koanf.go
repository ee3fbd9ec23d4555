package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"
)

// FromKoanf reads app.rate-limit, app.circuit-breaker, app.cache.redis, app.service and app.envoy-rls from
// the koanf of a host application. It is strict below these; everything else in k is the host's and is not looked at. None
// has to be there: without app.rate-limit the limiter is disabled, without app.circuit-breaker and
// app.cache.redis the breaker and the cache, without app.envoy-rls the door for Envoy,
// without app.service its defaults hold.
//
// k may hold numbers and truth values as texts, as environment variables give them.
func FromKoanf(k *koanf.Koanf) (Config, error) {
	return fromKoanf(k, rateLimitPath, breakerPath, cacheRedisPath, servicePath, envoyPath)
}

// RateLimitFromKoanf is FromKoanf for app.rate-limit alone: what a host has at app.cache and
// app.service is its own matter.
func RateLimitFromKoanf(k *koanf.Koanf) (RateLimit, error) {
	c, err := fromKoanf(k, rateLimitPath)
	return c.RateLimit, err
}

// CacheFromKoanf is FromKoanf for app.cache.redis alone.
func CacheFromKoanf(k *koanf.Koanf) (CacheRedis, error) {
	c, err := fromKoanf(k, cacheRedisPath)
	return c.Cache, err
}

// CircuitBreakerFromKoanf is FromKoanf for app.circuit-breaker alone.
func CircuitBreakerFromKoanf(k *koanf.Koanf) (CircuitBreaker, error) {
	c, err := fromKoanf(k, breakerPath)
	return c.CircuitBreaker, err
}

// EnvoyRLSFromKoanf is FromKoanf for app.rate-limit and app.envoy-rls alone: the door is nothing without
// the limiter.
func EnvoyRLSFromKoanf(k *koanf.Koanf) (RateLimit, EnvoyRLS, error) {
	c, err := fromKoanf(k, rateLimitPath, envoyPath)
	return c.RateLimit, c.EnvoyRLS, err
}

func fromKoanf(k *koanf.Koanf, sections ...string) (Config, error) {
	d := newDecoder(textual)
	if k == nil {
		d.add("app", "there is no koanf to read")
		return Config{}, d.err()
	}
	tree := k.Raw()
	app, _ := tree["app"].(map[string]any)
	var c Config
	switchable := func(section string) bool {
		if !slices.Contains(sections, section) {
			return false
		}
		d.flat(tree, "", section)
		d.flat(app, "app", strings.TrimPrefix(section, "app."))
		return true
	}
	if switchable(rateLimitPath) {
		c.RateLimit = d.rateLimit(d.section(rateLimitPath, app))
	}
	if switchable(breakerPath) {
		c.CircuitBreaker = d.circuitBreaker(d.section(breakerPath, app))
	}
	if switchable(cacheRedisPath) {
		c.Cache = d.cacheRedis(d.cacheSection(app))
	}
	if switchable(envoyPath) {
		c.EnvoyRLS = d.envoyRLS(d.section(envoyPath, app), c.RateLimit)
	}
	if slices.Contains(sections, servicePath) {
		// The defaults of a program that is not run are not held against the limiter.
		if there := d.section(servicePath, app); there {
			c.Service = d.service(c.RateLimit)
		} else {
			c.Service = d.service(RateLimit{})
		}
	}
	if err := d.err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// flat finds keys such as "app.rate-limit.enabled" that were loaded without a delimiter: they are
// no section, and a limiter that somebody turned on would silently be off.
func (d *decoder) flat(tree map[string]any, parent, name string) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if strings.HasPrefix(key, name+".") || parent == "" && key == name {
			d.add(join(parent, key), "is one flat key, want nested sections: give koanf's provider its delimiter")
		}
	}
}
