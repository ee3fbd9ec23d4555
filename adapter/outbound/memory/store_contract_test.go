package memory

import (
	"context"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// newStore makes a store with a clock that is set by hand.
func newStore(t testing.TB, clock *manualClock, change ...func(c *StoreConfig)) *Store {
	t.Helper()
	config := StoreConfig{Clock: clock.now, MaxKeys: 10_000}
	for _, f := range change {
		f(&config)
	}
	s, err := NewStore(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inside does something to a store's keys as a program would.
func inside(t testing.TB, s *Store, f func(tx *Tx)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&Tx{keys: &s.keys, now: s.clock().UnixMilli()})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func deadlined(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func storeBackend(t testing.TB, change ...func(c *StoreConfig)) *contracttest.StoreBackend {
	t.Helper()
	clock := newManualClock()
	s := newStore(t, clock, change...)
	put := func(f func(tx *Tx, key string) error) func(t testing.TB, key string) {
		return func(t testing.TB, key string) {
			t.Helper()
			inside(t, s, func(tx *Tx) { must(t, f(tx, s.prefix+key)) })
		}
	}
	return &contracttest.StoreBackend{
		Store: s, Source: store.SourceLocalMemory, Clock: s.Clock(), CallerMillis: s.callerClock, Now: clock.peek, SetTime: clock.set, ExactExpiry: true, RaisesErrors: true,
		TTL: func(t testing.TB, key string) (ttl int64) {
			t.Helper()
			inside(t, s, func(tx *Tx) { ttl = tx.PTTL(s.prefix + key) })
			return ttl
		},
		PutHash: put(func(tx *Tx, key string) error { return tx.HashSet(key, "foreign", "1") }),
		PutText: func(t testing.TB, key, value string) {
			t.Helper()
			inside(t, s, func(tx *Tx) { must(t, tx.SetStringKeepTTL(s.prefix+key, value)) })
		},
		Missing: map[contracttest.StoreCapability]string{
			contracttest.StoreNeighbour: "a store's state is its own; TestStorePrefix looks at the keys",
		},
	}
}

// TestStoreContract holds the store to its contract, plain, with a prefix and under a caller's clock.
func TestStoreContract(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend { return storeBackend(t) })
	})
	t.Run("prefix", func(t *testing.T) {
		t.Parallel()
		contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend {
			return storeBackend(t, func(c *StoreConfig) { c.Prefix = "app:\x00:" })
		})
	})
	t.Run("caller clock", func(t *testing.T) {
		t.Parallel()
		contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend {
			return storeBackend(t, func(c *StoreConfig) { c.CallerClock = func() int64 { return 1_000_000 } })
		})
	})
}
