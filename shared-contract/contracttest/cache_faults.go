package contracttest

import (
	"context"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func cacheFaultTests() []cacheTest {
	return []cacheTest{
		{name: "WrongArguments", run: cacheWrongArguments},
		{name: "Contexts", needs: cacheNeeds(CacheCapabilityReport), run: cacheContexts},
		{name: "ValuesAreBounded", run: cacheValuesAreBounded},
		{name: "ForeignKeys", needs: cacheNeeds(CacheCapabilityReport, CacheCapabilityPutForeign, CacheCapabilityState), run: cacheForeignKeys},
	}
}

// cacheWrongArguments: what is out of its bounds is refused, is not sent and changes nothing.
func cacheWrongArguments(h *cacheHarness) {
	refused := func(what string, err error) {
		h.Helper()
		h.failed(what, err, store.NotSent, store.CodeInvalidArgument)
	}
	token := h.put("k", "v", time.Hour)
	for _, key := range []string{"", strings.Repeat("k", cache.MaxKeyBytes+1)} {
		_, err := h.c.Get(h.ctx(), key)
		refused("get", err)
		_, err = h.c.PutIfAbsent(h.ctx(), key, "v", time.Hour)
		refused("put", err)
		_, err = h.c.CompareAndReplace(h.ctx(), key, token, "v", time.Hour)
		refused("replace", err)
		_, err = h.c.DeleteByToken(h.ctx(), key, token)
		refused("delete", err)
	}
	for _, ttl := range []time.Duration{0, -2, -time.Hour, 1, time.Millisecond - 1, time.Millisecond + 1, cache.MaxTTL + time.Millisecond} {
		_, err := h.c.PutIfAbsent(h.ctx(), "new", "v", ttl)
		refused("put for "+ttl.String(), err)
		_, err = h.c.CompareAndReplace(h.ctx(), "k", token, "w", ttl)
		refused("replace for "+ttl.String(), err)
	}
	whole := strings.Repeat("A", cache.TokenBytes)
	for _, bad := range []cache.Token{"", "A", cache.Token(whole + "A"), cache.Token(whole[1:]), cache.Token(whole[1:] + ":"), cache.Token(whole[1:] + "\x00"), cache.Token(whole[1:] + "%")} {
		written, err := h.c.CompareAndReplace(h.ctx(), "k", bad, "w", time.Hour)
		refused("replace", err)
		if written != (cache.Written{}) {
			h.Errorf("%+v beside an error", written)
		}
		effect, err := h.c.DeleteByToken(h.ctx(), "k", bad)
		refused("delete", err)
		if effect != cache.EffectInvalid {
			h.Errorf("%v beside an error", effect)
		}
	}
	h.missing("new")
	h.stands("k", "v", token)
}

// cacheContexts: nothing is done for a caller who has gone, or who would wait for ever.
func cacheContexts(h *cacheHarness) {
	token := h.put("k", "v", time.Hour)
	gone, cancel := context.WithCancel(h.ctx())
	cancel()
	late, cancelLate := context.WithDeadline(h.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for what, c := range map[string]struct {
		ctx  context.Context
		code store.Code
	}{
		"canceled": {gone, store.CodeCanceled}, "late": {late, store.CodeDeadline},
		"without a deadline": {h.Context(), store.CodeInvalidArgument},
	} {
		_, err := h.c.Get(c.ctx, "k")
		h.failed(what+": get", err, store.NotSent, c.code)
		_, err = h.c.PutIfAbsent(c.ctx, "new", "v", time.Hour)
		h.failed(what+": put", err, store.NotSent, c.code)
		_, err = h.c.CompareAndReplace(c.ctx, "k", token, "w", time.Hour)
		h.failed(what+": replace", err, store.NotSent, c.code)
		_, err = h.c.DeleteByToken(c.ctx, "k", token)
		h.failed(what+": delete", err, store.NotSent, c.code)
	}
	h.missing("new")
	h.stands("k", "v", token)
}

func cacheValuesAreBounded(h *cacheHarness) {
	_, err := h.c.PutIfAbsent(h.ctx(), "large", strings.Repeat("v", cache.MaxValueBytes+1), time.Hour)
	h.failed("put", err, store.NotSent, store.CodeInvalidArgument)
	small := &cacheHarness{T: h.T, b: h.b, c: h.b.New(h, "small", cache.Limits{DefaultTTL: time.Hour, MaxValueBytes: 3})}
	_, err = small.c.PutIfAbsent(h.ctx(), "k", "four", time.Hour)
	small.failed("put", err, store.NotSent, store.CodeInvalidArgument)
	token := small.put("k", "thr", time.Hour)
	_, err = small.c.CompareAndReplace(h.ctx(), "k", token, "four", time.Hour)
	small.failed("replace", err, store.NotSent, store.CodeInvalidArgument)
	small.stands("k", "thr", token)
}

// cacheForeignKeys: what stands at a key and is no entry is neither read as one nor overwritten.
// Casebook 23.
func cacheForeignKeys(h *cacheHarness) {
	token := cache.NewToken()
	for _, kind := range ForeignKinds() {
		key := string(kind)
		h.b.PutForeign(h, cacheName, key, kind)
		before := h.b.State(h, cacheName, key)
		if before == "" {
			h.Fatalf("%s: the backend placed nothing", kind)
		}
		_, err := h.c.Get(h.ctx(), key)
		h.failed("get over a foreign "+key, err, store.Mismatched, store.CodeWrongType)
		written, err := h.c.CompareAndReplace(h.ctx(), key, token, "v", time.Hour)
		h.failed("replace over a foreign "+key, err, store.Mismatched, store.CodeWrongType)
		if written != (cache.Written{}) {
			h.Errorf("replace over a foreign %s: %+v beside an error that says that nothing was changed", key, written)
		}
		_, err = h.c.DeleteByToken(h.ctx(), key, token)
		h.failed("delete over a foreign "+key, err, store.Mismatched, store.CodeWrongType)
		// NX: whatever stands there, stands there.
		if written, err = h.c.PutIfAbsent(h.ctx(), key, "v", time.Hour); err != nil || written != (cache.Written{Effect: cache.EffectExists}) {
			h.Errorf("put over a foreign %s: %+v, %v", key, written, err)
		}
		if after := h.b.State(h, cacheName, key); after != before {
			h.Errorf("a foreign %s was changed from %q to %q", key, before, after)
		}
	}
	h.put("own", "v", time.Hour)
}
