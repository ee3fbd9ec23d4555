package envoyrls

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Bounds of a request.
const (
	// MaxDescriptors is the greatest value of Config.MaxDescriptors.
	MaxDescriptors = 1024
	// MaxEntries is the greatest number of entries of one descriptor; no rule is deeper.
	MaxEntries = rules.MaxDepth
	// MaxDefaultDeadline is the greatest value of Config.DefaultDeadline.
	MaxDefaultDeadline = time.Minute
)

// Ports gives ports over one provider that decide by other policies: the same store and the same
// admission, whatever the set. A policy that two sets have keeps its state.
type Ports interface {
	WithPolicies(set *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error)
}

// FailureMode says what becomes of a descriptor that could not be decided.
type FailureMode uint8

// The failure modes. The zero value is invalid.
const (
	FailureInvalid FailureMode = iota
	// FailureError: the call fails, and the caller's own failure mode decides.
	FailureError
	// FailureDeny: the descriptor is OVER_LIMIT.
	FailureDeny
)

var failureWords = []string{"INVALID", "error", "deny"}

// String gives the mode's word.
func (f FailureMode) String() string {
	if int(f) >= len(failureWords) {
		return failureWords[0]
	}
	return failureWords[f]
}

// Enforcement says whether denials are enforced at all.
type Enforcement uint8

// The enforcements. The zero value is invalid.
const (
	EnforcementInvalid Enforcement = iota
	// Enforce: a denial makes the overall code OVER_LIMIT.
	Enforce
	// Shadow: the overall code is OK whatever was decided; the statuses tell what was. What could not be
	// decided still fails the call or is denied.
	Shadow
)

// Headers name the headers that Envoy is asked to add to the response, of the descriptor that is
// nearest to its limit. An empty name is no header.
type Headers struct {
	Limit     string // requests of the rule's unit
	Remaining string // what is left
	Reset     string // whole seconds until the full limit is there
	// RetryAfter is whole seconds until a denied request passes; with denials alone.
	RetryAfter string
}

// Config is what a Service is made of. Everything is required, but where it says so.
type Config struct {
	// Rules are those of the first generation.
	Rules    *rules.Rules
	Ports    Ports
	Digester *ratelimit.SubjectDigester
	Failure  FailureMode
	Enforce  Enforcement
	// DefaultDeadline is that of a call without one, 1 ms..MaxDefaultDeadline.
	DefaultDeadline time.Duration
	// MaxDescriptors bounds the descriptors of a request, 1..MaxDescriptors.
	MaxDescriptors int
	// Headers may be empty.
	Headers Headers
	// DynamicMetadata has the answer repeat domain and descriptors to the caller, with what the rules say
	// of metadata and quotas. Envoy can log them.
	DynamicMetadata bool
	// CleanupGrace and MaxClockRegression are those of the policies of limits that requests bring along;
	// see ratelimit.RateLimitPolicyConfig.
	CleanupGrace       time.Duration
	MaxClockRegression time.Duration
	// Clock tells the time from which a reset is counted; nil is time.Now. It decides nothing.
	Clock func() time.Time
	// Logger gets what goes wrong inside; nil is none.
	Logger *slog.Logger
}

func (c *Config) validate() error {
	var faults []error
	refuse := func(format string, args ...any) { faults = append(faults, fmt.Errorf("envoyrls: "+format, args...)) }
	if c.Rules == nil {
		refuse("no rules")
	}
	if c.Ports == nil {
		refuse("no ports")
	}
	if c.Digester == nil {
		refuse("no digester")
	}
	if c.Failure != FailureError && c.Failure != FailureDeny {
		refuse("failure mode is %v, want error or deny", c.Failure)
	}
	if c.Enforce != Enforce && c.Enforce != Shadow {
		refuse("enforcement is %d, want Enforce or Shadow", c.Enforce)
	}
	if c.DefaultDeadline < time.Millisecond || c.DefaultDeadline > MaxDefaultDeadline {
		refuse("default deadline is %v, want 1ms..%v", c.DefaultDeadline, MaxDefaultDeadline)
	}
	if c.MaxDescriptors < 1 || c.MaxDescriptors > MaxDescriptors {
		refuse("max descriptors is %d, want 1..%d", c.MaxDescriptors, MaxDescriptors)
	}
	for _, name := range []string{c.Headers.Limit, c.Headers.Remaining, c.Headers.Reset, c.Headers.RetryAfter} {
		if name != "" && !ValidHeader(name) {
			refuse("%q is no name of a header", name)
		}
	}
	return errors.Join(faults...)
}

// MaxHeaderBytes bounds the name of a header.
const MaxHeaderBytes = 128

// ValidHeader reports whether a name is one that a header can have: a token of RFC 9110.
func ValidHeader(name string) bool {
	if name == "" || len(name) > MaxHeaderBytes {
		return false
	}
	for i := range len(name) {
		c := name[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alphanumeric && !isTokenMark(c) {
			return false
		}
	}
	return true
}

func isTokenMark(c byte) bool {
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return false
}
