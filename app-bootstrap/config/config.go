package config

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Config is everything that edgelimit can be told.
type Config struct {
	RateLimit      RateLimit
	CircuitBreaker CircuitBreaker
	Cache          CacheRedis
	Service        Service
	EnvoyRLS       EnvoyRLS
}

// Provider says where decisions are made.
type Provider uint8

// The providers. The zero value is invalid: there is no default provider.
const (
	ProviderInvalid Provider = iota
	// ProviderRedis decides in a Redis that all instances share.
	ProviderRedis
	// ProviderMemory decides in the memory of this process.
	ProviderMemory
)

// String gives the provider's word.
func (p Provider) String() string { return wordOf(providerWords, uint8(p)) }

// Role says what the limiter's store is for.
type Role uint8

// The roles. The zero value is invalid.
const (
	RoleInvalid Role = iota
	// RoleCoordination is the only role: the store coordinates instances and is no cache.
	RoleCoordination
)

// String gives the role's word.
func (r Role) String() string { return wordOf(roleWords, uint8(r)) }

// LogFormat says how the standalone service writes its log.
type LogFormat uint8

// The log formats. The zero value is invalid.
const (
	LogFormatInvalid LogFormat = iota
	// LogFormatText is key=value text.
	LogFormatText
	// LogFormatJSON is one JSON object per line.
	LogFormatJSON
)

// String gives the format's word.
func (f LogFormat) String() string { return wordOf(logFormatWords, uint8(f)) }

// RateLimit is app.rate-limit. Where Enabled is false, every other field is zero.
type RateLimit struct {
	Enabled               bool
	Provider              Provider
	Role                  Role
	FailurePolicy         ratelimit.FailurePolicy
	DefaultPolicy         ratelimit.PolicyID
	Policies              *ratelimit.PolicySet `json:"-"`
	Redis                 Redis
	Key                   Key
	Memory                Memory
	Admission             Admission
	UnavailableRetryAfter time.Duration // the hint of Unavailable and Indeterminate, 1ms..1h
	Circuit               Circuit
	DenialCache           DenialCache
}

// Redis is a connection of its own to one Redis. Of app.rate-limit.redis, Password and TLS are read for
// the redis provider only.
type Redis struct {
	Address        string // host:port; empty where the provider is another and none is configured
	Username       string
	Password       Secret
	Database       int
	TLS            *tls.Config   `json:"-"` // nil is plaintext
	CommandTimeout time.Duration // bounds everything that one operation does, 1ms..10s
	PoolSize       int
	Coalesce       bool // of app.rate-limit.redis alone: evaluations in flight together travel together
}

// Key says how the physical keys of a connection are made.
type Key struct {
	Namespace string
	// Secret keys all digests. Zero is possible for the limiter with the memory provider only, and means
	// a random one of the process.
	Secret Secret
}

// Circuit is app.rate-limit.circuit, of the redis provider only.
type Circuit struct {
	Enabled     bool
	Failures    int           // in a row that open it, 1..1000
	OpenTimeout time.Duration // 1ms..1m
}

// DenialCache is app.rate-limit.denial-cache.
type DenialCache struct {
	Enabled    bool
	MaxEntries int // 1..1<<20
}

// Memory is app.rate-limit.memory.
type Memory struct {
	MaxKeys int // bound on live keys
}

// Admission is app.rate-limit.admission.
type Admission struct {
	MaxInFlight int // bound on evaluations at the same time
}

// Service is app.service: the standalone program's own settings.
type Service struct {
	HTTPAddress     string // host:port; port 0 takes any free one
	TLSCert         string // file; empty together with TLSKey
	TLSKey          string
	TLS             *tls.Config `json:"-"` // nil where TLSCert is empty
	AllowPlaintext  bool
	DefaultDeadline time.Duration // of a request that names none
	MaxDeadline     time.Duration
	MaxBodyBytes    int64
	ShutdownTimeout time.Duration
	LogFormat       LogFormat
	LogLevel        slog.Level
	ForwardAuth     ForwardAuth
}

// The words of the closed sets; index 0 stands for the invalid zero value.
var (
	providerWords  = []string{"INVALID", "redis", "memory"}
	roleWords      = []string{"INVALID", "coordination"}
	failureWords   = []string{"INVALID", "fail-closed"}
	logFormatWords = []string{"INVALID", "text", "json"}
	logLevelWords  = []string{"INVALID", "debug", "info", "warn", "error"}
	logLevels      = []slog.Level{0, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
)

func wordOf(words []string, i uint8) string {
	if int(i) >= len(words) {
		return words[0]
	}
	return words[i]
}

// indexOf gives the index of a word, 0 where it is none.
func indexOf(words []string, word string) uint8 {
	for i := 1; i < len(words); i++ {
		if words[i] == word {
			return uint8(i)
		}
	}
	return 0
}
