package config

import (
	"crypto/tls"
	"path/filepath"
	"testing"
	"time"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

func TestCacheDefaults(t *testing.T) {
	t.Parallel()
	loaded, err := Load(Source{File: filepath.Join("testdata", "ok_cache.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	c := loaded.Cache
	for what, same := range map[string]bool{
		"enabled": c.Enabled, "name": c.Name == "default", "address": c.Redis.Address == "cache.internal:6379",
		"namespace": c.Key.Namespace == "default", "command-timeout": c.Redis.CommandTimeout == 50*time.Millisecond,
		"pool-size": c.Redis.PoolSize == 16, "database": c.Redis.Database == 0, "tls": c.Redis.TLS == nil,
		"default-ttl": c.DefaultTTL == 5*time.Minute, "max-value-bytes": c.MaxValueBytes == 65536, "fail-open": c.FailOpen,
		"the limiter stays off": !loaded.RateLimit.Enabled,
	} {
		if !same {
			t.Errorf("%s is wrong: %+v", what, c)
		}
	}
}

// TestCacheIsApart: each of the two sections reaches its own settings and none of the other's.
func TestCacheIsApart(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	secret := write(t, "secret", "cache-secret-of-32-bytes-or-more\n")
	loaded, err := Load(Source{
		File: filepath.Join("testdata", "ok_full.yaml"),
		Environ: []string{
			"EDGELIMIT_APP__CACHE__REDIS__POOL_SIZE=3", "EDGELIMIT_APP__CACHE__REDIS__FAIL_OPEN=false",
			"EDGELIMIT_APP__CACHE__REDIS__PASSWORD=of-the-cache", "EDGELIMIT_APP__CACHE__REDIS__KEY__NAMESPACE=cached",
		},
		Flags: map[string]any{
			"app.cache.redis.default-ttl": 7 * time.Second, "app.cache.redis.name": "sessions", "app.cache.redis.database": 4,
			"app.cache.redis.tls.enabled": true, "app.cache.redis.tls.cert-file": cert, "app.cache.redis.tls.key-file": key,
			"app.cache.redis.tls.ca-file": cert, "app.cache.redis.command-timeout": "11ms",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, r := loaded.Cache, loaded.RateLimit
	for what, same := range map[string]bool{
		"pool-size": c.Redis.PoolSize == 3 && r.Redis.PoolSize == 16, "fail-open": !c.FailOpen,
		"password":  string(c.Redis.Password.Reveal()) == "of-the-cache" && string(r.Redis.Password.Reveal()) == "replace-this-password",
		"namespace": c.Key.Namespace == "cached" && r.Key.Namespace == "production",
		"ttl":       c.DefaultTTL == 7*time.Second, "name": c.Name == "sessions", "database": c.Redis.Database == 4 && r.Redis.Database == 0,
		"address":  c.Redis.Address == "127.0.0.1:6380" && r.Redis.Address == "127.0.0.1:6379",
		"username": c.Redis.Username == "cache" && r.Redis.Username == "edgelimit",
		"secrets":  !c.Key.Secret.Equal(r.Key.Secret),
		"timeout":  c.Redis.CommandTimeout == 11*time.Millisecond && r.Redis.CommandTimeout == 50*time.Millisecond,
		"tls": r.Redis.TLS == nil && c.Redis.TLS != nil && c.Redis.TLS.MinVersion == tls.VersionTLS12 &&
			len(c.Redis.TLS.Certificates) == 1 && c.Redis.TLS.RootCAs != nil && c.Redis.TLS.ServerName == "127.0.0.1",
	} {
		if !same {
			t.Errorf("%s is wrong: %+v beside %+v", what, c, r)
		}
	}
	loaded, err = Load(Source{File: filepath.Join("testdata", "ok_cache.yaml"), Flags: map[string]any{
		"app.cache.redis.key.hmac-secret-file": secret, "app.cache.redis.key.hmac-secret": "",
	}})
	if err == nil {
		t.Errorf("two secrets are taken: %+v", loaded.Cache)
	}
}

// TestHostCache reads app.cache.redis of a host and nothing else at app.cache.
func TestHostCache(t *testing.T) {
	t.Parallel()
	const text = `
app:
  cache:
    local: {size: 5}
    redis: {enabled: true, address: "c:1", key: {hmac-secret: 0123456789abcdef0123456789abcdef}}
`
	c, err := CacheFromKoanf(host(t, ".", text))
	if err != nil || !c.Enabled || c.Redis.Address != "c:1" {
		t.Errorf("got %+v, %v", c, err)
	}
	all, err := FromKoanf(host(t, ".", text))
	if err != nil || !all.Cache.Enabled || all.RateLimit.Enabled {
		t.Errorf("got %+v, %v", all, err)
	}
	// Whoever asks for the limiter alone does not read it, be it wrong or right.
	for _, text := range []string{text, "app: {cache: {redis: {enabled: 5, what: ever}}}", "app: {cache: off}"} {
		if r, err := RateLimitFromKoanf(host(t, ".", text)); err != nil || r.Enabled {
			t.Errorf("%s: got %+v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "app: {cache: {local: {}}}", "app: {cache: off}", "app: {rate-limit: {enabled: 5}}"} {
		if c, err := CacheFromKoanf(host(t, ".", text)); err != nil || c.Enabled {
			t.Errorf("%q: got %+v, %v", text, c, err)
		}
	}
	flat := func(keys map[string]any) *koanf.Koanf {
		k := koanf.New(".")
		if err := k.Load(confmap.Provider(keys, ""), nil); err != nil {
			t.Fatal(err)
		}
		return k
	}
	const advice = "is one flat key, want nested sections: give koanf's provider its delimiter"
	for name, test := range map[string]struct {
		k    *koanf.Koanf
		want []string
	}{
		"none":    {nil, []string{"app: there is no koanf to read"}},
		"unknown": {host(t, ".", "app: {cache: {redis: {enabled: false, ttl: 5s}}}"), []string{"app.cache.redis.ttl: is no known key; the nearest is app.cache.redis.tls"}},
		"null":    {host(t, ".", "app: {cache: {redis: }}"), []string{"app.cache.redis.enabled: is missing, want true or false"}},
		"scalar":  {host(t, ".", "app: {cache: {redis: on}}"), []string{"app.cache.redis: is a text, want a section"}},
		"flat":    {flat(map[string]any{"app.cache.redis.enabled": true}), []string{"app.cache.redis.enabled: " + advice}},
		"flat below app": {flat(map[string]any{"app": map[string]any{"cache.redis.enabled": true}}), []string{
			"app.cache.redis.enabled: " + advice,
		}},
		"flat below cache": {flat(map[string]any{"app": map[string]any{"cache": map[string]any{"redis.enabled": true}}}), []string{
			"app.cache.redis.enabled: " + advice,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := CacheFromKoanf(test.k)
			compareLines(t, test.want, faultsOf(t, err))
		})
	}
}
