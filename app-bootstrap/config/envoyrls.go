package config

import (
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// EnvoyRLS is app.envoy-rls: the door for Envoy. Where Enabled is false, every other field is zero.
type EnvoyRLS struct {
	Enabled      bool
	RulesDir     string // of the YAML files of rules
	MergeDomains bool   // several files may have rules of one domain
	Address      string // host:port; port 0 takes any free one
	// TLSCert, TLSKey and TLSClientCA are files that are read again when they change; empty is none. They
	// could be read and belong together when the configuration was.
	TLSCert, TLSKey, TLSClientCA string
	AllowPlaintext               bool
	Failure                      EnvoyFailure
	Shadow                       bool          // no denial counts
	DefaultDeadline              time.Duration // of a call that has none
	MaxDescriptors               int           // of a request
	MaxMessageBytes              int           // of a request
	MaxConcurrentStreams         uint32        // of a connection
	Headers                      EnvoyHeaders
	DynamicMetadata              bool
	CleanupGrace                 time.Duration // of the policies that the rules become
	MaxClockRegression           time.Duration // likewise
	Keepalive                    EnvoyKeepalive
	Reflection                   bool
	Rescan                       time.Duration // between looks at files whose changes nobody reported
	ShutdownTimeout              time.Duration
}

// EnvoyFailure says what becomes of a descriptor that could not be decided.
type EnvoyFailure uint8

// The failure modes. The zero value is invalid.
const (
	EnvoyFailureInvalid EnvoyFailure = iota
	// EnvoyFailureError fails the call, so that Envoy's failure_mode_deny decides.
	EnvoyFailureError
	// EnvoyFailureDeny answers OVER_LIMIT.
	EnvoyFailureDeny
)

// String gives the mode's word.
func (f EnvoyFailure) String() string { return wordOf(envoyFailureWords, uint8(f)) }

// EnvoyHeaders are the names of the headers that Envoy is asked to add to responses. All are empty where
// none are asked for; one that is empty is not added.
type EnvoyHeaders struct{ Limit, Remaining, Reset, RetryAfter string }

// EnvoyKeepalive bounds connections. A MaxConnectionAge of 0 is none.
type EnvoyKeepalive struct {
	Time, Timeout, MinTime                  time.Duration
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
}

// The section and its keys.
const (
	envoyPath             = "app.envoy-rls"
	pathEnvoyEnabled      = envoyPath + ".enabled"
	pathEnvoyRules        = envoyPath + ".rules-dir"
	pathEnvoyMerge        = envoyPath + ".merge-domains"
	pathEnvoyAddress      = envoyPath + ".address"
	pathEnvoyCert         = envoyPath + ".tls-cert"
	pathEnvoyKey          = envoyPath + ".tls-key"
	pathEnvoyClientCA     = envoyPath + ".tls-client-ca"
	pathEnvoyPlaintext    = envoyPath + ".allow-plaintext"
	pathEnvoyFailure      = envoyPath + ".failure-mode"
	pathEnvoyMode         = envoyPath + ".mode"
	pathEnvoyDeadline     = envoyPath + ".default-deadline"
	pathEnvoyDescriptors  = envoyPath + ".max-descriptors"
	pathEnvoyMessage      = envoyPath + ".max-message-bytes"
	pathEnvoyStreams      = envoyPath + ".max-concurrent-streams"
	envoyHeadersPath      = envoyPath + ".response-headers"
	pathEnvoyHeadersOn    = envoyHeadersPath + ".enabled"
	pathEnvoyHeaderLimit  = envoyHeadersPath + ".limit"
	pathEnvoyHeaderLeft   = envoyHeadersPath + ".remaining"
	pathEnvoyHeaderReset  = envoyHeadersPath + ".reset"
	pathEnvoyHeaderRetry  = envoyHeadersPath + ".retry-after"
	pathEnvoyMetadata     = envoyPath + ".dynamic-metadata"
	pathEnvoyGrace        = envoyPath + ".cleanup-grace"
	pathEnvoyRegression   = envoyPath + ".max-clock-regression"
	envoyKeepalivePath    = envoyPath + ".keepalive"
	pathEnvoyPing         = envoyKeepalivePath + ".time"
	pathEnvoyPingTimeout  = envoyKeepalivePath + ".timeout"
	pathEnvoyPingMin      = envoyKeepalivePath + ".min-time"
	pathEnvoyAge          = envoyKeepalivePath + ".max-connection-age"
	pathEnvoyAgeGrace     = envoyKeepalivePath + ".max-connection-age-grace"
	pathEnvoyReflection   = envoyPath + ".reflection"
	pathEnvoyRescan       = envoyPath + ".rescan-interval"
	pathEnvoyShutdown     = envoyPath + ".shutdown-timeout"
	responseHeaderAllowed = "the name of a header; empty adds none"
)

// The words of the closed sets; index 0 stands for the invalid zero value.
var (
	envoyFailureWords = []string{"INVALID", "error", "deny"}
	envoyModeWords    = []string{"INVALID", "enforce", "shadow"}
)

// envoyFields are the keys of app.envoy-rls.
var envoyFields = []*field{
	{
		path: pathEnvoyEnabled, kind: kindBoolean, required: "where the section is there",
		about: "Turns the door for Envoy on. Off means no listener and no goroutine; the rest of the section is then checked for unknown keys and wrong types only. Needs the limiter.",
	},
	{
		path: pathEnvoyRules, kind: kindFile, low: 1, high: maxPathBytes, required: "always", allowed: "the path of a directory",
		about: "The directory of the rules, whose *.yaml and *.yml files are read in the order of their names, and again when they change. One that is bad then changes nothing, and the log says what is wrong.",
	},
	{path: pathEnvoyMerge, kind: kindBoolean, def: false, about: "Lets several files have rules of one domain."},
	{
		path: pathEnvoyAddress, kind: kindText, low: 1, high: 512, def: "127.0.0.1:8081", allowed: "host:port",
		about: "Where the door listens. Another address than loopback needs tls-cert and tls-key, or allow-plaintext.",
	},
	{path: pathEnvoyCert, kind: kindFile, high: maxPathBytes, def: "", about: "PEM certificate of the door. Together with tls-key. Read again when the file changes."},
	{path: pathEnvoyKey, kind: kindFile, high: maxPathBytes, def: "", about: "PEM private key of the door. Together with tls-cert. Read again when the file changes."},
	{path: pathEnvoyClientCA, kind: kindFile, high: maxPathBytes, def: "", about: "PEM certificates of those who sign the certificates of clients: only clients with such a one are served. Needs tls-cert. Read again when the file changes."},
	{
		path: pathEnvoyPlaintext, kind: kindBoolean, def: false,
		about: "Says that something in front of the door provides TLS, or that its network is trusted, so that it may listen without TLS on another address than loopback.",
	},
	{
		path: pathEnvoyFailure, kind: kindWord, words: envoyFailureWords, def: "error",
		about: "What becomes of a request that could not be decided. error fails the call, and Envoy's failure_mode_deny decides, which should be true; deny answers OVER_LIMIT.",
	},
	{
		path: pathEnvoyMode, kind: kindWord, words: envoyModeWords, def: "enforce",
		about: "shadow decides and spends, and answers OK for every request that could be decided, with the statuses of what was decided.",
	},
	{
		path: pathEnvoyDeadline, kind: kindDuration, def: 200 * time.Millisecond, low: ms, high: int64(time.Minute),
		about: "The deadline of a call that has none. Above redis.command-timeout, since every evaluation would be refused otherwise. Envoy's own timeout is the call's deadline, and must be above it as well.",
	},
	{path: pathEnvoyDescriptors, kind: kindInteger, def: int64(32), low: 1, high: 1024, about: "The greatest number of descriptors of a request. All of them are evaluated, at the same time."},
	{path: pathEnvoyMessage, kind: kindInteger, def: int64(256 << 10), low: 1 << 10, high: 4 << 20, about: "The greatest size of a request. One descriptor has at most 65536 bytes in any case."},
	{path: pathEnvoyStreams, kind: kindInteger, def: int64(1024), low: 1, high: 1 << 20, about: "The greatest number of calls at the same time on one connection."},
	{path: pathEnvoyHeadersOn, kind: kindBoolean, def: false, about: "Asks Envoy to add headers to the response, of the descriptor that is nearest to its limit."},
	{path: pathEnvoyHeaderLimit, kind: kindText, high: 128, def: "RateLimit-Limit", allowed: responseHeaderAllowed, about: "The rule's requests_per_unit."},
	{path: pathEnvoyHeaderLeft, kind: kindText, high: 128, def: "RateLimit-Remaining", allowed: responseHeaderAllowed, about: "What is left of the limit."},
	{path: pathEnvoyHeaderReset, kind: kindText, high: 128, def: "RateLimit-Reset", allowed: responseHeaderAllowed, about: "The whole seconds until the full limit is there."},
	{path: pathEnvoyHeaderRetry, kind: kindText, high: 128, def: "Retry-After", allowed: responseHeaderAllowed, about: "The whole seconds until a denied request passes. With denials alone."},
	{
		path: pathEnvoyMetadata, kind: kindBoolean, def: false,
		about: "Has answers carry dynamic metadata: domain and descriptors as they were sent, quotas that are over, and the metadata of rules. Envoy can log it, raw values and all.",
	},
	{path: pathEnvoyGrace, kind: kindDuration, def: 5 * time.Second, allowed: "max-clock-regression..100 years, whole milliseconds", about: "The cleanup-grace of every policy that a rule becomes. A change makes all of them begin afresh."},
	{path: pathEnvoyRegression, kind: kindDuration, def: 2 * time.Second, allowed: "0s..24h, whole milliseconds", about: "The max-clock-regression of every policy that a rule becomes. A change makes all of them begin afresh."},
	{path: pathEnvoyPing, kind: kindDuration, def: time.Minute, low: int64(time.Second), high: int64(24 * time.Hour), about: "How long a connection may be silent before the door asks whether it is alive."},
	{path: pathEnvoyPingTimeout, kind: kindDuration, def: 20 * time.Second, low: int64(time.Second), high: int64(time.Hour), about: "How long the answer to that may take before the connection is closed."},
	{path: pathEnvoyPingMin, kind: kindDuration, def: 10 * time.Second, low: int64(time.Second), high: int64(time.Hour), about: "The least time between a client's own such questions. A client that asks more often is disconnected."},
	{path: pathEnvoyAge, kind: kindDuration, def: time.Duration(0), low: 0, high: int64(30 * 24 * time.Hour), about: "How old a connection may become before its client is asked to open another, so that clients spread over new instances. 0s is for ever."},
	{path: pathEnvoyAgeGrace, kind: kindDuration, def: 10 * time.Second, low: int64(time.Second), high: int64(time.Hour), about: "How long calls on a connection that is too old may go on."},
	{path: pathEnvoyReflection, kind: kindBoolean, def: true, about: "Serves grpc.reflection, so that grpcurl needs no proto files."},
	{path: pathEnvoyRescan, kind: kindDuration, def: 30 * time.Second, low: int64(time.Second), high: int64(24 * time.Hour), about: "How often rules and certificates are looked at even though no change was reported: network file systems report none."},
	{path: pathEnvoyShutdown, kind: kindDuration, def: 10 * time.Second, low: ms, high: int64(10 * time.Minute), about: "How long calls in flight are waited for at the end."},
}

// envoyRLS judges app.envoy-rls and builds its settings; there says whether the section is there.
func (d *decoder) envoyRLS(there bool, limiter RateLimit) EnvoyRLS {
	switch {
	case !there:
		return EnvoyRLS{}
	case !d.values.given(pathEnvoyEnabled):
		if !d.has(pathEnvoyEnabled) && !d.has(envoyPath) {
			d.add(pathEnvoyEnabled, "is missing, want true or false")
		}
		return EnvoyRLS{}
	case !d.values.boolean(pathEnvoyEnabled):
		return EnvoyRLS{}
	}
	d.judge(envoyFields)
	v := d.values
	e := EnvoyRLS{
		Enabled:              true,
		RulesDir:             v.text(pathEnvoyRules),
		MergeDomains:         v.boolean(pathEnvoyMerge),
		Address:              v.text(pathEnvoyAddress),
		TLSCert:              v.text(pathEnvoyCert),
		TLSKey:               v.text(pathEnvoyKey),
		TLSClientCA:          v.text(pathEnvoyClientCA),
		AllowPlaintext:       v.boolean(pathEnvoyPlaintext),
		Failure:              EnvoyFailure(indexOf(envoyFailureWords, v.text(pathEnvoyFailure))),
		Shadow:               v.text(pathEnvoyMode) == "shadow",
		DefaultDeadline:      v.duration(pathEnvoyDeadline),
		MaxDescriptors:       v.number(pathEnvoyDescriptors),
		MaxMessageBytes:      v.number(pathEnvoyMessage),
		MaxConcurrentStreams: uint32(v.integer(pathEnvoyStreams)), //nolint:gosec // G115: the field's range is smaller.
		DynamicMetadata:      v.boolean(pathEnvoyMetadata),
		CleanupGrace:         v.duration(pathEnvoyGrace),
		MaxClockRegression:   v.duration(pathEnvoyRegression),
		Keepalive: EnvoyKeepalive{
			Time: v.duration(pathEnvoyPing), Timeout: v.duration(pathEnvoyPingTimeout), MinTime: v.duration(pathEnvoyPingMin),
			MaxConnectionAge: v.duration(pathEnvoyAge), MaxConnectionAgeGrace: v.duration(pathEnvoyAgeGrace),
		},
		Reflection:      v.boolean(pathEnvoyReflection),
		Rescan:          v.duration(pathEnvoyRescan),
		ShutdownTimeout: v.duration(pathEnvoyShutdown),
	}
	if !limiter.Enabled && !d.has(pathEnabled) {
		d.add(pathEnvoyEnabled, "is true, but %s is not: there is nothing to ask", pathEnabled)
	}
	d.envoyListener(e)
	e.Headers = d.envoyHeaders()
	d.envoyPolicies(e)
	if !d.has(pathEnvoyDeadline) && limiter.Enabled && limiter.Provider == ProviderRedis && e.DefaultDeadline <= limiter.Redis.CommandTimeout {
		d.add(pathEnvoyDeadline, "is %s, want more than %s, which is %s: every evaluation would be refused",
			durationText(e.DefaultDeadline), pathCommandTimeout, durationText(limiter.Redis.CommandTimeout))
	}
	return e
}

// envoyListener holds the address to TLS, and the files of TLS to each other.
func (d *decoder) envoyListener(e EnvoyRLS) {
	d.keyPair(pathEnvoyCert, pathEnvoyKey)
	if e.TLSClientCA != "" && !d.has(pathEnvoyClientCA) {
		if e.TLSCert == "" {
			d.add(pathEnvoyClientCA, "is given without tls-cert: clients show certificates over TLS alone")
		}
		d.pool(pathEnvoyClientCA)
	}
	if d.has(pathEnvoyAddress) {
		return
	}
	if problem := hostPort(e.Address, 0); problem != "" {
		d.add(pathEnvoyAddress, "is %s, want host:port: %s", quote(e.Address), problem)
		return
	}
	if e.TLSCert == "" && e.TLSKey == "" && !e.AllowPlaintext && !loopback(e.Address) {
		d.add(pathEnvoyAddress, "is %s, which is not loopback: want tls-cert and tls-key, or allow-plaintext: true where something in front provides TLS",
			quote(e.Address))
	}
}

// envoyHeaders holds the names of headers to their characters. Without enabled, none is asked for.
func (d *decoder) envoyHeaders() EnvoyHeaders {
	for _, path := range []string{pathEnvoyHeaderLimit, pathEnvoyHeaderLeft, pathEnvoyHeaderReset, pathEnvoyHeaderRetry} {
		if name := d.values.text(path); name != "" && !d.has(path) && !httpedge.IsHeaderName(name) {
			d.add(path, "is %s, want %s", quote(name), responseHeaderAllowed)
		}
	}
	if !d.values.boolean(pathEnvoyHeadersOn) {
		return EnvoyHeaders{}
	}
	return EnvoyHeaders{
		Limit: d.values.text(pathEnvoyHeaderLimit), Remaining: d.values.text(pathEnvoyHeaderLeft),
		Reset: d.values.text(pathEnvoyHeaderReset), RetryAfter: d.values.text(pathEnvoyHeaderRetry),
	}
}

// envoyPolicies holds what all policies of rules have in common to what a policy can have.
func (d *decoder) envoyPolicies(e EnvoyRLS) {
	_, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID: "p", Revision: 1, Algorithm: ratelimit.AlgorithmFixedWindow, MaxCost: 1, FailurePolicy: ratelimit.FailClosed,
		Parameters:   ratelimit.FixedWindowParameters{Limit: 1, Window: time.Second},
		CleanupGrace: e.CleanupGrace, MaxClockRegression: e.MaxClockRegression,
	})
	d.refusals(envoyPath, err, func(string) bool { return false })
}
