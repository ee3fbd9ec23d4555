package config

import (
	"slices"
	"time"
)

// The sections, and where policies stand.
const (
	rateLimitPath = "app.rate-limit"
	servicePath   = "app.service"
	policiesPath  = rateLimitPath + ".policies"
	policyPattern = policiesPath + "." + anyPolicy
	anyPolicy     = "<id>"
)

// The keys that code names more than once.
const (
	pathEnabled         = rateLimitPath + ".enabled"
	pathProvider        = rateLimitPath + ".provider"
	pathDefaultPolicy   = rateLimitPath + ".default-policy"
	pathAddress         = rateLimitPath + ".redis.address"
	pathCommandTimeout  = rateLimitPath + ".redis.command-timeout"
	pathTLS             = rateLimitPath + ".redis.tls"
	pathCoalesce        = rateLimitPath + ".redis.coalesce"
	circuitPath         = rateLimitPath + ".circuit"
	denialCachePath     = rateLimitPath + ".denial-cache"
	pathHMACSecret      = rateLimitPath + ".key.hmac-secret"
	pathHMACSecretFile  = rateLimitPath + ".key.hmac-secret-file"
	pathNamespace       = rateLimitPath + ".key.namespace"
	pathHTTPAddress     = servicePath + ".http-address"
	pathTLSCert         = servicePath + ".tls-cert"
	pathTLSKey          = servicePath + ".tls-key"
	pathAllowPlaintext  = servicePath + ".allow-plaintext"
	pathDefaultDeadline = servicePath + ".default-deadline"
	pathMaxDeadline     = servicePath + ".max-deadline"
)

const (
	minSecretBytes = 32 // ratelimit.MinSecretBytes; a test compares
	maxSecretBytes = 4096
	maxPathBytes   = 4096
	maxPolicies    = 10_000
	maxCommandTime = 10 * time.Second
	ms             = int64(time.Millisecond)
	hintLow        = ms
	hintHigh       = int64(time.Hour)
	redisOnly      = "for redis"
	oneNewline     = "the path of a file; one newline at its end is not part of the secret"
)

// rateLimitFields are the keys of app.rate-limit but those of policies.
var rateLimitFields = slices.Concat([]*field{
	{
		path: pathEnabled, kind: kindBoolean, required: "where the section is there",
		about: "Turns the limiter on. Off means no connection, no goroutine and no port in the graph; the rest of the section is then checked for unknown keys and wrong types only.",
	},
	{
		path: pathProvider, kind: kindWord, words: providerWords, required: "always",
		about: "Where decisions are made: in a Redis that all instances share, or in the memory of this process. There is no default and no fallback.",
	},
	{
		path: rateLimitPath + ".role", kind: kindWord, words: roleWords, def: "coordination",
		about: "What the store is for. The only role.",
	},
	{
		path: rateLimitPath + ".failure-policy", kind: kindWord, words: failureWords, def: "fail-closed",
		about: "What happens while nothing can be decided. The only policy of this revision: nothing is admitted.",
	},
	{
		path: pathDefaultPolicy, kind: kindText, low: 1, high: 64, required: "always", allowed: "the name of one of the policies",
		about: "The policy of a request that names none.",
	},
	{
		path: rateLimitPath + ".unavailable-retry-after", kind: kindDuration, def: time.Second, low: hintLow, high: hintHigh,
		about: "When callers are told to ask again after an outcome that is no decision, where the exact time is not known.",
	},
}, limiterConnection.fields(
	"The Redis that instances coordinate through. One server: cluster and sentinel are not supported in this revision.",
	redisOnly,
	"Bounds everything that one evaluation does: queue, pool, dial, handshake and command. A caller that has less time left is refused before anything is sent.",
), []*field{
	{
		path: pathCoalesce, kind: kindBoolean, def: true,
		about: "Evaluations in flight together travel together, many to a write. A lone one is sent at once. With false each is sent by itself.",
	},
	{
		path: circuitPath + ".enabled", kind: kindBoolean, def: true,
		about: "Answers unavailable at once while Redis is lost, instead of after command-timeout each. It turns nothing into an allow. The memory provider has none, whatever this section says.",
	},
	{
		path: circuitPath + ".failures", kind: kindInteger, def: int64(5), low: 1, high: 1000,
		about: "The failures in a row that open the circuit: timeouts, lost connections, connections that cannot be made. Every reply, a refusal too, begins anew.",
	},
	{
		path: circuitPath + ".open-timeout", kind: kindDuration, def: 250 * time.Millisecond, low: ms, high: int64(time.Minute),
		about: "How long Redis is not asked after that. The next evaluation is the one that finds out: it closes the circuit, or opens it for as long again.",
	},
	{
		path: denialCachePath + ".enabled", kind: kindBoolean, def: false,
		about: "Answers repeated denials from the memory of this process, for as long as they are certain to be denied. It never allows. A Redis that loses its state, or whose clock is set forward, is noticed later by up to 10s.",
	},
	{
		path: denialCachePath + ".max-entries", kind: kindInteger, def: int64(65_536), low: 1, high: 1 << 20,
		about: "The greatest number of denials that are remembered. At the bound, older ones are forgotten.",
	},
	{
		path: pathNamespace, kind: kindText, low: 1, high: 64, def: "default", allowed: "1..64 characters of a-z A-Z 0-9 . _ -",
		about: "Keeps the keys of two environments apart that share one Redis.",
	},
	{
		path: pathHMACSecret, kind: kindSecret, low: minSecretBytes, high: maxSecretBytes, required: "for redis, or hmac-secret-file",
		about: "Keys the digests of identities and of keys. All instances need the same; a new one gives every subject a fresh quota. The memory provider makes a random one for its process where none is given.",
	},
	{
		path: pathHMACSecretFile, kind: kindFile, high: maxPathBytes, required: "for redis, or hmac-secret", allowed: oneNewline,
		about: "The file that holds the secret, 32..4096 bytes.",
	},
	{
		path: rateLimitPath + ".memory.max-keys", kind: kindInteger, def: int64(1_000_000), low: 1, high: 100_000_000,
		about: "The greatest number of live keys of the memory provider. At the bound, new subjects are refused as unavailable.",
	},
	{
		path: rateLimitPath + ".admission.max-in-flight", kind: kindInteger, def: int64(512), low: 1, high: 1 << 20,
		about: "The greatest number of evaluations at the same time. More are refused as unavailable at once.",
	},
})

