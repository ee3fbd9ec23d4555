package contracttest

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
)

func cacheLifetimeTests() []cacheTest {
	return []cacheTest{
		{name: "EntriesExpire", needs: cacheNeeds(CacheCapabilityAdvance), run: cacheEntriesExpire},
		{name: "LifetimesAreExact", needs: cacheNeeds(CacheCapabilityAdvance, CacheCapabilityHold), run: cacheLifetimesAreExact},
		{name: "LifetimesAreFinite", needs: cacheNeeds(CacheCapabilityTTL), run: cacheLifetimesAreFinite},
		{name: "ExpiredEntriesLeaveNothing", needs: cacheNeeds(CacheCapabilityAdvance, CacheCapabilityState), run: cacheExpiredLeaveNothing},
	}
}

// cacheEntriesExpire: what has expired is absent to every call.
func cacheEntriesExpire(h *cacheHarness) {
	tokens := map[string]cache.Token{}
	for _, key := range []string{"got", "put", "replaced", "deleted"} {
		tokens[key] = h.put(key, "v", 20*time.Millisecond)
	}
	h.b.Advance(25 * time.Millisecond)
	h.missing("got")
	h.notReplaced("replaced", tokens["replaced"], cache.EffectAbsent)
	h.removed("deleted", tokens["deleted"], cache.EffectAbsent)
	h.put("put", "again", time.Hour)
}

// cacheLifetimesAreExact: writes that take effect count the lifetime anew, reads and other writes do
// not.
func cacheLifetimesAreExact(h *cacheHarness) {
	const ttl = time.Second
	token := h.put("k", "one", ttl)
	h.b.Advance(ttl - time.Millisecond)
	h.stands("k", "one", token)
	h.notReplaced("k", cache.NewToken(), cache.EffectChanged)
	h.removed("k", cache.NewToken(), cache.EffectChanged)
	if written, err := h.c.PutIfAbsent(h.ctx(), "k", "two", time.Hour); err != nil || written.Effect != cache.EffectExists {
		h.Errorf("put: %+v, %v", written, err)
	}
	h.b.Advance(2 * time.Millisecond)
	h.missing("k")

	token = h.put("k", "one", ttl)
	h.b.Advance(ttl / 2)
	token = h.replace("k", token, "two", ttl)
	h.b.Advance(ttl - time.Millisecond)
	h.stands("k", "two", token)
	token = h.replace("k", token, "three", time.Millisecond) // A shorter one counts too.
	h.stands("k", "three", token)
	h.b.Advance(2 * time.Millisecond)
	h.missing("k")

	token = h.put("default", "v", cache.DefaultTTL)
	other := h.put("put by default", "v", cache.DefaultTTL)
	h.b.Advance(cacheLimits().DefaultTTL - time.Millisecond)
	h.stands("put by default", "v", other)
	token = h.replace("default", token, "w", cache.DefaultTTL)
	h.b.Advance(2 * time.Millisecond)
	h.missing("put by default")
	h.b.Advance(cacheLimits().DefaultTTL - 3*time.Millisecond)
	h.stands("default", "w", token)
	h.b.Advance(2 * time.Millisecond)
	h.missing("default")
}

// cacheLifetimesAreFinite: there is no entry without a lifetime, and it is the one that was named.
// Casebook 24.
func cacheLifetimesAreFinite(h *cacheHarness) {
	between := func(what string, least, most time.Duration) {
		h.Helper()
		ttl, ok := h.b.TTL(h, cacheName, "k")
		if !ok || ttl > most || ttl < least {
			h.Errorf("%s: lives for %v (finite: %v), want %v..%v", what, ttl, ok, least, most)
		}
	}
	if ttl, ok := h.b.TTL(h, cacheName, "k"); ok {
		h.Errorf("nothing lives for %v", ttl)
	}
	token := h.put("k", "v", 2*time.Hour)
	between("put", time.Hour, 2*time.Hour)
	h.stands("k", "v", token)
	between("got", time.Hour, 2*time.Hour)
	token = h.replace("k", token, "w", 24*time.Hour)
	between("replaced", 23*time.Hour, 24*time.Hour)
	h.notReplaced("k", cache.NewToken(), cache.EffectChanged)
	between("not replaced", 23*time.Hour, 24*time.Hour)
	token = h.replace("k", token, "x", cache.DefaultTTL)
	between("default", 10*time.Minute, cacheLimits().DefaultTTL)
	h.replace("k", token, "y", cache.MaxTTL)
	between("longest", cache.MaxTTL-time.Hour, cache.MaxTTL)
}

func cacheExpiredLeaveNothing(h *cacheHarness) {
	h.put("k", "v", 10*time.Millisecond)
	h.b.Advance(15 * time.Millisecond)
	if state := h.b.State(h, cacheName, "k"); state != "" {
		h.Errorf("past its lifetime the entry is still %q", state)
	}
}
