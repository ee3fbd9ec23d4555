package contract

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/test/lanes"
)

func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }

// patience bounds what only a machine under load can delay.
const patience = 20 * time.Second

var namespaces atomic.Int64

// bench is a namespace of its own on one Redis.
type bench struct {
	address   string
	namespace string
	client    *redis.Client
	keys      *cacheredis.EdgeRateLimiter // of the last limiter made: gives physical keys
	circuit   *cacheredis.CircuitConfig   // of the limiters made; nil is none
}

func newBench(t testing.TB, address string) *bench {
	t.Helper()
	b := &bench{
		address:   address,
		namespace: fmt.Sprintf("contract-%d-%d", os.Getpid(), namespaces.Add(1)),
		client:    redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true, MaxRetries: -1}),
	}
	t.Cleanup(func() {
		b.removeAll(t)
		_ = b.client.Close()
	})
	return b
}

// removeAll leaves nothing of the namespace behind on a shared server.
func (b *bench) removeAll(t testing.TB) {
	ctx := context.WithoutCancel(t.Context())
	keys := b.client.Scan(ctx, 0, "edgelimit:"+b.namespace+":*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := b.client.Del(ctx, keys.Val()).Err(); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
}

func (b *bench) limiter(t testing.TB, policies ...*ratelimit.RateLimitPolicy) ratelimit.EdgeRateLimitPort {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	// The timeout is long: what is tested here is what a decision means, on a machine that may be slow.
	const timeout = 5 * time.Second
	store, err := cacheredis.NewStore(cacheredis.StoreConfig{
		Address: b.address, CommandTimeout: timeout, PoolSize: 8, Namespace: b.namespace,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	store.Start()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := store.WaitReady(ctx); err != nil {
		t.Fatalf("not ready: %v", err)
	}
	limiter, err := cacheredis.NewEdgeRateLimiter(store, cacheredis.LimiterConfig{
		Policies: set, Namespace: b.namespace, Secret: []byte(strings.Repeat("s", 32)), MaxInFlight: 1024,
		CommandTimeout: timeout, UnavailableRetryAfter: time.Second, Circuit: b.circuit,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.keys = limiter
	return limiter
}

func (b *bench) key(policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) string {
	return b.keys.StateKey(policy.ID(), subject)
}

func (b *bench) ttl(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (time.Duration, bool) {
	t.Helper()
	return b.keyTTL(t, b.key(policy, subject))
}

func (b *bench) keyTTL(t testing.TB, key string) (time.Duration, bool) {
	t.Helper()
	ms, err := b.client.Do(t.Context(), "PTTL", key).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond, ms >= 0
}

// state describes whatever stands at a subject's key.
func (b *bench) state(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) string {
	t.Helper()
	return b.keyState(t, b.key(policy, subject))
}

func (b *bench) keyState(t testing.TB, key string) string {
	t.Helper()
	ctx := t.Context()
	kind, err := b.client.Type(ctx, key).Result()
	if err != nil {
		t.Fatal(err)
	}
	var content any
	switch kind {
	case "none":
		return ""
	case "hash":
		content, err = b.client.HGetAll(ctx, key).Result()
	case "string":
		content, err = b.client.Get(ctx, key).Result()
	case "list":
		content, err = b.client.LRange(ctx, key, 0, -1).Result()
	case "set":
		content, err = b.client.SMembers(ctx, key).Result()
	case "zset":
		content, err = b.client.ZRangeWithScores(ctx, key, 0, -1).Result()
	case "stream":
		content, err = b.client.XRange(ctx, key, "-", "+").Result()
	default:
		t.Fatalf("a key of type %s", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %q", kind, fmt.Sprint(content))
}

func (b *bench) putForeign(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, kind contracttest.ForeignKind) {
	t.Helper()
	b.putForeignAt(t, b.key(policy, subject), kind)
}

func (b *bench) putForeignAt(t testing.TB, key string, kind contracttest.ForeignKind) {
	t.Helper()
	ctx := t.Context()
	var err error
	switch kind {
	case contracttest.ForeignString:
		err = b.client.Set(ctx, key, "foreign", 0).Err()
	case contracttest.ForeignEmptyString:
		err = b.client.Set(ctx, key, "", 0).Err()
	case contracttest.ForeignList:
		err = b.client.RPush(ctx, key, "foreign").Err()
	case contracttest.ForeignSet:
		err = b.client.SAdd(ctx, key, "foreign").Err()
	case contracttest.ForeignSortedSet:
		err = b.client.ZAdd(ctx, key, redis.Z{Score: 1, Member: "foreign"}).Err()
	case contracttest.ForeignStream:
		err = b.client.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"foreign", "1"}}).Err()
	case contracttest.ForeignHash:
		err = b.client.HSet(ctx, key, "foreign", "1").Err()
	default:
		t.Fatalf("no foreign %s", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) corrupt(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, field, value string) {
	t.Helper()
	if part, ok := findLogPart(policy, field); ok {
		b.editLog(t, b.key(policy, subject), part, func(member string) string { return part.replaced(member, value) })
		return
	}
	part := findHashPart(t, policy, field)
	b.editHash(t, b.key(policy, subject), func(identity, state string) (string, string) {
		return part.replaced(identity, state, value)
	})
}

func (b *bench) drop(t testing.TB, policy *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, field string) {
	t.Helper()
	if part, ok := findLogPart(policy, field); ok {
		b.editLog(t, b.key(policy, subject), part, part.dropped)
		return
	}
	part := findHashPart(t, policy, field)
	b.editHash(t, b.key(policy, subject), part.dropped)
}

// editHash changes the one field of a hash, name and value.
func (b *bench) editHash(t testing.TB, key string, edit func(identity, state string) (string, string)) {
	t.Helper()
	found, err := b.client.HGetAll(t.Context(), key).Result()
	if err != nil || len(found) != 1 {
		t.Fatalf("the state is %v, %v", found, err)
	}
	for identity, state := range found {
		name, value := edit(identity, state)
		_, err := b.client.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
			pipe.HSet(t.Context(), key, name, value)
			if name != identity {
				pipe.HDel(t.Context(), key, identity)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// editLog changes one member of a log, at its score.
func (b *bench) editLog(t testing.TB, key string, part logPart, edit func(member string) string) {
	t.Helper()
	found, err := b.client.ZRangeWithScores(t.Context(), key, part.rank, part.rank).Result()
	if err != nil || len(found) != 1 {
		t.Fatalf("member %d of the log: %v, %v", part.rank, found, err)
	}
	member := fmt.Sprint(found[0].Member)
	_, err = b.client.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.ZAdd(t.Context(), key, redis.Z{Score: found[0].Score, Member: edit(member)})
		pipe.ZRem(t.Context(), key, member)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// backend is everything but the clock.
func (b *bench) backend() *contracttest.Backend {
	return &contracttest.Backend{
		New:        b.limiter,
		Source:     ratelimit.SourceGlobalRedis,
		Shares:     true,
		TTL:        b.ttl,
		State:      b.state,
		PutForeign: b.putForeign,
		Fields:     fields,
		Corrupt:    b.corrupt,
		Drop:       b.drop,
	}
}
