package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
)

func newCache(t testing.TB, change ...func(c *CacheConfig)) *Cache {
	t.Helper()
	config := CacheConfig{
		Clock: newManualClock().now, MaxEntries: 1000, MaxBytes: 1 << 24,
		Limits: cache.Limits{DefaultTTL: time.Hour, MaxValueBytes: 100},
	}
	for _, f := range change {
		f(&config)
	}
	c, err := NewCache(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cacheBackend is a cache of each name under one clock that stands.
func cacheBackend(testing.TB) *contracttest.CacheBackend {
	clock := newManualClock()
	caches := map[string]*Cache{}
	find := func(name, key string) *cacheEntry {
		c := caches[name]
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.find(key, clock.peek())
	}
	return &contracttest.CacheBackend{
		New: func(t testing.TB, name string, limits cache.Limits) cache.CachePort {
			c := newCache(t, func(c *CacheConfig) { c.Clock, c.Limits = clock.now, limits })
			caches[name] = c
			return c
		},
		Reports: true, Held: true, Advance: clock.advance,
		TTL: func(_ testing.TB, name, key string) (time.Duration, bool) {
			e := find(name, key)
			if e == nil {
				return 0, false
			}
			return e.expiresAt.Sub(clock.peek()), true
		},
		State: func(_ testing.TB, name, key string) string {
			e := find(name, key)
			if e == nil {
				return ""
			}
			return fmt.Sprintf("%+v", e.stands)
		},
		Missing: map[contracttest.CacheCapability]string{
			contracttest.CacheCapabilityShare:      "a cache's entries are its own and end with it",
			contracttest.CacheCapabilityPutForeign: "entries are typed values that only the cache makes",
		},
	}
}

func TestCacheContract(t *testing.T) {
	t.Parallel()
	contracttest.RunCache(t, cacheBackend)
}

func TestCacheConfig(t *testing.T) {
	t.Parallel()
	_, err := NewCache(CacheConfig{})
	for _, want := range []string{"MaxEntries is 0", "MaxBytes is 0", "lifetime is 0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	config := CacheConfig{MaxEntries: 1, MaxBytes: 10, Limits: cache.Limits{DefaultTTL: time.Second, MaxValueBytes: 10}}
	if _, err := NewCache(config); err == nil || !strings.Contains(err.Error(), "room for the greatest entry, 522 or more") {
		t.Errorf("too few bytes for one entry: %v", err)
	}
	config.MaxBytes = 522
	if _, err := NewCache(config); err != nil {
		t.Errorf("just enough bytes for one entry: %v", err)
	}
	config.MaxEntries, config.MaxBytes = MostKeys+1, MostCacheBytes+1
	if _, err := NewCache(config); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("above the bounds: %v", err)
	}
}

func put(t *testing.T, c *Cache, key, value string, ttl time.Duration) cache.Token {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	written, err := c.PutIfAbsent(ctx, key, value, ttl)
	if err != nil || written.Effect != cache.EffectApplied {
		t.Fatalf("put %q: %+v, %v", key, written, err)
	}
	return written.Token
}

// present lists which of the keys are there, without using them.
func present(c *Cache, keys ...string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var there []string
	for _, key := range keys {
		if c.entries[key] != nil {
			there = append(there, key)
		}
	}
	return strings.Join(there, " ")
}

// TestCacheEviction: at the bound, what has expired goes first, whenever it was used; then what was used
// least recently, reading and replacing being uses and looking without success being none.
func TestCacheEviction(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	c := newCache(t, func(config *CacheConfig) { config.Clock, config.MaxEntries = clock.now, 3 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	a := put(t, c, "a", "v", time.Hour)
	put(t, c, "b", "v", time.Hour)
	put(t, c, "c", "v", time.Hour)
	if _, err := c.Get(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	put(t, c, "d", "v", time.Minute) // b goes
	if got := present(c, "a", "b", "c", "d"); got != "a c d" {
		t.Errorf("after the first eviction: %s", got)
	}
	if _, err := c.CompareAndReplace(ctx, "a", a, "w", time.Hour); err != nil {
		t.Fatal(err)
	}
	if written, err := c.CompareAndReplace(ctx, "c", a, "w", time.Hour); err != nil || written.Effect != cache.EffectChanged {
		t.Fatal(written, err)
	}
	if written, err := c.PutIfAbsent(ctx, "c", "w", time.Hour); err != nil || written.Effect != cache.EffectExists {
		t.Fatal(written, err)
	}
	put(t, c, "e", "v", time.Hour) // c goes: nobody got anything from it
	if got := present(c, "a", "b", "c", "d", "e"); got != "a d e" {
		t.Errorf("after the second eviction: %s", got)
	}
	if _, err := c.Get(ctx, "d"); err != nil {
		t.Fatal(err)
	}
	clock.advance(2 * time.Minute)
	put(t, c, "f", "v", time.Hour) // d has expired, though it was used last
	if got := present(c, "a", "d", "e", "f"); got != "a e f" {
		t.Errorf("after the third eviction: %s", got)
	}
}

// TestCacheBytes: the bound on bytes holds after every write, replacements too, and one large value takes
// the place of many.
func TestCacheBytes(t *testing.T) {
	t.Parallel()
	c := newCache(t, func(config *CacheConfig) { config.MaxBytes = 612 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var last cache.Token
	for i := range 40 {
		last = put(t, c, fmt.Sprintf("%02d", i), strings.Repeat("v", 50), time.Hour)
		if c.bytes > 612 || c.bytes != int64(52*len(c.entries)) {
			t.Fatalf("%d bytes in %d entries", c.bytes, len(c.entries))
		}
	}
	if len(c.entries) != 11 { // 11*52 = 572
		t.Errorf("%d entries", len(c.entries))
	}
	written, err := c.CompareAndReplace(ctx, "39", last, strings.Repeat("v", 100), time.Hour)
	if err != nil || written.Effect != cache.EffectApplied || c.bytes != 10*52+50 || len(c.entries) != 10 {
		t.Errorf("%+v, %v; %d bytes in %d entries", written, err, c.bytes, len(c.entries))
	}
	put(t, c, strings.Repeat("k", cache.MaxKeyBytes), strings.Repeat("v", 100), time.Hour)
	if c.bytes != 612 || len(c.entries) != 1 {
		t.Errorf("%d bytes in %d entries", c.bytes, len(c.entries))
	}
	if len(c.expiry) != len(c.entries) || c.used.Len() != len(c.entries) {
		t.Errorf("%d entries, %d by expiry, %d by use", len(c.entries), len(c.expiry), c.used.Len())
	}
}

// TestCacheReclaims: entries that have expired do not stay until the bound is reached. Casebook 25.
func TestCacheReclaims(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	c := newCache(t, func(config *CacheConfig) { config.Clock, config.MaxEntries = clock.now, 1_000_000 })
	for i := range 3000 {
		put(t, c, fmt.Sprint("old", i), "v", time.Minute)
	}
	clock.advance(time.Hour)
	for i := range 1000 {
		put(t, c, fmt.Sprint("new", i), "v", time.Hour)
	}
	if n := c.Entries(); n != 1000 {
		t.Errorf("%d entries, want 1000", n)
	}
}
