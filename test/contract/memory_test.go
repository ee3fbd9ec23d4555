package contract

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// reach is a program of this test's own: it hands a key of a memory store to the test.
var reach = &store.Program{Name: "test-reach", Version: 1, Keys: 1, Reply: []store.Field{{Name: "done"}}}

// memoryBench is the Redis provider over one memory store.
type memoryBench struct {
	store *memory.Store
	keys  *cacheredis.EdgeRateLimiter // of the last limiter made: gives keys

	mu     sync.Mutex
	clock  time.Time
	inside func(tx *memory.Tx, key string) error
}

func newMemoryBench(t testing.TB) *memoryBench {
	t.Helper()
	b := &memoryBench{clock: start}
	var err error
	if b.store, err = memory.NewStore(memory.StoreConfig{Clock: b.now, MaxKeys: 100_000}); err != nil {
		t.Fatal(err)
	}
	err = b.store.Register(reach, func(tx *memory.Tx, keys, _ []string) (store.Reply, error) {
		if err := b.inside(tx, keys[0]); err != nil {
			return store.Reply{}, err
		}
		return store.NewReply(store.Integer(1))
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *memoryBench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock
}

func (b *memoryBench) setTime(to time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = to
}

// reach does something to the key of a subject's state.
func (b *memoryBench) reach(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, f func(tx *memory.Tx, key string) error) {
	t.Helper()
	b.at(t, b.keys.StateKey(policy.ID(), subject), f)
}

// at does something to a key.
func (b *memoryBench) at(t testing.TB, key string, f func(tx *memory.Tx, key string) error) {
	t.Helper()
	b.inside = f
	if _, err := b.store.Eval(contextFor(t), reach, []string{key}, nil); err != nil {
		t.Fatal(err)
	}
}

func (b *memoryBench) limiter(t testing.TB, policies ...*ratelimit.RateLimitPolicy) ratelimit.EdgeRateLimitPort {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	b.keys, err = cacheredis.NewEdgeRateLimiter(b.store, cacheredis.LimiterConfig{
		Policies: set, Namespace: "memory", Secret: []byte(strings.Repeat("s", 32)), MaxInFlight: 1024,
		CommandTimeout: 5 * time.Second, UnavailableRetryAfter: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.keys
}

// describe gives whatever stands at a key as text.
func describe(tx *memory.Tx, key string) (string, error) {
	switch kind := tx.Type(key); kind {
	case "none":
		return "", nil
	case "string":
		text, _, err := tx.GetString(key)
		return fmt.Sprintf("string %q", text), err
	case "hash":
		all, err := tx.HashGetAll(key)
		return fmt.Sprintf("hash %q", fmt.Sprint(all)), err
	default:
		members, err := tx.ZRangeByRank(key, 0, -1)
		return fmt.Sprintf("%s %q", kind, fmt.Sprint(members)), err
	}
}

// TestRedisProviderOverMemoryStore runs the rate-limit suite over the provider for Redis, unchanged, on
// a memory store.
func TestRedisProviderOverMemoryStore(t *testing.T) {
	contracttest.RunEdgeRateLimit(t, func(t testing.TB) *contracttest.Backend {
		b := newMemoryBench(t)
		return &contracttest.Backend{
			New: b.limiter, Source: ratelimit.SourceLocalMemory, Shares: true, Fields: fields,
			Now: b.now, SetTime: b.setTime, Advance: func(d time.Duration) { b.setTime(b.now().Add(d)) },
			TTL: func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (ttl time.Duration, finite bool) {
				b.reach(t, policy, subject, func(tx *memory.Tx, key string) error {
					ms := tx.PTTL(key)
					ttl, finite = time.Duration(ms)*time.Millisecond, ms >= 0
					return nil
				})
				return ttl, finite
			},
			State: func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (text string) {
				b.reach(t, policy, subject, func(tx *memory.Tx, key string) (err error) {
					text, err = describe(tx, key)
					return err
				})
				return text
			},
			PutForeign: func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, kind contracttest.ForeignKind) {
				b.reach(t, policy, subject, func(tx *memory.Tx, key string) error { return putForeign(tx, key, kind) })
			},
			Corrupt: func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, field, value string) {
				b.reach(t, policy, subject, func(tx *memory.Tx, key string) error {
					if part, ok := findLogPart(policy, field); ok {
						return editLog(tx, key, part, func(member string) string { return part.replaced(member, value) })
					}
					part := findHashPart(t, policy, field)
					return editHash(tx, key, func(identity, state string) (string, string) {
						return part.replaced(identity, state, value)
					})
				})
			},
			Drop: func(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, field string) {
				b.reach(t, policy, subject, func(tx *memory.Tx, key string) error {
					if part, ok := findLogPart(policy, field); ok {
						return editLog(tx, key, part, part.dropped)
					}
					return editHash(tx, key, findHashPart(t, policy, field).dropped)
				})
			},
		}
	})
}

// editHash changes the one field of a hash, name and value.
func editHash(tx *memory.Tx, key string, edit func(identity, state string) (string, string)) error {
	found, err := tx.HashGetAll(key)
	if err != nil || len(found) != 1 {
		return fmt.Errorf("the state is %v, %w", found, err)
	}
	for identity, state := range found {
		name, value := edit(identity, state)
		if err := tx.HashSet(key, name, value); err != nil {
			return err
		}
		if name != identity {
			_, err := tx.HashDelete(key, identity)
			return err
		}
	}
	return nil
}

// editLog changes one member of a log, at its score.
func editLog(tx *memory.Tx, key string, part logPart, edit func(member string) string) error {
	found, err := tx.ZRangeByRank(key, part.rank, part.rank)
	if err != nil || len(found) != 1 {
		return fmt.Errorf("member %d of the log: %v, %w", part.rank, found, err)
	}
	if _, err := tx.ZAdd(key, found[0].Score, edit(found[0].Name)); err != nil {
		return err
	}
	_, err = tx.ZRem(key, found[0].Name)
	return err
}

// putForeign places something else. A memory store has strings, hashes and sorted sets; what Redis has
// beyond them is here a sorted set with other members.
func putForeign(tx *memory.Tx, key string, kind contracttest.ForeignKind) error {
	switch kind {
	case contracttest.ForeignString:
		return tx.SetStringKeepTTL(key, "foreign")
	case contracttest.ForeignEmptyString:
		return tx.SetStringKeepTTL(key, "")
	case contracttest.ForeignHash:
		return tx.HashSet(key, "foreign", "1")
	case contracttest.ForeignList, contracttest.ForeignSet, contracttest.ForeignSortedSet, contracttest.ForeignStream:
		_, err := tx.ZAdd(key, 1, "foreign "+string(kind))
		return err
	}
	return fmt.Errorf("no foreign %s", kind)
}
