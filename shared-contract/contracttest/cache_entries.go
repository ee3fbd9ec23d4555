package contracttest

import (
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
)

func cacheEntryTests() []cacheTest {
	return []cacheTest{
		{name: "MissIsBare", run: cacheMissIsBare},
		{name: "PutThenGet", run: cachePutThenGet},
		{name: "AnyBytes", run: cacheAnyBytes},
		{name: "AnyKey", run: cacheAnyKey},
		{name: "NamesAreApart", run: cacheNamesAreApart},
		{name: "InstancesShareEntries", needs: cacheNeeds(CacheCapabilityShare), run: cacheInstancesShare},
	}
}

func cacheMissIsBare(h *cacheHarness) {
	h.missing("nothing")
	h.notReplaced("nothing", cache.NewToken(), cache.EffectAbsent)
	h.removed("nothing", cache.NewToken(), cache.EffectAbsent)
	h.missing("nothing") // Neither made an entry.
}

// cachePutThenGet: NX. The second put finds the first and leaves it alone.
func cachePutThenGet(h *cacheHarness) {
	token := h.put("k", "one", time.Hour)
	h.stands("k", "one", token)
	for range 2 {
		written, err := h.c.PutIfAbsent(h.ctx(), "k", "two", time.Hour)
		if err != nil || written != (cache.Written{Effect: cache.EffectExists}) {
			h.Errorf("the second put: %+v, %v, want it to find the first", written, err)
		}
		h.stands("k", "one", token)
	}
	h.removed("k", token, cache.EffectApplied)
	h.missing("k")
	if again := h.put("k", "two", time.Hour); again == token {
		h.Error("an entry put anew has the token of the one before")
	}
}

// cacheAnyBytes: a value comes back to the byte, whatever is in it, from nothing to the bound.
func cacheAnyBytes(h *cacheHarness) {
	for i, value := range []string{
		"", "\x00", "\xff\xfe", "\r\n", "1:", ":", "1:" + strings.Repeat("A", cache.TokenBytes) + ":x", "日本語 𝒳",
		strings.Repeat("\x00\xff:", 1000), strings.Repeat("v", cache.MaxValueBytes),
	} {
		key := strings.Repeat("k", i+1)
		token := h.put(key, value, time.Hour)
		h.stands(key, value, token)
		other := strings.ToUpper(value)
		h.stands(key, value, token)
		token = h.replace(key, token, other, time.Hour)
		h.stands(key, other, token)
	}
}

// cacheAnyKey: keys that look alike, or like keys of a store, are apart. Casebook 22.
func cacheAnyKey(h *cacheHarness) {
	keys := []string{
		"a", "A", " a", "a ", "a:b", "a::b", "{a}", "{a}b", "*", "a\x00", "\x00", "a\n", "é", "e\u0301", "\xff", "𝒳",
		strings.Repeat("a", cache.MaxKeyBytes), strings.Repeat("a", cache.MaxKeyBytes-1) + "b",
	}
	tokens := make([]cache.Token, len(keys))
	for i, key := range keys {
		tokens[i] = h.put(key, key, time.Hour)
	}
	for i, key := range keys {
		h.stands(key, key, tokens[i])
		h.notReplaced(key, tokens[(i+1)%len(keys)], cache.EffectChanged)
	}
}

func cacheNamesAreApart(h *cacheHarness) {
	other := &cacheHarness{T: h.T, b: h.b, c: h.b.New(h, "another", cacheLimits())}
	token := h.put("k", "one", time.Hour)
	other.missing("k")
	other.notReplaced("k", token, cache.EffectAbsent)
	theirs := other.put("k", "two", time.Hour)
	h.stands("k", "one", token)
	other.removed("k", theirs, cache.EffectApplied)
	h.stands("k", "one", token)
}

func cacheInstancesShare(h *cacheHarness) {
	other := &cacheHarness{T: h.T, b: h.b, c: h.b.New(h, cacheName, cacheLimits())}
	token := h.put("k", "one", time.Hour)
	other.stands("k", "one", token)
	newer := other.replace("k", token, "two", time.Hour)
	h.notReplaced("k", token, cache.EffectChanged)
	h.stands("k", "two", newer)
	h.removed("k", newer, cache.EffectApplied)
	other.missing("k")
}
