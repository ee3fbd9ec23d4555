package config

import "time"

// CacheRedis is app.cache.redis. Where Enabled is false, every other field is zero. It shares nothing
// with the rate limiter, neither its settings nor its connection.
type CacheRedis struct {
	Enabled       bool
	Name          string // keeps caches of one namespace apart
	Redis         Redis
	Key           Key
	DefaultTTL    time.Duration // of a write that names cache.DefaultTTL
	MaxValueBytes int
	FailOpen      bool // an unavailable cache is as good as an empty one
}

// Where the section stands.
const (
	cachePath        = "app.cache"
	cacheRedisPath   = cachePath + ".redis"
	pathCacheEnabled = cacheRedisPath + ".enabled"
	pathCacheName    = cacheRedisPath + ".name"
	pathCacheTTL     = cacheRedisPath + ".default-ttl"
	pathCacheValue   = cacheRedisPath + ".max-value-bytes"
	pathCacheOpen    = cacheRedisPath + ".fail-open"
	whereEnabled     = "where enabled is true"
)

// cacheConnection is the cache's own.
var cacheConnection = connection{redis: cacheRedisPath, key: cacheRedisPath + ".key"}

// cacheRedis judges app.cache.redis and builds its settings; there says whether the section is there.
func (d *decoder) cacheRedis(there bool) CacheRedis {
	switch {
	case !there:
		return CacheRedis{}
	case !d.values.given(pathCacheEnabled):
		if !d.has(pathCacheEnabled) && !d.has(cacheRedisPath) && !d.has(cachePath) {
			d.add(pathCacheEnabled, "is missing, want true or false")
		}
		return CacheRedis{}
	case !d.values.boolean(pathCacheEnabled):
		return CacheRedis{}
	}
	d.judge(cacheFields)
	c := CacheRedis{
		Enabled:       true,
		Name:          d.values.text(pathCacheName),
		Redis:         d.connect(cacheConnection),
		Key:           Key{Namespace: d.namespace(cacheConnection), Secret: d.hmacSecret(cacheConnection, true)},
		DefaultTTL:    d.values.duration(pathCacheTTL),
		MaxValueBytes: d.values.number(pathCacheValue),
		FailOpen:      d.values.boolean(pathCacheOpen),
	}
	if !namespaceForm.MatchString(c.Name) {
		d.add(pathCacheName, "is %s, want 1..64 characters of a-z A-Z 0-9 . _ -", quote(c.Name))
	}
	if c.DefaultTTL%time.Millisecond != 0 {
		d.add(pathCacheTTL, "is %s, want whole milliseconds", durationText(c.DefaultTTL))
	}
	return c
}

// cacheSection decodes app.cache.redis below what stands at app.cache, the rest of which is not looked
// at.
func (d *decoder) cacheSection(app map[string]any) bool {
	section, _ := app[leaf(cachePath)].(map[string]any)
	d.flat(section, cachePath, leaf(cacheRedisPath))
	return d.section(cacheRedisPath, section)
}
