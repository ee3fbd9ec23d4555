package contracttest

import (
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// StoreFactory makes a store that shares no key with any other, and cleans up by t.Cleanup.
type StoreFactory func(t testing.TB) *StoreBackend

// StoreBackend is one fresh store and what a test can do to it.
type StoreBackend struct {
	// Store is what is tested. It is ready.
	Store store.Store
	// Source and Clock are what the store must say of itself.
	Source store.Source
	Clock  store.ClockSource
	// CallerMillis is the caller's clock, where Clock is store.ClockCaller.
	CallerMillis func() int64
	// Serial runs the subtests one after another: for backends whose clocks cannot be set apart.
	Serial bool

	// Missing says why a capability is not there. The others below must be set.
	Missing map[StoreCapability]string

	// Neighbour makes a store over the same state with another prefix, of one or more bytes.
	Neighbour func(t testing.TB) store.Store
	// Now and SetTime read and set the clock that lifetimes follow; it stands where it was set.
	Now     func() time.Time
	SetTime func(time.Time)
	// ExactExpiry means that a key exists at the very millisecond of its expiry and is gone one later.
	ExactExpiry bool
	// RaisesErrors means that an error reply which a program raises keeps its first word.
	RaisesErrors bool
	// TTL is the remaining lifetime of a key of Store in ms, -1 for a key without one, -2 for no key.
	TTL func(t testing.TB, key string) int64
	// PutHash places a hash without a lifetime at a key of Store.
	PutHash func(t testing.TB, key string)
	// PutText places a string without a lifetime, which no method of a Store does.
	PutText func(t testing.TB, key, value string)
}

// StoreCapability is something that a backend of a store may be unable to do.
type StoreCapability string

// The capabilities of store backends.
const (
	StoreNeighbour   StoreCapability = "have a neighbour with another prefix"
	StoreSetTime     StoreCapability = "set the clock of lifetimes"
	StoreExactExpiry StoreCapability = "let keys expire to the millisecond"
	StoreRaise       StoreCapability = "tell what error a program raised"
	StoreTTL         StoreCapability = "read a lifetime"
	StorePut         StoreCapability = "place what a store does not"
)

// StoreCapabilities lists all of them.
func StoreCapabilities() []StoreCapability {
	return []StoreCapability{StoreNeighbour, StoreSetTime, StoreExactExpiry, StoreRaise, StoreTTL, StorePut}
}

func (b *StoreBackend) can(c StoreCapability) bool {
	switch c {
	case StoreNeighbour:
		return b.Neighbour != nil
	case StoreSetTime:
		return b.SetTime != nil && b.Now != nil
	case StoreExactExpiry:
		return b.ExactExpiry
	case StoreRaise:
		return b.RaisesErrors
	case StoreTTL:
		return b.TTL != nil
	case StorePut:
		return b.PutHash != nil && b.PutText != nil
	}
	return false
}

// check holds a backend to its declaration.
func (b *StoreBackend) check(t testing.TB) {
	t.Helper()
	if b.Store == nil || b.Source == store.SourceInvalid || b.Clock == store.ClockInvalid {
		t.Fatal("a backend needs Store, Source and Clock")
	}
	if (b.CallerMillis != nil) != (b.Clock == store.ClockCaller) {
		t.Error("the clock of a caller goes with CallerMillis")
	}
	for _, c := range StoreCapabilities() {
		reason, declared := b.Missing[c]
		switch {
		case b.can(c) && declared:
			t.Errorf("the backend can %s and declares it missing", c)
		case !b.can(c) && reason == "":
			t.Errorf("the backend cannot %s and gives no reason", c)
		}
	}
}
