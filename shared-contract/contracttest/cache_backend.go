package contracttest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
)

// CacheFactory makes a backend that shares no entry with any other, and cleans up by t.Cleanup.
type CacheFactory func(t testing.TB) *CacheBackend

// CacheBackend is one fresh cache and what a test can do to it.
type CacheBackend struct {
	// New makes a cache of a name. Where Shares is set, two of one name hold the same entries, as two
	// instances of a service do.
	New func(t testing.TB, name string, limits cache.Limits) cache.CachePort
	// Serial runs the subtests one after another: for backends whose clocks cannot be set apart.
	Serial bool

	// Missing says why a capability is not there. The others below must be set.
	Missing map[CacheCapability]string

	// Reports means that a failure comes back as one: all but decorators that hide it.
	Reports bool
	// Shares means that caches of one name hold the same entries.
	Shares bool
	// Advance moves the clock forward, or waits until it has moved.
	Advance func(time.Duration)
	// Held means that the clock moves by Advance alone.
	Held bool
	// TTL is how long the entry at a key lives on. It is false where there is none, or one that does not
	// expire.
	TTL func(t testing.TB, name, key string) (time.Duration, bool)
	// State gives what stands at a key as text: different for different contents, of whatever type, and
	// "" where there is nothing.
	State func(t testing.TB, name, key string) string
	// PutForeign places something that is no entry at a key.
	PutForeign func(t testing.TB, name, key string, kind ForeignKind)
}

// CacheCapability is something that a backend of a cache may be unable to do.
type CacheCapability string

// The capabilities.
const (
	CacheCapabilityReport     CacheCapability = "report its failures"
	CacheCapabilityShare      CacheCapability = "share entries between instances"
	CacheCapabilityAdvance    CacheCapability = "advance the clock"
	CacheCapabilityHold       CacheCapability = "hold the clock"
	CacheCapabilityTTL        CacheCapability = "read a TTL"
	CacheCapabilityState      CacheCapability = "read what is stored"
	CacheCapabilityPutForeign CacheCapability = "place a foreign key"
)

// CacheCapabilities lists all capabilities.
func CacheCapabilities() []CacheCapability {
	return []CacheCapability{
		CacheCapabilityReport, CacheCapabilityShare, CacheCapabilityAdvance, CacheCapabilityHold,
		CacheCapabilityTTL, CacheCapabilityState, CacheCapabilityPutForeign,
	}
}

func (b *CacheBackend) can(c CacheCapability) bool {
	switch c {
	case CacheCapabilityReport:
		return b.Reports
	case CacheCapabilityShare:
		return b.Shares
	case CacheCapabilityAdvance:
		return b.Advance != nil
	case CacheCapabilityHold:
		return b.Held
	case CacheCapabilityTTL:
		return b.TTL != nil
	case CacheCapabilityState:
		return b.State != nil
	case CacheCapabilityPutForeign:
		return b.PutForeign != nil
	}
	return false
}

// check holds a backend to its declaration.
func (b *CacheBackend) check(t testing.TB) {
	t.Helper()
	if b.New == nil {
		t.Fatal("a backend needs New")
	}
	for _, c := range CacheCapabilities() {
		reason, declared := b.Missing[c]
		switch {
		case b.can(c) && declared:
			t.Errorf("the backend can %s and declares it missing", c)
		case !b.can(c) && reason == "":
			t.Errorf("the backend cannot %s and gives no reason", c)
		}
	}
}

// cacheTest is one behaviour, on a backend of its own.
type cacheTest struct {
	name  string
	needs []CacheCapability
	run   func(h *cacheHarness)
}

func cacheNeeds(c ...CacheCapability) []CacheCapability { return c }

func cacheTests() []cacheTest {
	return slices.Concat(cacheEntryTests(), cacheVersionTests(), cacheLifetimeTests(), cacheRaceTests(), cacheFaultTests())
}

// RunCache holds a provider to the contract of cache.CachePort.
func RunCache(t *testing.T, factory CacheFactory) {
	t.Helper()
	probe := factory(t)
	probe.check(t)
	for _, c := range CacheCapabilities() {
		if reason, missing := probe.Missing[c]; missing {
			t.Logf("the backend cannot %s: %s", c, reason)
		}
	}
	var left []string
	for _, test := range cacheTests() {
		if slices.ContainsFunc(test.needs, func(c CacheCapability) bool { return !probe.can(c) }) {
			left = append(left, test.name)
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			if !probe.Serial {
				t.Parallel()
			}
			test.run(newCacheHarness(t, factory))
		})
	}
	if len(left) > 0 {
		t.Logf("not tested: %s", strings.Join(left, ", "))
	}
}
