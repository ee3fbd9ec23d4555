package config

import (
	"slices"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
)

// cacheFields are the keys of app.cache.redis.
var cacheFields = slices.Concat([]*field{
	{
		path: pathCacheEnabled, kind: kindBoolean, required: "where the section is there",
		about: "Turns the cache on. Off means no connection, no goroutine and no port in the graph; the rest of the section is then checked for unknown keys and wrong types only.",
	},
	{
		path: pathCacheName, kind: kindText, low: 1, high: 64, def: "default", allowed: "1..64 characters of a-z A-Z 0-9 . _ -",
		about: "Keeps the entries of two caches apart that share a namespace.",
	},
}, cacheConnection.fields(
	"The Redis that holds the cache. It is never the rate limiter's by default, and the limiter never uses it: a server that may evict what a cache holds must not hold limits.",
	whereEnabled,
	"Bounds everything that one operation does: pool, dial, handshake and command. What takes longer is unavailable.",
), []*field{
	{
		path: cacheConnection.key + ".namespace", kind: kindText, low: 1, high: 64, def: "default", allowed: "1..64 characters of a-z A-Z 0-9 . _ -",
		about: "Keeps the keys of two environments apart that share one Redis.",
	},
	{
		path: cacheConnection.key + ".hmac-secret", kind: kindSecret, low: minSecretBytes, high: maxSecretBytes, required: "where enabled is true, or hmac-secret-file",
		about: "Keys the digests that stand for the keys of entries. All instances need the same; with a new one the cache is empty.",
	},
	{
		path: cacheConnection.key + ".hmac-secret-file", kind: kindFile, high: maxPathBytes, required: "where enabled is true, or hmac-secret", allowed: oneNewline,
		about: "The file that holds the secret, 32..4096 bytes.",
	},
	{
		path: pathCacheTTL, kind: kindDuration, def: 5 * time.Minute, low: int64(cache.MinTTL), high: int64(cache.MaxTTL), allowed: periodSpan,
		about: "The lifetime of an entry whose writer names none of its own.",
	},
	{
		path: pathCacheValue, kind: kindInteger, def: int64(64 << 10), low: 1, high: cache.MaxValueBytes,
		about: "The greatest value that is stored. A larger one is the writer's mistake.",
	},
	{
		path: pathCacheOpen, kind: kindBoolean, def: true,
		about: "Makes a cache that is unavailable as good as an empty one: reads miss, writes do nothing and say so, the log tells. With false, failures come back as errors. The rate limiter has no such switch: it fails closed.",
	},
})
