package contracttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// cacheName is that of the cache of most subtests.
const cacheName = "suite"

// cacheLimits are those of the caches of subtests.
func cacheLimits() cache.Limits {
	return cache.Limits{DefaultTTL: 17 * time.Minute, MaxValueBytes: cache.MaxValueBytes}
}

// cacheHarness is one backend with a cache.
type cacheHarness struct {
	*testing.T
	b *CacheBackend
	c cache.CachePort
}

func newCacheHarness(t *testing.T, factory CacheFactory) *cacheHarness {
	t.Helper()
	b := factory(t)
	return &cacheHarness{T: t, b: b, c: b.New(t, cacheName, cacheLimits())}
}

// ctx has a deadline that no test reaches.
func (h *cacheHarness) ctx() context.Context {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), time.Hour)
	h.Cleanup(cancel)
	return ctx
}

// put stores where nothing stands and gives the token.
func (h *cacheHarness) put(key, value string, ttl time.Duration) cache.Token {
	h.Helper()
	written, err := h.c.PutIfAbsent(h.ctx(), key, value, ttl)
	if err != nil || written.Effect != cache.EffectApplied {
		h.Fatalf("put at %.20q: %+v, %v, want it applied", key, written, err)
	}
	h.wellFormed(written)
	return written.Token
}

// replace replaces the version observed and gives the token of the new one.
func (h *cacheHarness) replace(key string, observed cache.Token, value string, ttl time.Duration) cache.Token {
	h.Helper()
	written, err := h.c.CompareAndReplace(h.ctx(), key, observed, value, ttl)
	if err != nil || written.Effect != cache.EffectApplied {
		h.Fatalf("replace at %.20q: %+v, %v, want it applied", key, written, err)
	}
	h.wellFormed(written)
	if written.Token == observed {
		h.Fatalf("the replacement has the token of what it replaced")
	}
	return written.Token
}

// wellFormed: a token comes with what was applied, and with nothing else.
func (h *cacheHarness) wellFormed(written cache.Written) {
	h.Helper()
	if written.Effect != cache.EffectApplied {
		if written.Token != "" {
			h.Errorf("%v with the token %s", written.Effect, written.Token)
		}
		return
	}
	if err := cache.CheckToken(written.Token); err != nil {
		h.Errorf("malformed token: %v", err)
	}
}

// notReplaced requires that a replacement has this effect and no other.
func (h *cacheHarness) notReplaced(key string, observed cache.Token, want cache.Effect) {
	h.Helper()
	written, err := h.c.CompareAndReplace(h.ctx(), key, observed, "never", time.Hour)
	if err != nil || written.Effect != want {
		h.Errorf("replace at %.20q: %+v, %v, want %v", key, written, err, want)
	}
	h.wellFormed(written)
}

// removed requires that a removal has this effect.
func (h *cacheHarness) removed(key string, observed cache.Token, want cache.Effect) {
	h.Helper()
	effect, err := h.c.DeleteByToken(h.ctx(), key, observed)
	if err != nil || effect != want {
		h.Errorf("delete at %.20q: %v, %v, want %v", key, effect, err, want)
	}
}

// stands requires this version at a key.
func (h *cacheHarness) stands(key, value string, token cache.Token) {
	h.Helper()
	got, err := h.c.Get(h.ctx(), key)
	if err != nil || got != (cache.Observation{Value: value, Token: token}) {
		h.Errorf("at %.20q stands %.40q of %s, %v, want %.40q of %s", key, got.Value, got.Token, err, value, token)
	}
}

// missing requires that there is no entry.
func (h *cacheHarness) missing(key string) {
	h.Helper()
	got, err := h.c.Get(h.ctx(), key)
	if err != cache.ErrNotFound || got != (cache.Observation{}) { //nolint:errorlint // It must come bare.
		h.Errorf("at %.20q stands %+v, %v, want %v", key, got, err, cache.ErrNotFound)
	}
}

// failed requires a *store.Error of this certainty and code.
func (h *cacheHarness) failed(what string, err error, certainty store.Certainty, code store.Code) {
	h.Helper()
	var failure *store.Error
	if !errors.As(err, &failure) || failure.Certainty != certainty || failure.Code != code || failure.Op == "" {
		h.Errorf("%s: %v, want %v (%v)", what, err, code, certainty)
	}
}
