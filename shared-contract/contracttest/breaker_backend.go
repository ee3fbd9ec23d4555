package contracttest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// BreakerFactory makes a backend of circuit breakers that shares no state with any other, and cleans
// up by t.Cleanup.
type BreakerFactory func(t testing.TB) *BreakerBackend

// BreakerBackend is one fresh store of circuit breakers and what a test can do to it. Its fields are
// as those of Backend.
type BreakerBackend struct {
	New    func(t testing.TB, policies ...*breaker.Policy) breaker.CircuitBreakerPort
	Source ratelimit.Source
	Now    func() time.Time
	Serial bool

	// Missing says why a capability is not there. The others below must be set.
	Missing map[Capability]string

	SetTime func(time.Time)
	Advance func(time.Duration)
	Shares  bool
	TTL     func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest) (time.Duration, bool)
	State   func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest) string
	// PutForeign places something of another kind where the state of a resource would be.
	PutForeign func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, kind ForeignKind)
	// Corrupt overwrites one field of a stored state, as breaker.Machine.FieldNames names it, with a
	// text, and Drop removes it.
	Corrupt func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, field, value string)
	Drop    func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, field string)
}

func (b *BreakerBackend) can(c Capability) bool {
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
		return b.Corrupt != nil && b.Drop != nil
	}
	return false
}

// check holds a backend to its declaration.
func (b *BreakerBackend) check(t testing.TB) {
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

// breakerTest is one behaviour, on a backend of its own.
type breakerTest struct {
	name  string
	needs []Capability
	run   func(h *breakerHarness)
}

func breakerTests() []breakerTest {
	return slices.Concat(
		breakerRequestTests(), breakerTripTests(), breakerProbeTests(), breakerLateTests(), breakerClockTests(),
		breakerSharingTests(), breakerStateTests(), breakerRandomTests(),
	)
}

// RunCircuitBreaker holds a provider to the contract of breaker.CircuitBreakerPort.
func RunCircuitBreaker(t *testing.T, factory BreakerFactory) {
	t.Helper()
	probe := factory(t)
	probe.check(t)
	for _, c := range Capabilities() {
		if reason, missing := probe.Missing[c]; missing {
			t.Logf("the backend cannot %s: %s", c, reason)
		}
	}
	var left []string
	for _, test := range breakerTests() {
		if slices.ContainsFunc(test.needs, func(c Capability) bool { return !probe.can(c) }) {
			left = append(left, test.name)
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			if !probe.Serial {
				t.Parallel()
			}
			test.run(&breakerHarness{T: t, b: factory(t)})
		})
	}
	if len(left) > 0 {
		t.Logf("left out for what the backend cannot do: %s", strings.Join(left, ", "))
	}
}
