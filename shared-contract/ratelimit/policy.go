package ratelimit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// MaxPolicyIDBytes bounds the length of a policy ID.
const MaxPolicyIDBytes = 64

// MaxPolicyRevision is the greatest revision of a policy.
const MaxPolicyRevision = math.MaxInt32

// PolicyID names a policy: 1..64 characters of A-Z a-z 0-9 . _ - of which the first is a letter or a
// digit.
type PolicyID string

// Validate reports whether the ID is within its bounds.
func (id PolicyID) Validate() error {
	if id == "" || len(id) > MaxPolicyIDBytes {
		return fmt.Errorf("policy ID has %d characters, want 1..%d", len(id), MaxPolicyIDBytes)
	}
	for i := range len(id) {
		c := id[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alphanumeric && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("policy ID has the character %q at position %d, want A-Z a-z 0-9 . _ - beginning with a letter or a digit", c, i)
		}
	}
	return nil
}

// RateLimitPolicyConfig is what a policy is made of. Every field is required, but where it says so.
type RateLimitPolicyConfig struct {
	ID       PolicyID
	Revision int64 // 1..MaxPolicyRevision; a change of any parameter needs a new one
	// Algorithm must be the one that Parameters belong to.
	Algorithm  Algorithm
	Parameters Parameters
	MaxCost    int64 // 1..limit (capacity, burst)
	// CleanupGrace is how long state outlives the moment at which it stops to matter. Not below
	// MaxClockRegression.
	CleanupGrace time.Duration
	// MaxClockRegression is the largest backward step of the store's clock, relative to the last
	// write, that is clamped. Zero tolerates none.
	MaxClockRegression time.Duration
	FailurePolicy      FailurePolicy // FailClosed
	// DedupWindow would be the time for which evaluation IDs are remembered. This revision does not
	// deduplicate and refuses any but zero.
	DedupWindow time.Duration
}

// RateLimitPolicy is a validated policy. It does not change; a new revision is another policy.
type RateLimitPolicy struct {
	id                 PolicyID
	revision           int64
	parameters         Parameters
	maxCost            int64
	cleanupGrace       time.Duration
	maxClockRegression time.Duration
	certainty          Certainty
	fingerprint        string
}

// PolicyError is one reason why a policy was refused. Where arithmetic could leave its exact range,
// Err is an *algorithm.RangeError.
type PolicyError struct {
	Field string // the field of RateLimitPolicyConfig or of its Parameters, such as "MaxCost"
	Err   error
}

// Error names the field and the reason.
func (e *PolicyError) Error() string { return fmt.Sprintf("%s: %v", e.Field, e.Err) }

// Unwrap gives the reason.
func (e *PolicyError) Unwrap() error { return e.Err }

// NewRateLimitPolicy makes a policy, or says everything that is wrong with it: the error joins
// *PolicyError values.
func NewRateLimitPolicy(config RateLimitPolicyConfig) (*RateLimitPolicy, error) {
	var faults []error
	refuse := func(field, format string, args ...any) {
		faults = append(faults, &PolicyError{Field: field, Err: fmt.Errorf(format, args...)})
	}
	if err := config.ID.Validate(); err != nil {
		refuse("ID", "%w", err)
	}
	if config.Revision < 1 || config.Revision > MaxPolicyRevision {
		refuse("Revision", "is %d, want 1..%d", config.Revision, MaxPolicyRevision)
	}
	if config.FailurePolicy != FailClosed {
		refuse("FailurePolicy", "is %v, only FAIL_CLOSED is supported", config.FailurePolicy)
	}
	if config.DedupWindow != 0 {
		refuse("DedupWindow", "is %v, evaluations are not deduplicated in this revision", config.DedupWindow)
	}
	clock := algorithm.Clock{
		GraceMillis:         config.CleanupGrace.Milliseconds(),
		MaxRegressionMillis: config.MaxClockRegression.Milliseconds(),
	}
	before := len(faults)
	for _, d := range []struct {
		field string
		value time.Duration
		most  int64
	}{
		{"CleanupGrace", config.CleanupGrace, algorithm.MaxHorizonMillis},
		{"MaxClockRegression", config.MaxClockRegression, algorithm.MaxRegressionMillis},
	} {
		if err := checkMillis(d.value, 0, d.most); err != nil {
			refuse(d.field, "%w", err)
		}
	}
	if len(faults) == before && config.CleanupGrace < config.MaxClockRegression {
		refuse("CleanupGrace", "is %v, below the maximum clock regression of %v: state must outlive the steps back that it reveals",
			config.CleanupGrace, config.MaxClockRegression)
	}
	checkParameters(config, refuse)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	p := &RateLimitPolicy{
		id:                 config.ID,
		revision:           config.Revision,
		parameters:         config.Parameters,
		maxCost:            config.MaxCost,
		cleanupGrace:       config.CleanupGrace,
		maxClockRegression: config.MaxClockRegression,
		certainty:          CertaintyCertain,
	}
	if config.Algorithm == AlgorithmSlidingWindowCounter {
		p.certainty = CertaintyApproximateAlgorithm
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%v|%v|max-cost=%d|grace=%d|regression=%d",
		config.Algorithm, config.Parameters.canonical(), p.maxCost, clock.GraceMillis, clock.MaxRegressionMillis))
	p.fingerprint = hex.EncodeToString(sum[:8])
	return p, nil
}

