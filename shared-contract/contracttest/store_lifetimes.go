package contracttest

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func storeLifetimeTests() []storeTest {
	ttl, both := []StoreCapability{StoreTTL}, []StoreCapability{StoreTTL, StoreSetTime}
	return []storeTest{
		{name: "LifetimeOfEachMethod", needs: ttl, run: lifetimeOfEachMethod},
		{name: "ReadingChangesNoLifetime", needs: both, run: readingChangesNoLifetime},
		{name: "LifetimeIsCountedAnew", needs: both, run: lifetimeIsCountedAnew},
		{name: "IncrByLifetime", needs: both, run: incrByLifetime},
		{name: "KeysGoByThemselves", run: keysGoByThemselves},
		{name: "ExpiryToTheMillisecond", needs: []StoreCapability{StoreTTL, StoreSetTime, StoreExactExpiry}, run: expiryToTheMillisecond},
		{name: "LifetimeFollowsStepsBack", needs: both, run: lifetimeFollowsStepsBack},
	}
}

// lifetimeOfEachMethod: what each method creates lives as long as it says, at the bounds too.
func lifetimeOfEachMethod(h *storeHarness) {
	for _, ttl := range []time.Duration{time.Minute, 61_001 * time.Millisecond, store.MaxTTL} {
		h.set("set", "v", ttl)
		h.lives("set", ttl)
		_, err := h.s.SetNX(h.ctx(), "setnx", "v", ttl)
		h.ok("SetNX", err)
		h.lives("setnx", ttl)
		_, err = h.s.GetSet(h.ctx(), "getset", "v", ttl)
		if err != store.ErrNotFound { //nolint:errorlint // It comes bare.
			h.Fatalf("GetSet: %v", err)
		}
		h.lives("getset", ttl)
		_, err = h.s.IncrBy(h.ctx(), "incrby", 1, ttl)
		h.ok("IncrBy", err)
		h.lives("incrby", ttl)
		_, err = h.s.Del(h.ctx(), "set", "setnx", "getset", "incrby")
		h.ok("Del", err)
		if ttl := h.b.TTL(h, "set"); ttl != -2 {
			h.Fatalf("what was removed lives for %d ms", ttl)
		}
	}
}

func (h *storeHarness) advance(d time.Duration) { h.b.SetTime(h.b.Now().Add(d)) }

// readingChangesNoLifetime, and neither does a SetNX that finds something, nor a call that is refused.
func readingChangesNoLifetime(h *storeHarness) {
	h.set("k", "v", time.Minute)
	h.advance(10 * time.Second)
	for range 3 {
		h.holds("k", "v")
	}
	stored, err := h.s.SetNX(h.ctx(), "k", "w", time.Hour)
	if err != nil || stored {
		h.Fatalf("SetNX gives %v, %v", stored, err)
	}
	_, err = h.s.IncrBy(h.ctx(), "k", 1, time.Hour)
	h.failed("IncrBy", err, store.Refused, store.CodeNotInteger)
	h.failed("Set", h.s.Set(h.ctx(), "k", "w", 0), store.NotSent, store.CodeInvalidArgument)
	h.lives("k", 50*time.Second)
	h.holds("k", "v")
}

// lifetimeIsCountedAnew by Set and GetSet, longer or shorter.
func lifetimeIsCountedAnew(h *storeHarness) {
	for _, ttl := range []time.Duration{time.Hour, time.Second, time.Minute} {
		h.set("k", "v", ttl)
		h.lives("k", ttl)
		h.advance(300 * time.Millisecond)
		h.lives("k", ttl-300*time.Millisecond)
		_, err := h.s.GetSet(h.ctx(), "k", "w", 2*ttl)
		h.ok("GetSet", err)
		h.lives("k", 2*ttl)
	}
}

