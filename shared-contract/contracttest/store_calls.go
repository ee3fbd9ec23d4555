package contracttest

import (
	"context"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func storeCallTests() []storeTest {
	return []storeTest{
		{name: "SaysWhatItIs", run: saysWhatItIs},
		{name: "Ping", run: ping},
		{name: "NoDeadline", run: noDeadline},
		{name: "EndedContexts", run: endedContexts},
		{name: "Closed", run: closed},
		{name: "ErrorsHoldNoKey", run: errorsHoldNoKey},
	}
}

func saysWhatItIs(h *storeHarness) {
	if h.s.Source() != h.b.Source || h.s.Clock() != h.b.Clock {
		h.Errorf("source %v and clock %v, want %v and %v", h.s.Source(), h.s.Clock(), h.b.Source, h.b.Clock)
	}
}

func ping(h *storeHarness) {
	for range 2 {
		h.ok("Ping", h.s.Ping(h.ctx()))
	}
}

// everyMethod is keyedMethods and Ping.
func everyMethod() []storeMethod {
	return append(keyedMethods(), storeMethod{"Ping", func(ctx context.Context, s store.Store, _ string) error { return s.Ping(ctx) }})
}

// noDeadline: nobody waits without an end. Casebook 10.
func noDeadline(h *storeHarness) {
	for _, m := range everyMethod() {
		h.failed(m.name, m.call(context.Background(), h.s, "k"), store.NotSent, store.CodeInvalidArgument)
	}
	h.absent("k")
}

// endedContexts: who is gone already sends nothing.
func endedContexts(h *storeHarness) {
	canceled, cancel := context.WithTimeout(context.Background(), time.Hour)
	cancel()
	late, cancelLate := context.WithTimeout(context.Background(), -time.Second)
	defer cancelLate()
	for _, m := range everyMethod() {
		h.failed(m.name+" canceled", m.call(canceled, h.s, "k"), store.NotSent, store.CodeCanceled)
		h.failed(m.name+" late", m.call(late, h.s, "k"), store.NotSent, store.CodeDeadline)
	}
	h.absent("k")
}

// closed: every call is refused after Close, and a second Close does nothing.
func closed(h *storeHarness) {
	h.set("k", "v", time.Minute)
	for range 2 {
		if err := h.s.Close(); err != nil {
			h.Errorf("Close: %v", err)
		}
	}
	for _, m := range everyMethod() {
		h.failed(m.name, m.call(h.ctx(), h.s, "k"), store.NotSent, store.CodeClosed)
	}
	if h.s.Source() != h.b.Source {
		h.Error("a closed store forgot where its state was")
	}
}

// errorsHoldNoKey: an error's text is for logs, and keys and values are not.
func errorsHoldNoKey(h *storeHarness) {
	const key, value = "kestrel", "vulture"
	h.set(key, value, time.Minute)
	_, notInteger := h.s.IncrBy(h.ctx(), key, 1, time.Minute)
	_, longKey := h.s.Get(h.ctx(), strings.Repeat(key, 100))
	_, badArgument := h.s.Eval(h.ctx(), store.StoreIncrByV1, []string{key}, []any{[]byte(value), int64(1)})
	for _, err := range []error{
		notInteger, longKey, badArgument, h.s.Set(h.ctx(), key, value, -1), h.s.Set(h.ctx(), key, strings.Repeat(value, 1<<17), time.Minute),
	} {
		if err == nil {
			h.Error("no error")
			continue
		}
		if text := err.Error(); strings.Contains(text, key) || strings.Contains(text, value) {
			h.Errorf("an error holds a key or a value: %.200s", text)
		}
	}
}
