package contract

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// breakerKeys finds the physical keys of breakers by their policies.
type breakerKeys struct {
	mu       sync.Mutex
	byPolicy map[*breaker.Policy]*cacheredis.CircuitBreaker
}

func (k *breakerKeys) of(policy *breaker.Policy, resource breaker.ResourceDigest) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byPolicy[policy].StateKey(policy.ID(), resource)
}

// over makes the provider over a store.
func (k *breakerKeys) over(t testing.TB, s store.Store, namespace string, policies ...*breaker.Policy) breaker.CircuitBreakerPort {
	t.Helper()
	set, err := breaker.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	port, err := cacheredis.NewCircuitBreaker(s, cacheredis.BreakerConfig{
		Policies: set, Namespace: namespace, Secret: []byte(strings.Repeat("s", 32)), MaxInFlight: 1024,
		CommandTimeout: breakerTimeout, UnavailableRetryAfter: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byPolicy == nil {
		k.byPolicy = map[*breaker.Policy]*cacheredis.CircuitBreaker{}
	}
	for _, p := range policies {
		k.byPolicy[p] = port
	}
	return port
}

// breakerTimeout is long: what is tested here is what an outcome means, on a machine that may be slow.
const breakerTimeout = 5 * time.Second

// breakerBackend is everything but the clock.
func (b *bench) breakerBackend() *contracttest.BreakerBackend {
	var keys breakerKeys
	return &contracttest.BreakerBackend{
		New: func(t testing.TB, policies ...*breaker.Policy) breaker.CircuitBreakerPort {
			t.Helper()
			s, err := cacheredis.NewStore(cacheredis.StoreConfig{
				Address: b.address, CommandTimeout: breakerTimeout, PoolSize: 8, Namespace: b.namespace, Programs: store.BreakerPrograms(),
			})
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
			return keys.over(t, s, b.namespace, policies...)
		},
		Source: ratelimit.SourceGlobalRedis,
		Shares: true,
		TTL: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest) (time.Duration, bool) {
			return b.keyTTL(t, keys.of(policy, resource))
		},
		State: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest) string {
			return b.keyState(t, keys.of(policy, resource))
		},
		PutForeign: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, kind contracttest.ForeignKind) {
			b.putForeignAt(t, keys.of(policy, resource), kind)
		},
		Corrupt: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, field, value string) {
			t.Helper()
			if err := b.client.HSet(t.Context(), keys.of(policy, resource), field, value).Err(); err != nil {
				t.Fatal(err)
			}
		},
		Drop: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, field string) {
			t.Helper()
			if err := b.client.HDel(t.Context(), keys.of(policy, resource), field).Err(); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// breakerBackend is the provider for Redis, unchanged, on a memory store.
func (b *memoryBench) breakerBackend() *contracttest.BreakerBackend {
	var keys breakerKeys
	reached := func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, f func(tx *memory.Tx, key string) error) {
		t.Helper()
		b.inside = f
		if _, err := b.store.Eval(contextFor(t), reach, []string{keys.of(policy, resource)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return &contracttest.BreakerBackend{
		New: func(t testing.TB, policies ...*breaker.Policy) breaker.CircuitBreakerPort {
			return keys.over(t, b.store, "memory", policies...)
		},
		Source: ratelimit.SourceLocalMemory, Shares: true,
		Now: b.now, SetTime: b.setTime, Advance: func(d time.Duration) { b.setTime(b.now().Add(d)) },
		TTL: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest) (ttl time.Duration, finite bool) {
			reached(t, policy, resource, func(tx *memory.Tx, key string) error {
				ms := tx.PTTL(key)
				ttl, finite = time.Duration(ms)*time.Millisecond, ms >= 0
				return nil
			})
			return ttl, finite
		},
		State: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest) (text string) {
			reached(t, policy, resource, func(tx *memory.Tx, key string) (err error) {
				text, err = describe(tx, key)
				return err
			})
			return text
		},
		PutForeign: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, kind contracttest.ForeignKind) {
			reached(t, policy, resource, func(tx *memory.Tx, key string) error { return putForeign(tx, key, kind) })
		},
		Corrupt: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, field, value string) {
			reached(t, policy, resource, func(tx *memory.Tx, key string) error { return tx.HashSet(key, field, value) })
		},
		Drop: func(t testing.TB, policy *breaker.Policy, resource breaker.ResourceDigest, field string) {
			reached(t, policy, resource, func(tx *memory.Tx, key string) error {
				_, err := tx.HashDelete(key, field)
				return err
			})
		},
	}
}
