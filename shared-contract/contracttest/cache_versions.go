package contracttest

import (
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
)

func cacheVersionTests() []cacheTest {
	return []cacheTest{
		{name: "ReplaceByToken", run: cacheReplaceByToken},
		{name: "DeleteByToken", run: cacheDeleteByToken},
		{name: "EqualValuesAreOtherVersions", run: cacheABA},
		{name: "TokensAreUnique", run: cacheTokensAreUnique},
		{name: "ReadingKeepsTheVersion", run: cacheReadingKeeps},
	}
}

func cacheReplaceByToken(h *cacheHarness) {
	first := h.put("k", "one", time.Hour)
	second := h.replace("k", first, "two", time.Hour)
	h.stands("k", "two", second)
	h.notReplaced("k", first, cache.EffectChanged)
	h.notReplaced("k", cache.NewToken(), cache.EffectChanged)
	h.stands("k", "two", second)
	third := h.replace("k", second, "three", time.Hour)
	h.stands("k", "three", third)
}

func cacheDeleteByToken(h *cacheHarness) {
	first := h.put("k", "one", time.Hour)
	second := h.replace("k", first, "two", time.Hour)
	h.removed("k", first, cache.EffectChanged)
	h.stands("k", "two", second)
	h.removed("k", second, cache.EffectApplied)
	h.missing("k")
	h.removed("k", second, cache.EffectAbsent)
	h.notReplaced("k", second, cache.EffectAbsent)
	h.missing("k")
}

// cacheABA: a value that went and came back is another version, whichever way it came back.
func cacheABA(h *cacheHarness) {
	first := h.put("k", "same", time.Hour)
	second := h.replace("k", first, "other", time.Hour)
	third := h.replace("k", second, "same", time.Hour)
	h.notReplaced("k", first, cache.EffectChanged)
	h.removed("k", first, cache.EffectChanged)
	fourth := h.replace("k", third, "same", time.Hour)
	h.notReplaced("k", third, cache.EffectChanged)
	h.removed("k", fourth, cache.EffectApplied)
	fifth := h.put("k", "same", time.Hour)
	for _, old := range []cache.Token{first, second, third, fourth} {
		h.notReplaced("k", old, cache.EffectChanged)
		h.removed("k", old, cache.EffectChanged)
	}
	h.stands("k", "same", fifth)
}

func cacheTokensAreUnique(h *cacheHarness) {
	seen := map[cache.Token]bool{}
	token := h.put("chain", "v", time.Hour)
	seen[token] = true
	for i := range 200 {
		token = h.replace("chain", token, "v", time.Hour)
		other := h.put(fmt.Sprint("k", i), "v", time.Hour)
		if seen[token] || seen[other] || token == other {
			h.Fatalf("a token twice: %s, %s", token, other)
		}
		seen[token], seen[other] = true, true
	}
}

func cacheReadingKeeps(h *cacheHarness) {
	token := h.put("k", "one", time.Hour)
	for range 5 {
		h.stands("k", "one", token)
	}
	h.replace("k", token, "two", time.Hour)
}
