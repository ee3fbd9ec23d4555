package contracttest

import (
	"fmt"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func storeBoundTests() []storeTest {
	return []storeTest{
		{name: "KeyBounds", run: keyBounds},
		{name: "ValueBounds", run: valueBounds},
		{name: "TTLBounds", run: ttlBounds},
		{name: "DelBounds", run: delBounds},
	}
}

// keyBounds: every method takes keys of 1..MaxKeyBytes, and sends no other.
func keyBounds(h *storeHarness) {
	for _, m := range keyedMethods() {
		for _, n := range []int{0, store.MaxKeyBytes + 1, 10 * store.MaxKeyBytes} {
			what := fmt.Sprintf("%s of a key of %d bytes", m.name, n)
			h.failed(what, m.call(h.ctx(), h.s, strings.Repeat("k", n)), store.NotSent, store.CodeInvalidArgument)
		}
		for _, n := range []int{1, store.MaxKeyBytes} {
			key := strings.Repeat("k", n)
			_, err := h.s.Del(h.ctx(), key)
			h.ok("Del", err)
			if err := m.call(h.ctx(), h.s, key); err != nil && err != store.ErrNotFound { //nolint:errorlint // It comes bare.
				h.Errorf("%s of a key of %d bytes: %v", m.name, n, err)
			}
		}
	}
}

// valueBounds: one byte more than MaxTextBytes is refused before anything is sent.
func valueBounds(h *storeHarness) {
	most := strings.Repeat("v", store.MaxTextBytes)
	h.set("k", most, time.Minute)
	over := most + "v"
	h.failed("Set", h.s.Set(h.ctx(), "k", over, time.Minute), store.NotSent, store.CodeInvalidArgument)
	_, err := h.s.SetNX(h.ctx(), "absent", over, time.Minute)
	h.failed("SetNX", err, store.NotSent, store.CodeInvalidArgument)
	_, err = h.s.GetSet(h.ctx(), "k", over, time.Minute)
	h.failed("GetSet", err, store.NotSent, store.CodeInvalidArgument)
	h.holds("k", most)
	h.absent("absent")
}

// ttlBounds: a lifetime is whole milliseconds in MinTTL..MaxTTL for every method that takes one.
func ttlBounds(h *storeHarness) {
	methods := map[string]func(ttl time.Duration) error{
		"Set": func(ttl time.Duration) error { return h.s.Set(h.ctx(), "k", "1", ttl) },
		"SetNX": func(ttl time.Duration) error {
			_, err := h.s.SetNX(h.ctx(), "k", "1", ttl)
			return err
		},
		"GetSet": func(ttl time.Duration) error {
			_, err := h.s.GetSet(h.ctx(), "k", "1", ttl)
			return err
		},
		"IncrBy": func(ttl time.Duration) error {
			_, err := h.s.IncrBy(h.ctx(), "k", 1, ttl)
			return err
		},
	}
	for name, call := range methods {
		for _, ttl := range []time.Duration{
			0, -1, -time.Minute, 1, time.Millisecond - 1, time.Millisecond + 1, 1500 * time.Microsecond,
			store.MaxTTL + 1, store.MaxTTL + time.Millisecond, 1<<63 - 1, -1 << 63,
		} {
			h.failed(fmt.Sprintf("%s with a lifetime of %v", name, ttl), call(ttl), store.NotSent, store.CodeInvalidArgument)
			h.absent("k")
		}
		for _, ttl := range []time.Duration{store.MaxTTL, time.Minute} {
			if err := call(ttl); err != nil && err != store.ErrNotFound { //nolint:errorlint // It comes bare.
				h.Errorf("%s with a lifetime of %v: %v", name, ttl, err)
			}
			h.holds("k", "1")
			_, err := h.s.Del(h.ctx(), "k")
			h.ok("Del", err)
		}
		if err := call(store.MinTTL); err != nil && err != store.ErrNotFound { //nolint:errorlint // It comes bare.
			h.Errorf("%s with a lifetime of %v: %v", name, store.MinTTL, err)
		}
		_, err := h.s.Del(h.ctx(), "k")
		h.ok("Del", err)
	}
}

// delBounds: 1..MaxKeys keys, and one key out of its bounds spoils them all.
func delBounds(h *storeHarness) {
	h.set("k", "v", time.Minute)
	many := make([]string, store.MaxKeys+1)
	for i := range many {
		many[i] = fmt.Sprintf("many:%d", i)
	}
	many[0] = "k"
	for what, keys := range map[string][]string{
		"no key": {}, "one key too many": many, "an empty key": {"k", ""}, "a long key": {"k", strings.Repeat("k", store.MaxKeyBytes+1)},
	} {
		_, err := h.s.Del(h.ctx(), keys...)
		h.failed("Del of "+what, err, store.NotSent, store.CodeInvalidArgument)
		h.holds("k", "v")
	}
	if n, err := h.s.Del(h.ctx(), many[:store.MaxKeys]...); err != nil || n != 1 {
		h.Errorf("Del of %d keys gives %d, %v, want 1", store.MaxKeys, n, err)
	}
	h.absent("k")
}
