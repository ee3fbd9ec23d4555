package breaker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// PolicyID names a policy, in the form of a rate limit's.
type PolicyID = ratelimit.PolicyID

// PolicyConfig is what a policy is made of. Every field is required; a duration is whole
// milliseconds.
type PolicyConfig struct {
	ID       PolicyID
	Revision int64 // 1..ratelimit.MaxPolicyRevision; a change of any other field needs a new one
	// Trip says when a closed breaker opens: ConsecutiveFailures or FailureRate.
	Trip TripRule
	// OpenTimeout is how long the breaker rejects everything after a trip.
	OpenTimeout time.Duration
	// MaxProbes is how many probes a half-open breaker has under way at most, 1..MostProbes.
	MaxProbes int64
	// ProbeLease is how long a probe may take: after it, its slot is free again and its result is late.
	// Longer than the resource takes at most.
	ProbeLease time.Duration
	// ProbeSuccesses is how many successful probes close the breaker, 1..MostProbeSuccesses.
	ProbeSuccesses int64
	// CleanupGrace is how long state outlives the longest of open timeout, window and lease after the
	// last write. Not below MaxClockRegression.
	CleanupGrace time.Duration
	// MaxClockRegression is the largest backward step of the store's clock, relative to the last
	// write, that is clamped. Zero tolerates none.
	MaxClockRegression time.Duration
}

// TripRule says when a closed breaker opens: ConsecutiveFailures or FailureRate. No other type
// implements it.
//
//sumtype:decl
type TripRule interface {
	// apply puts the rule's numbers into a machine, and refuses what a machine cannot hold.
	apply(m *Machine, refuse refusal)
}

// ConsecutiveFailures trips when Threshold calls in a row have failed; one success begins anew.
type ConsecutiveFailures struct {
	Threshold int64 // 1..MostThreshold
}

// FailureRate trips when the window holds MinimumCalls results or more, and of a thousand of them
// RatePermille or more are failures. The window rolls in Buckets steps: it is the current bucket and
// the whole ones before it, and so covers between (Buckets-1)/Buckets and all of Window.
type FailureRate struct {
	Window       time.Duration // divisible by Buckets into whole milliseconds
	Buckets      int64         // 1..MostBuckets
	MinimumCalls int64         // 1..MostMinimumCalls
	RatePermille int64         // 1..1000
}

// refusal takes one fault of a field.
type refusal = func(field, format string, args ...any)

func (r ConsecutiveFailures) apply(m *Machine, refuse refusal) {
	m.Threshold = r.Threshold
	between(refuse, "Threshold", r.Threshold, MostThreshold)
}

func (r FailureRate) apply(m *Machine, refuse refusal) {
	m.Buckets, m.MinimumCalls, m.RatePermille = r.Buckets, r.MinimumCalls, r.RatePermille
	between(refuse, "Buckets", r.Buckets, MostBuckets)
	between(refuse, "MinimumCalls", r.MinimumCalls, MostMinimumCalls)
	between(refuse, "RatePermille", r.RatePermille, MostRatePermille)
	if !millis(refuse, "Window", r.Window, 1, maxSpan) || r.Buckets < 1 || r.Buckets > MostBuckets {
		return
	}
	if r.Window.Milliseconds()%r.Buckets != 0 {
		refuse("Window", "is %v, which %d buckets do not divide into whole milliseconds", r.Window, r.Buckets)
		return
	}
	m.BucketMillis = r.Window.Milliseconds() / r.Buckets
}

func between(refuse refusal, field string, value, high int64) {
	if value < 1 || value > high {
		refuse(field, "is %d, want 1..%d", value, high)
	}
}

// millis refuses a duration that is not whole milliseconds in low..high, and reports whether it is.
func millis(refuse refusal, field string, d time.Duration, low, high int64) bool {
	switch ms := d.Milliseconds(); {
	case d%time.Millisecond != 0:
		refuse(field, "is %v, want whole milliseconds", d)
	case ms < low || ms > high:
		refuse(field, "is %v, want %v..%v", d, time.Duration(low)*time.Millisecond, time.Duration(high)*time.Millisecond)
	default:
		return true
	}
	return false
}

// PolicyError is one reason why a policy was refused.
type PolicyError struct {
	Field string // the field of PolicyConfig or of its TripRule, such as "MaxProbes"
	Err   error
}

// Error names the field and the reason.
func (e *PolicyError) Error() string { return fmt.Sprintf("%s: %v", e.Field, e.Err) }

// Unwrap gives the reason.
func (e *PolicyError) Unwrap() error { return e.Err }

