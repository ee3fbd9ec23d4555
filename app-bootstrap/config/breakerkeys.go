package config

import (
	"slices"
	"time"
)

// breakerFields are the keys of app.circuit-breaker but those of policies.
var breakerFields = slices.Concat([]*field{
	{
		path: pathBreakerEnabled, kind: kindBoolean, required: "where the section is there",
		about: "Turns the circuit breaker on. Off means no connection, no goroutine and no port in the graph; the rest of the section is then checked for unknown keys and wrong types only.",
	},
	{
		path: pathBreakerProvider, kind: kindWord, words: providerWords, required: "always",
		about: "Where breakers live: in a Redis that all instances share, or in the memory of this process. There is no default and no fallback.",
	},
	{
		path: pathBreakerHint, kind: kindDuration, def: time.Second, low: hintLow, high: hintHigh,
		about: "When callers are told to ask again where the breaker could not be asked. Calls are made meanwhile: a breaker fails open.",
	},
}, breakerConnection.fields(
	"The Redis that instances share breakers through. It is never the rate limiter's or the cache's by default. One server: cluster and sentinel are not supported in this revision.",
	redisOnly,
	"Bounds everything that one question to a breaker does: pool, dial, handshake and command. It adds to a call at most twice: before it and after it.",
), []*field{
	{
		path: breakerConnection.key + ".namespace", kind: kindText, low: 1, high: 64, def: "default", allowed: "1..64 characters of a-z A-Z 0-9 . _ -",
		about: "Keeps the keys of two environments apart that share one Redis.",
	},
	{
		path: breakerConnection.key + ".hmac-secret", kind: kindSecret, low: minSecretBytes, high: maxSecretBytes, required: "for redis, or hmac-secret-file",
		about: "Keys the digests of resources and of keys. All instances need the same; with a new one every breaker begins closed. The memory provider makes a random one for its process where none is given.",
	},
	{
		path: breakerConnection.key + ".hmac-secret-file", kind: kindFile, high: maxPathBytes, required: "for redis, or hmac-secret", allowed: oneNewline,
		about: "The file that holds the secret, 32..4096 bytes.",
	},
	{
		path: pathBreakerMaxKeys, kind: kindInteger, def: int64(100_000), low: 1, high: 100_000_000,
		about: "The greatest number of stored breakers of the memory provider. One that is closed and has counted nothing is not stored. At the bound, results of new resources are not counted.",
	},
	{
		path: pathBreakerInFlight, kind: kindInteger, def: int64(512), low: 1, high: 1 << 20,
		about: "The greatest number of questions to breakers at the same time, not of the calls that they are about. More are unavailable at once. The memory provider needs no such bound.",
	},
})

const breakerCount = "1..1000000000"

// breakerPolicyFields are the keys of a policy.
var breakerPolicyFields = []*field{
	{
		path: breakerPolicyPattern + ".revision", kind: kindInteger, required: "always", allowed: "1..2147483647",
		about: "Grows with each change of any other key. The breakers of a new revision begin closed.",
	},
	{
		path: breakerPolicyPattern + ".trip", kind: kindWord, words: tripWords(), required: "always",
		about: "When a closed breaker opens, and which of the keys below it takes.",
	},
	{
		path: breakerPolicyPattern + ".threshold", kind: kindInteger, required: "for consecutive-failures", allowed: breakerCount,
		about: "The failures in a row that trip. One success begins anew.",
	},
	{
		path: breakerPolicyPattern + ".window", kind: kindDuration, required: "for failure-rate", allowed: "1ms..100 years, whole milliseconds for each bucket",
		about: "The time over which results count.",
	},
	{
		path: breakerPolicyPattern + ".buckets", kind: kindInteger, required: "for failure-rate", allowed: "1..20",
		about: "The steps in which the window rolls.",
	},
	{
		path: breakerPolicyPattern + ".minimum-calls", kind: kindInteger, required: "for failure-rate", allowed: breakerCount,
		about: "The results in the window below which nothing trips.",
	},
	{
		path: breakerPolicyPattern + ".rate-permille", kind: kindInteger, required: "for failure-rate", allowed: "1..1000",
		about: "The failures of a thousand results that trip.",
	},
	{
		path: breakerPolicyPattern + ".open-timeout", kind: kindDuration, required: "always", allowed: periodSpan,
		about: "How long everything is rejected after a trip, on the store's clock.",
	},
	{
		path: breakerPolicyPattern + ".max-probes", kind: kindInteger, def: int64(1), allowed: "1..16",
		about: "The probes that a half-open breaker has under way at most.",
	},
	{
		path: breakerPolicyPattern + ".probe-lease", kind: kindDuration, required: "always", allowed: periodSpan,
		about: "How long a probe may take. After it the slot is free again and the result is late, so it is longer than a call can take.",
	},
	{
		path: breakerPolicyPattern + ".probe-successes", kind: kindInteger, def: int64(1), allowed: "1..1000000",
		about: "The successful probes that close the breaker. One failed probe opens it again.",
	},
	{
		path: breakerPolicyPattern + ".cleanup-grace", kind: kindDuration, def: time.Minute, allowed: "max-clock-regression..100 years, whole milliseconds",
		about: "How long state outlives the longest of open timeout, window and lease after its last write.",
	},
	{
		path: breakerPolicyPattern + ".max-clock-regression", kind: kindDuration, def: 2 * time.Second, allowed: "0s..24h, whole milliseconds",
		about: "The largest step back of the store's clock that is smoothed over.",
	},
}
