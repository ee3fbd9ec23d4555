package contracttest

import (
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Factory makes a backend that shares no state with any other, and cleans up by t.Cleanup.
type Factory func(t testing.TB) *Backend

// Backend is one fresh store and what a test can do to it.
type Backend struct {
	// New makes a limiter over this backend with these policies. Where Shares is set, two limiters of
	// one backend use the same state, as two instances of a service do.
	New func(t testing.TB, policies ...*ratelimit.RateLimitPolicy) ratelimit.EdgeRateLimitPort
	// Source is what decisions must say.
	Source ratelimit.Source
	// Now reads the clock that decides.
	Now func() time.Time
	// Serial runs the subtests one after another: for backends whose clocks cannot be set apart.
	Serial bool

	// Missing says why a capability is not there. The others below must be set.
	Missing map[Capability]string

	// SetTime sets the clock, forward or back, to a whole millisecond and holds it there. State ages
	// with the latest moment that the clock has shown; stepping back does not age it again.
	SetTime func(time.Time)
	// Advance moves the clock forward, or waits until it has moved.
	Advance func(time.Duration)
	// Shares means that limiters of one backend share state.
	Shares bool
	// TTL is how long what is stored for a subject lives on. It is false where nothing is stored, or
	// something that does not expire.
	TTL func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (time.Duration, bool)
	// State gives what is stored for a subject as text: different for different contents, of whatever
	// type, and "" where there is nothing.
	State func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) string
	// PutForeign places something of another kind where the state of a subject would be.
	PutForeign func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, kind ForeignKind)
	// Fields lists the fields of a policy's stored state. It goes with Corrupt.
	Fields func(policy *ratelimit.RateLimitPolicy) []StateField
	// Corrupt overwrites one field of a stored state with a text, and nothing else.
	Corrupt func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, field, value string)
	// Drop removes one field of a stored state, and nothing else. It goes with Corrupt.
	Drop func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, field string)
}

// StateField is one field of a stored state.
type StateField struct {
	Name string
	// Text means that the field is no number but the identity of the policy.
	Text bool
	// Max is the greatest number that may stand there.
	Max int64
}

// ForeignKind is something that is no state.
type ForeignKind string

// The kinds of things that may stand where a state should be.
const (
	ForeignString      ForeignKind = "string"
	ForeignEmptyString ForeignKind = "empty string"
	ForeignList        ForeignKind = "list"
	ForeignSet         ForeignKind = "set"
	ForeignSortedSet   ForeignKind = "sorted set"
	ForeignStream      ForeignKind = "stream"
	// ForeignHash is a hash with none of a state's fields.
	ForeignHash ForeignKind = "hash"
)

// ForeignKinds lists all kinds.
func ForeignKinds() []ForeignKind {
	return []ForeignKind{
		ForeignString, ForeignEmptyString, ForeignList, ForeignSet, ForeignSortedSet, ForeignStream, ForeignHash,
	}
}

// Capability is something that a backend may be unable to do.
type Capability string

// The capabilities.
const (
	CapabilitySetTime    Capability = "set the clock"
	CapabilityAdvance    Capability = "advance the clock"
	CapabilityShare      Capability = "share state between instances"
	CapabilityTTL        Capability = "read a TTL"
	CapabilityState      Capability = "read the stored state"
	CapabilityPutForeign Capability = "place a foreign key"
	CapabilityCorrupt    Capability = "corrupt a field"
)

// Capabilities lists all capabilities.
func Capabilities() []Capability {
	return []Capability{
		CapabilitySetTime, CapabilityAdvance, CapabilityShare, CapabilityTTL, CapabilityState,
		CapabilityPutForeign, CapabilityCorrupt,
	}
}

func (b *Backend) can(c Capability) bool {
	switch c {
	case CapabilitySetTime:
		return b.SetTime != nil
	case CapabilityAdvance:
		return b.Advance != nil
	case CapabilityShare:
		return b.Shares
	case CapabilityTTL:
		return b.TTL != nil
	case CapabilityState:
		return b.State != nil
	case CapabilityPutForeign:
		return b.PutForeign != nil
	case CapabilityCorrupt:
		return b.Corrupt != nil && b.Drop != nil && b.Fields != nil
	}
	return false
}

// check holds a backend to its declaration.
func (b *Backend) check(t testing.TB) {
	t.Helper()
	if b.New == nil || b.Now == nil || b.Source == ratelimit.SourceInvalid {
		t.Fatal("a backend needs New, Now and Source")
	}
	for _, c := range Capabilities() {
		reason, declared := b.Missing[c]
		switch {
		case b.can(c) && declared:
			t.Errorf("the backend can %s and declares it missing", c)
		case !b.can(c) && reason == "":
			t.Errorf("the backend cannot %s and gives no reason", c)
		}
	}
}
