package contract

import (
	"context"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// contextFor has a deadline, as every call to a store needs one.
func contextFor(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// newStore makes a store on the bench's Redis and waits until it is ready. The timeout is long: what is
// tested is what a call means, on a machine that may be slow.
func (b *bench) newStore(t testing.TB, prefix string, change ...func(c *cacheredis.StoreConfig)) *cacheredis.Store {
	t.Helper()
	config := cacheredis.StoreConfig{
		Address: b.address, CommandTimeout: 5 * time.Second, PoolSize: 8, Namespace: b.namespace, Prefix: prefix,
	}
	for _, f := range change {
		f(&config)
	}
	s, err := cacheredis.NewStore(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatalf("not ready: %v", err)
	}
	return s
}

// storeBackend is everything but the clock. Its keys begin as all of the namespace do, so that they are
// removed with them.
func (b *bench) storeBackend(t testing.TB) *contracttest.StoreBackend {
	t.Helper()
	prefix := "edgelimit:" + b.namespace + ":a:"
	ctx := t.Context()
	return &contracttest.StoreBackend{
		Store: b.newStore(t, prefix), Source: store.SourceGlobalRedis, Clock: store.ClockServer, ExactExpiry: true, RaisesErrors: true,
		Neighbour: func(t testing.TB) store.Store { return b.newStore(t, "edgelimit:"+b.namespace+":b:") },
		TTL: func(t testing.TB, key string) int64 {
			t.Helper()
			ttl, err := b.client.Do(ctx, "PTTL", prefix+key).Int64()
			if err != nil {
				t.Fatal(err)
			}
			return ttl
		},
		PutHash: func(t testing.TB, key string) {
			t.Helper()
			if err := b.client.HSet(ctx, prefix+key, "foreign", "1").Err(); err != nil {
				t.Fatal(err)
			}
		},
		PutText: func(t testing.TB, key, value string) {
			t.Helper()
			if err := b.client.Set(ctx, prefix+key, value, 0).Err(); err != nil {
				t.Fatal(err)
			}
		},
	}
}