// incrByLifetime: on creation only; after expiry a key is new.
func incrByLifetime(h *storeHarness) {
	add := func(want int64, ttl time.Duration) {
		h.Helper()
		if sum, err := h.s.IncrBy(h.ctx(), "n", 2, ttl); err != nil || sum != want {
			h.Fatalf("IncrBy gives %d, %v, want %d", sum, err, want)
		}
	}
	add(2, time.Minute)
	h.advance(20 * time.Second)
	add(4, time.Hour)
	h.lives("n", 40*time.Second)
	add(6, time.Second)
	h.lives("n", 40*time.Second)
	h.advance(40*time.Second + time.Millisecond)
	h.absent("n")
	add(2, time.Hour)
	h.lives("n", time.Hour)
	if h.b.can(StorePut) {
		h.b.PutText(h, "endless", "40")
		if sum, err := h.s.IncrBy(h.ctx(), "endless", 2, time.Minute); err != nil || sum != 42 {
			h.Fatalf("IncrBy gives %d, %v, want 42", sum, err)
		}
		if ttl := h.b.TTL(h, "endless"); ttl != -1 {
			h.Errorf("a key without a lifetime got one of %d ms", ttl)
		}
	}
}

// keysGoByThemselves, each kind, and are new to every method afterwards.
func keysGoByThemselves(h *storeHarness) {
	const short = 40 * time.Millisecond
	keys := []string{"set", "setnx", "getset", "incrby"}
	h.set("set", "v", short)
	_, err := h.s.SetNX(h.ctx(), "setnx", "v", short)
	h.ok("SetNX", err)
	if _, err := h.s.GetSet(h.ctx(), "getset", "v", short); err != store.ErrNotFound { //nolint:errorlint // It comes bare.
		h.Fatalf("GetSet: %v", err)
	}
	_, err = h.s.IncrBy(h.ctx(), "incrby", 7, short)
	h.ok("IncrBy", err)
	if h.b.SetTime != nil {
		h.advance(short + time.Millisecond)
	}
	for _, key := range keys {
		for end := time.Now().Add(storePatience); ; time.Sleep(time.Millisecond) {
			if _, err = h.s.Get(h.ctx(), key); err == store.ErrNotFound || time.Now().After(end) { //nolint:errorlint // It comes bare.
				break
			}
		}
		h.absent(key)
	}
	if n, err := h.s.Del(h.ctx(), keys...); err != nil || n != 0 {
		h.Errorf("Del of expired keys gives %d, %v", n, err)
	}
	if stored, err := h.s.SetNX(h.ctx(), "set", "w", time.Minute); err != nil || !stored {
		h.Errorf("SetNX of an expired key gives %v, %v", stored, err)
	}
	if sum, err := h.s.IncrBy(h.ctx(), "incrby", 1, time.Minute); err != nil || sum != 1 {
		h.Errorf("IncrBy of an expired key gives %d, %v, want 1", sum, err)
	}
}

// expiryToTheMillisecond: a key is there at the very moment of its expiry, and not one later.
func expiryToTheMillisecond(h *storeHarness) {
	for _, ttl := range []time.Duration{time.Millisecond, 2 * time.Millisecond, time.Second, time.Hour} {
		h.set("k", "v", ttl)
		h.advance(ttl - time.Millisecond)
		h.lives("k", time.Millisecond)
		h.advance(time.Millisecond)
		h.lives("k", 0)
		h.holds("k", "v")
		h.advance(time.Millisecond)
		h.absent("k")
		if ttl := h.b.TTL(h, "k"); ttl != -2 {
			h.Fatalf("an expired key lives for %d ms", ttl)
		}
	}
}

// lifetimeFollowsStepsBack: a clock that is set back makes keys live on, and never go early.
func lifetimeFollowsStepsBack(h *storeHarness) {
	h.set("k", "v", time.Minute)
	h.advance(-time.Hour)
	h.holds("k", "v")
	h.set("k", "w", time.Minute)
	h.lives("k", time.Minute)
	h.advance(59 * time.Second)
	h.holds("k", "w")
	h.advance(time.Second + time.Millisecond)
	h.absent("k")
}