// checkParameters judges parameters, the algorithm that they must belong to, and the cost that they
// bound. Only the plain types are taken: a pointer could change after construction, and a type that
// embeds one of them is none that an adapter knows.
func checkParameters(config RateLimitPolicyConfig, refuse refusal) {
	most := int64(math.MaxInt64) // no bound is known while the parameters are wrong
	switch config.Parameters.(type) {
	case FixedWindowParameters, SlidingWindowCounterParameters, TokenBucketParameters, GCRAParameters, SlidingWindowLogParameters:
		if belongs := config.Parameters.algorithm(); belongs != config.Algorithm {
			refuse("Algorithm", "is %v, but the parameters are those of %v", config.Algorithm, belongs)
		}
		exact := true
		config.Parameters.check(func(field, format string, args ...any) {
			exact = false
			refuse(field, format, args...)
		})
		if exact {
			most = config.Parameters.limit()
		}
	case nil:
		refuse("Parameters", "are missing")
	default:
		refuse("Parameters", "are of type %T, want one of this package's types by value", config.Parameters)
	}
	switch {
	case config.MaxCost < 1 && most == math.MaxInt64:
		refuse("MaxCost", "is %d, want 1 or more", config.MaxCost)
	case config.MaxCost < 1 || config.MaxCost > most:
		refuse("MaxCost", "is %d, want 1..%d: a higher cost could never pass", config.MaxCost, most)
	}
}

// checkMillis holds a duration to whole milliseconds in low..high.
func checkMillis(d time.Duration, low, high int64) error {
	if d%time.Millisecond != 0 {
		return fmt.Errorf("is %v, want whole milliseconds", d)
	}
	if ms := d.Milliseconds(); ms < low || ms > high {
		return fmt.Errorf("is %v, want %v..%v", d, time.Duration(low)*time.Millisecond, time.Duration(high)*time.Millisecond)
	}
	return nil
}

// ID is the policy's name.
func (p *RateLimitPolicy) ID() PolicyID { return p.id }

// Revision is 1..MaxPolicyRevision.
func (p *RateLimitPolicy) Revision() int64 { return p.revision }

// Algorithm says how the policy decides.
func (p *RateLimitPolicy) Algorithm() Algorithm { return p.parameters.algorithm() }

// Parameters are those of the policy's algorithm.
func (p *RateLimitPolicy) Parameters() Parameters { return p.parameters }

// Limit is the greatest number of units that can be admitted at once.
func (p *RateLimitPolicy) Limit() int64 { return p.parameters.limit() }

// MaxCost is the greatest cost of one request.
func (p *RateLimitPolicy) MaxCost() int64 { return p.maxCost }

// CleanupGrace is how long state outlives the moment at which it stops to matter.
func (p *RateLimitPolicy) CleanupGrace() time.Duration { return p.cleanupGrace }

// MaxClockRegression is the largest backward step of the clock that is clamped.
func (p *RateLimitPolicy) MaxClockRegression() time.Duration { return p.maxClockRegression }

// FailurePolicy is FailClosed.
func (p *RateLimitPolicy) FailurePolicy() FailurePolicy { return FailClosed }

// Certainty is CertaintyApproximateAlgorithm for the sliding window counter and CertaintyCertain for
// the others.
func (p *RateLimitPolicy) Certainty() Certainty { return p.certainty }

// Fingerprint is 16 hexadecimal characters over the algorithm and every parameter. Stored state
// carries it: two policies of one ID and revision that differ anywhere never read each other's.
func (p *RateLimitPolicy) Fingerprint() string { return p.fingerprint }

// Clock gives grace and tolerated regression as the algorithms take them.
func (p *RateLimitPolicy) Clock() algorithm.Clock {
	return algorithm.Clock{
		GraceMillis:         p.cleanupGrace.Milliseconds(),
		MaxRegressionMillis: p.maxClockRegression.Milliseconds(),
	}
}
