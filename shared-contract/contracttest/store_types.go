package contracttest

import (
	"context"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func storeTypeTests() []storeTest {
	return []storeTest{
		{name: "ForeignTypeIsRefused", needs: []StoreCapability{StorePut}, run: foreignTypeIsRefused},
		{name: "ForeignTypeIsRaised", needs: []StoreCapability{StorePut, StoreRaise}, run: foreignTypeIsRaised},
		{name: "ForeignTypeIsReplaced", needs: []StoreCapability{StorePut, StoreTTL}, run: foreignTypeIsReplaced},
		{name: "ProgramsMeetForeignTypes", needs: []StoreCapability{StorePut}, run: programsMeetForeignTypes},
	}
}

// foreignTypeIsRefused by what reads a value, and left as it is.
func foreignTypeIsRefused(h *storeHarness) {
	h.b.PutHash(h, "k")
	for range 2 {
		for _, m := range keyedMethods() {
			switch m.name {
			case "Get", "GetSet":
				h.failed(m.name, m.call(h.ctx(), h.s, "k"), store.Mismatched, store.CodeWrongType)
			}
		}
		if stored, err := h.s.SetNX(h.ctx(), "k", "v", time.Minute); err != nil || stored {
			h.Fatalf("SetNX gives %v, %v", stored, err)
		}
		_, err := h.s.Get(h.ctx(), "k")
		h.failed("Get after SetNX", err, store.Mismatched, store.CodeWrongType)
	}
	if n, err := h.s.Del(h.ctx(), "k"); err != nil || n != 1 {
		h.Errorf("Del gives %d, %v", n, err)
	}
	h.absent("k")
}

// foreignTypeIsRaised by the read of a program that does not judge it.
func foreignTypeIsRaised(h *storeHarness) {
	h.b.PutHash(h, "k")
	for range 2 {
		for _, m := range keyedMethods() {
			switch m.name {
			case "IncrBy", "Eval":
				h.failed(m.name, m.call(h.ctx(), h.s, "k"), store.Mismatched, store.CodeWrongType)
			}
		}
	}
	_, err := h.s.Get(h.ctx(), "k")
	h.failed("Get", err, store.Mismatched, store.CodeWrongType)
}

// foreignTypeIsReplaced by Set, with the lifetime that it names.
func foreignTypeIsReplaced(h *storeHarness) {
	h.b.PutHash(h, "k")
	if ttl := h.b.TTL(h, "k"); ttl != -1 {
		h.Fatalf("the backend placed a hash that lives for %d ms", ttl)
	}
	h.set("k", "v", time.Minute)
	h.holds("k", "v")
	h.lives("k", time.Minute)
}

// programsMeetForeignTypes: each decides for itself what to say of them, and changes nothing.
func programsMeetForeignTypes(h *storeHarness) {
	h.b.PutText(h, "text", "v")
	reply, err := evalFixedWindow(h.ctx(), h.s, "text", int64(0))
	if err != nil || reply.At(0) != store.Text("STATE_INCOMPATIBLE") {
		h.Errorf("a rate program on a string gives %v, %v", reply, err)
	}
	h.holds("text", "v")
}

// evalFixedWindow evaluates a fixed window of 10 per hour at cost 1.
func evalFixedWindow(ctx context.Context, s store.Store, key string, clock any) (store.Reply, error) {
	return s.Eval(ctx, store.RateFixedWindowV1, []string{key},
		[]any{"1:fw:1:contract", int64(10), "3600000", int64(60_000), "2000", int64(1), clock})
}