// Policy is a validated policy. It does not change; a new revision is another policy, whose breakers
// begin closed.
type Policy struct {
	config      PolicyConfig
	machine     Machine
	fingerprint string
}

// NewPolicy makes a policy, or says everything that is wrong with it: the error joins *PolicyError
// values.
func NewPolicy(config PolicyConfig) (*Policy, error) {
	var faults []error
	refuse := func(field, format string, args ...any) {
		faults = append(faults, &PolicyError{Field: field, Err: fmt.Errorf(format, args...)})
	}
	if err := config.ID.Validate(); err != nil {
		refuse("ID", "%w", err)
	}
	if config.Revision < 1 || config.Revision > ratelimit.MaxPolicyRevision {
		refuse("Revision", "is %d, want 1..%d", config.Revision, ratelimit.MaxPolicyRevision)
	}
	m := Machine{
		OpenTimeoutMillis: config.OpenTimeout.Milliseconds(),
		MaxProbes:         config.MaxProbes,
		ProbeLeaseMillis:  config.ProbeLease.Milliseconds(),
		ProbeSuccesses:    config.ProbeSuccesses,
		Clock: algorithm.Clock{
			GraceMillis:         config.CleanupGrace.Milliseconds(),
			MaxRegressionMillis: config.MaxClockRegression.Milliseconds(),
		},
	}
	// Only the plain types are taken: a pointer could change after construction.
	switch rule := config.Trip.(type) {
	case ConsecutiveFailures:
		rule.apply(&m, refuse)
	case FailureRate:
		rule.apply(&m, refuse)
	case nil:
		refuse("Trip", "is missing, want ConsecutiveFailures or FailureRate")
	default:
		refuse("Trip", "is of type %T, want ConsecutiveFailures or FailureRate by value", config.Trip)
	}
	millis(refuse, "OpenTimeout", config.OpenTimeout, 1, maxSpan)
	between(refuse, "MaxProbes", config.MaxProbes, MostProbes)
	millis(refuse, "ProbeLease", config.ProbeLease, 1, maxSpan)
	between(refuse, "ProbeSuccesses", config.ProbeSuccesses, MostProbeSuccesses)
	grace := millis(refuse, "CleanupGrace", config.CleanupGrace, 0, maxSpan)
	if millis(refuse, "MaxClockRegression", config.MaxClockRegression, 0, algorithm.MaxRegressionMillis) &&
		grace && config.CleanupGrace < config.MaxClockRegression {
		refuse("CleanupGrace", "is %v, below the maximum clock regression of %v: state must outlive the steps back that it reveals",
			config.CleanupGrace, config.MaxClockRegression)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if err := m.Check(); err != nil {
		return nil, &PolicyError{Field: "Trip", Err: fmt.Errorf("cannot be exact: %w", err)}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "circuit-breaker|%+v", m))
	return &Policy{config: config, machine: m, fingerprint: hex.EncodeToString(sum[:8])}, nil
}

// ID is the policy's name.
func (p *Policy) ID() PolicyID { return p.config.ID }

// Revision is 1..ratelimit.MaxPolicyRevision.
func (p *Policy) Revision() int64 { return p.config.Revision }

// Trip says when a closed breaker opens.
func (p *Policy) Trip() TripRule { return p.config.Trip }

// OpenTimeout is how long everything is rejected after a trip.
func (p *Policy) OpenTimeout() time.Duration { return p.config.OpenTimeout }

// MaxProbes is how many probes are under way at most.
func (p *Policy) MaxProbes() int64 { return p.config.MaxProbes }

// ProbeLease is how long a probe may take.
func (p *Policy) ProbeLease() time.Duration { return p.config.ProbeLease }

// ProbeSuccesses is how many successful probes close the breaker.
func (p *Policy) ProbeSuccesses() int64 { return p.config.ProbeSuccesses }

// Lifetime is how long state outlives its last write; a breaker that nobody used for so long is closed.
func (p *Policy) Lifetime() time.Duration {
	return time.Duration(p.machine.LifetimeMillis()) * time.Millisecond
}

// MaxClockRegression is the largest backward step of the clock that is clamped.
func (p *Policy) MaxClockRegression() time.Duration { return p.config.MaxClockRegression }

// Machine gives the policy's pure form.
func (p *Policy) Machine() Machine { return p.machine }

// Fingerprint is 16 hexadecimal characters over every number. Stored state carries it: two policies of
// one ID and revision that differ anywhere never read each other's.
func (p *Policy) Fingerprint() string { return p.fingerprint }
