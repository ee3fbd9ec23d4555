package contract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/cache/failopen"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/embedded"
	"github.com/edgelimit/edgelimit/test/lanes"
)

var cacheSecret = []byte(strings.Repeat("c", 32))

// cacheOver makes a cache over a store.
func cacheOver(t testing.TB, s store.Store, namespace, name string, limits cache.Limits) *cacheredis.Cache {
	t.Helper()
	c, err := cacheredis.NewCache(s, cacheredis.CacheConfig{Name: name, Namespace: namespace, Secret: cacheSecret, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cacheStore is a Store on the bench's Redis, which knows the programs of a cache and no others.
func (b *bench) cacheStore(t testing.TB) *cacheredis.Store {
	t.Helper()
	s, err := cacheredis.NewStore(cacheredis.StoreConfig{
		Address: b.address, CommandTimeout: 5 * time.Second, PoolSize: 8, Namespace: b.namespace, Programs: store.CachePrograms(),
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
	return s
}

// cacheBackend is everything but the clock. Each cache has a connection of its own.
func (b *bench) cacheBackend(t testing.TB) *contracttest.CacheBackend {
	keys := cacheOver(t, b.cacheStore(t), b.namespace, "suite", cache.Limits{DefaultTTL: time.Hour, MaxValueBytes: 1})
	return &contracttest.CacheBackend{
		New: func(t testing.TB, name string, limits cache.Limits) cache.CachePort {
			return cacheOver(t, b.cacheStore(t), b.namespace, name, limits)
		},
		Reports: true, Shares: true,
		TTL:   func(t testing.TB, _, key string) (time.Duration, bool) { return b.keyTTL(t, keys.EntryKey(key)) },
		State: func(t testing.TB, _, key string) string { return b.keyState(t, keys.EntryKey(key)) },
		PutForeign: func(t testing.TB, _, key string, kind contracttest.ForeignKind) {
			b.putForeignAt(t, keys.EntryKey(key), kind)
		},
	}
}

// TestCacheOverMemoryStore runs the suite over the provider on a Store in this process.
func TestCacheOverMemoryStore(t *testing.T) {
	t.Parallel()
	contracttest.RunCache(t, func(t testing.TB) *contracttest.CacheBackend { return newMemoryCacheBench(t).backend(t) })
}

// TestCacheOverEmbeddedRedis runs the suite over the provider on a Redis in this process.
func TestCacheOverEmbeddedRedis(t *testing.T) {
	t.Parallel()
	contracttest.RunCache(t, func(t testing.TB) *contracttest.CacheBackend {
		server := embedded.Start(t, start)
		now := start
		backend := newBench(t, server.Addr()).cacheBackend(t)
		backend.Held = true
		backend.Advance = func(d time.Duration) {
			now = now.Add(d)
			server.SetTime(now)
		}
		return backend
	})
}

// TestCacheOverRedisUnderASetClock runs the suite over the provider on a real Redis whose own clock is
// set, so that expiry is real and exact.
func TestCacheOverRedisUnderASetClock(t *testing.T) {
	server := lanes.StartFaketime(t)
	contracttest.RunCache(t, func(t testing.TB) *contracttest.CacheBackend {
		server.SetTime(start)
		backend := newBench(t, server.Addr).cacheBackend(t)
		backend.Serial, backend.Held, backend.Advance = true, true, server.Advance
		return backend
	})
}

// TestCacheOverRedis runs the suite over the provider on the real Redis of each lane: cache NX, and
// compare-and-replace by observation token, on a service.
func TestCacheOverRedis(t *testing.T) {
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			contracttest.RunCache(t, func(t testing.TB) *contracttest.CacheBackend {
				backend := newBench(t, server.Addr).cacheBackend(t)
				backend.Advance = time.Sleep // Real time must pass: the lifetimes are milliseconds.
				backend.Missing = map[contracttest.CacheCapability]string{
					contracttest.CacheCapabilityHold: "the clock of this server is the machine's; TestCacheOverRedisUnderASetClock holds one",
				}
				return backend
			})
		})
	}
}

// TestCacheDecorator runs the suite over the fail-open decorator: over a cache that answers it is the
// cache itself, and nothing is told to its observer.
func TestCacheDecorator(t *testing.T) {
	t.Parallel()
	var hidden atomic.Int64
	contracttest.RunCache(t, func(t testing.TB) *contracttest.CacheBackend {
		backend := newMemoryCacheBench(t).backend(t)
		inner := backend.New
		backend.New = func(t testing.TB, name string, limits cache.Limits) cache.CachePort {
			decorated, err := failopen.New(inner(t, name, limits), func(f failopen.Failure) {
				hidden.Add(1)
				t.Errorf("hidden: %+v", f)
			})
			if err != nil {
				t.Fatal(err)
			}
			return decorated
		}
		backend.Reports = false
		backend.Missing = map[contracttest.CacheCapability]string{
			contracttest.CacheCapabilityReport: "hiding failures is what it is for; its own tests show how",
		}
		return backend
	})
	if n := hidden.Load(); n != 0 {
		t.Errorf("%d failures were hidden", n)
	}
}

// TestCacheKeysHoldNoKey: what a caller names stands nowhere in Redis, and the value stands under a key
// of the capability cache.
func TestCacheKeysHoldNoKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, lanes.Default(t).Addr)
	c := cacheOver(t, b.cacheStore(t), b.namespace, "sessions", cache.Limits{DefaultTTL: time.Hour, MaxValueBytes: 100})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const key = "alice@example.org"
	written, err := c.PutIfAbsent(ctx, key, "the value", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	physical, err := b.client.Keys(ctx, "*"+b.namespace+"*").Result()
	if err != nil || len(physical) != 1 || physical[0] != c.EntryKey(key) {
		t.Fatalf("keys %q, %v, want %q alone", physical, err, c.EntryKey(key))
	}
	if !strings.HasPrefix(physical[0], "edgelimit:"+b.namespace+":cache:sessions:entry:") || strings.Contains(physical[0], "alice") {
		t.Errorf("the key is %q", physical[0])
	}
	if stored := b.client.Get(ctx, physical[0]).Val(); stored != "1:"+string(written.Token)+":the value" {
		t.Errorf("stored is %q", stored)
	}
	if kind := b.client.Type(ctx, physical[0]).Val(); kind != "string" {
		t.Errorf("an entry is a %s", kind)
	}
}

// memoryCacheBench is a Store in this process under a clock that stands, with programs that look at what
// it holds and place what is no entry.
type memoryCacheBench struct {
	store  *memory.Store
	millis atomic.Int64
}

var (
	lookProgram = &store.Program{Name: "test-look", Version: 1, Keys: 1, Reply: []store.Field{{Name: "content", Kind: store.FieldText}}}
	ttlProgram  = &store.Program{Name: "test-pttl", Version: 1, Keys: 1, Reply: []store.Field{{Name: "ttl", Kind: store.FieldInteger}}}
	// placeProgram places a string, hash or zset, as its argument says.
	placeProgram = &store.Program{
		Name: "test-place", Version: 1, Keys: 1, Args: []store.Field{{Name: "kind", Kind: store.FieldText}},
		Reply: []store.Field{{Name: "done", Kind: store.FieldText}},
	}
)

func newMemoryCacheBench(t testing.TB) *memoryCacheBench {
	t.Helper()
	b := &memoryCacheBench{}
	b.millis.Store(start.UnixMilli())
	s, err := memory.NewStore(memory.StoreConfig{
		MaxKeys: 10_000, Clock: func() time.Time { return time.UnixMilli(b.millis.Load()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.store = s
	for program, handler := range map[*store.Program]memory.Handler{lookProgram: look, ttlProgram: pttl, placeProgram: place} {
		if err := s.Register(program, handler); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = s.Close() })
	return b
}

func pttl(tx *memory.Tx, keys, _ []string) (store.Reply, error) {
	return store.NewReply(store.Integer(tx.PTTL(keys[0])))
}

func look(tx *memory.Tx, keys, _ []string) (store.Reply, error) {
	content, err := tx.Type(keys[0]), error(nil)
	var of any
	switch content {
	case "none":
		return store.NewReply(store.Text(""))
	case "string":
		of, _, err = tx.GetString(keys[0])
	case "hash":
		of, err = tx.HashGetAll(keys[0])
	case "zset":
		of, err = tx.ZRangeByRank(keys[0], 0, -1)
	}
	if err != nil {
		return store.Reply{}, err
	}
	return store.NewReply(store.Text(fmt.Sprintf("%s %q", content, fmt.Sprint(of))))
}

// place: what this Store does not have, lists, sets and streams, a sorted set stands for.
func place(tx *memory.Tx, keys, args []string) (store.Reply, error) {
	var err error
	switch contracttest.ForeignKind(args[0]) {
	case contracttest.ForeignString:
		err = tx.SetStringKeepTTL(keys[0], "foreign")
	case contracttest.ForeignEmptyString:
		err = tx.SetStringKeepTTL(keys[0], "")
	case contracttest.ForeignHash:
		err = tx.HashSet(keys[0], "foreign", "1")
	case contracttest.ForeignList, contracttest.ForeignSet, contracttest.ForeignStream, contracttest.ForeignSortedSet:
		_, err = tx.ZAdd(keys[0], 1, "foreign")
	default:
		err = errors.New("no such kind")
	}
	if err != nil {
		return store.Reply{}, err
	}
	return store.NewReply(store.Text("OK"))
}

func (b *memoryCacheBench) eval(t testing.TB, program *store.Program, key string, args ...any) store.Value {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reply, err := b.store.Eval(ctx, program, []string{key}, args)
	if err != nil {
		t.Fatal(err)
	}
	return reply.At(0)
}

func (b *memoryCacheBench) backend(t testing.TB) *contracttest.CacheBackend {
	keys := cacheOver(t, b.store, "memory", "suite", cache.Limits{DefaultTTL: time.Hour, MaxValueBytes: 1})
	return &contracttest.CacheBackend{
		New: func(t testing.TB, name string, limits cache.Limits) cache.CachePort {
			return cacheOver(t, b.store, "memory", name, limits)
		},
		Reports: true, Shares: true, Held: true,
		Advance: func(d time.Duration) { b.millis.Add(d.Milliseconds()) },
		TTL: func(t testing.TB, _, key string) (time.Duration, bool) {
			ttl := b.eval(t, ttlProgram, keys.EntryKey(key)).Int
			return time.Duration(ttl) * time.Millisecond, ttl >= 0
		},
		State: func(t testing.TB, _, key string) string { return b.eval(t, lookProgram, keys.EntryKey(key)).Text },
		PutForeign: func(t testing.TB, _, key string, kind contracttest.ForeignKind) {
			b.eval(t, placeProgram, keys.EntryKey(key), string(kind))
		},
	}
}