// policyFields are the keys that every policy has, whatever its algorithm.
var policyFields = []*field{
	{
		path: policyPattern + ".revision", kind: kindInteger, required: "always", allowed: "1..2147483647",
		about: "Grows with each change of any parameter. A new revision starts with fresh state.",
	},
	{
		path: policyPattern + ".algorithm", kind: kindWord, words: algorithmWords(), required: "always",
		about: "How the policy decides, and which of the keys below it takes.",
	},
	{
		path: policyPattern + ".max-cost", kind: kindInteger, def: int64(1), allowed: "1..the policy's limit, capacity or burst",
		about: "The greatest cost of one request.",
	},
	{
		path: policyPattern + ".cleanup-grace", kind: kindDuration, def: time.Minute, allowed: "max-clock-regression..100 years, whole milliseconds",
		about: "How long state outlives the moment at which it stops to matter.",
	},
	{
		path: policyPattern + ".max-clock-regression", kind: kindDuration, def: 2 * time.Second, allowed: "0s..24h, whole milliseconds",
		about: "The largest step back of the store's clock that is smoothed over. A larger one makes the policy unavailable until the clock has caught up.",
	},
}

// serviceFields are the keys of app.service.
var serviceFields = []*field{
	{
		path: pathHTTPAddress, kind: kindText, low: 1, high: 512, def: "127.0.0.1:8080", allowed: "host:port",
		about: "Where the service listens. Another address than loopback needs tls-cert and tls-key, or allow-plaintext.",
	},
	{path: pathTLSCert, kind: kindFile, high: maxPathBytes, def: "", about: "PEM certificate of the service. Together with tls-key."},
	{path: pathTLSKey, kind: kindFile, high: maxPathBytes, def: "", about: "PEM private key of the service. Together with tls-cert."},
	{
		path: pathAllowPlaintext, kind: kindBoolean, def: false,
		about: "Says that something in front of the service provides TLS, so that it may listen without TLS on another address than loopback.",
	},
	{
		path: pathDefaultDeadline, kind: kindDuration, def: 200 * time.Millisecond, low: ms, high: int64(10 * time.Minute),
		about: "The deadline of a request that names none. Above redis.command-timeout, since every evaluation would be refused otherwise, and not above max-deadline.",
	},
	{
		path: pathMaxDeadline, kind: kindDuration, def: 10 * time.Second, low: ms, high: int64(10 * time.Minute),
		about: "The greatest deadline that a request may name.",
	},
	{
		path: servicePath + ".max-body-bytes", kind: kindInteger, def: int64(16384), low: 256, high: 1 << 20,
		about: "The greatest size of a request's body.",
	},
	{
		path: servicePath + ".shutdown-timeout", kind: kindDuration, def: 10 * time.Second, low: ms, high: int64(10 * time.Minute),
		about: "How long requests in flight are waited for at the end.",
	},
	{path: servicePath + ".log-format", kind: kindWord, words: logFormatWords, def: "text", about: "How the log is written."},
	{path: servicePath + ".log-level", kind: kindWord, words: logLevelWords, def: "info", about: "The least level that is logged."},
}
