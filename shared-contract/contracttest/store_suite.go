package contracttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// storeTest is one behaviour of a store.
type storeTest struct {
	name  string
	needs []StoreCapability
	run   func(h *storeHarness)
}

// storeTests lists the whole contract of a store, one group per file.
func storeTests() []storeTest {
	return slices.Concat(
		storeValueTests(), storeBoundTests(), storeLifetimeTests(), storeIntegerTests(), storeTypeTests(),
		storeProgramTests(), storeCallTests(), storeConcurrencyTests(),
	)
}

// RunStore holds an implementation or a decorator to the contract of store.Store.
func RunStore(t *testing.T, factory StoreFactory) {
	t.Helper()
	probe := factory(t)
	probe.check(t)
	for _, c := range StoreCapabilities() {
		if reason, missing := probe.Missing[c]; missing {
			t.Logf("the backend cannot %s: %s", c, reason)
		}
	}
	var left []string
	for _, test := range storeTests() {
		if slices.ContainsFunc(test.needs, func(c StoreCapability) bool { return !probe.can(c) }) {
			left = append(left, test.name)
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			if !probe.Serial {
				t.Parallel()
			}
			b := factory(t)
			test.run(&storeHarness{T: t, b: b, s: b.Store})
		})
	}
	if len(left) > 0 {
		t.Logf("not tested: %s", strings.Join(left, ", "))
	}
}

// storeHarness is one subtest with its backend.
type storeHarness struct {
	*testing.T
	b *StoreBackend
	s store.Store
}

// storePatience is how long one call may take on a machine under load.
const storePatience = 20 * time.Second

// ctx has a deadline, as every call needs one.
func (h *storeHarness) ctx() context.Context {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	h.Cleanup(cancel)
	return ctx
}

// ok fails the subtest at an error.
func (h *storeHarness) ok(what string, err error) {
	h.Helper()
	if err != nil {
		h.Fatalf("%s: %v", what, err)
	}
}

func (h *storeHarness) set(key, value string, ttl time.Duration) {
	h.Helper()
	h.ok("Set", h.s.Set(h.ctx(), key, value, ttl))
}

// holds requires a value at a key.
func (h *storeHarness) holds(key, want string) {
	h.Helper()
	got, err := h.s.Get(h.ctx(), key)
	if err != nil || got != want {
		h.Fatalf("Get gives %.80q, %v, want %.80q", got, err, want)
	}
}

// absent requires that there is no value at a key, which comes bare.
func (h *storeHarness) absent(key string) {
	h.Helper()
	got, err := h.s.Get(h.ctx(), key)
	if got != "" || err != store.ErrNotFound { //nolint:errorlint // It comes bare.
		h.Fatalf("Get gives %.80q, %v, want a bare ErrNotFound", got, err)
	}
}

// failed requires an *store.Error with this certainty and code.
func (h *storeHarness) failed(what string, err error, certainty store.Certainty, code store.Code) {
	h.Helper()
	var failure *store.Error
	switch {
	case !errors.As(err, &failure):
		h.Errorf("%s: %v, want %v (%v)", what, err, code, certainty)
	case failure.Certainty != certainty || failure.Code != code:
		h.Errorf("%s: %v, want %v (%v)", what, err, code, certainty)
	case failure.Op == "":
		h.Errorf("%s: an error without an operation: %v", what, err)
	}
}

// lives requires that a key has about this lifetime; exactly where the clock stands still.
func (h *storeHarness) lives(key string, want time.Duration) {
	h.Helper()
	slack := storePatience.Milliseconds()
	if h.b.SetTime != nil {
		slack = 0
	}
	got := h.b.TTL(h, key)
	if got > want.Milliseconds() || got < max(want.Milliseconds()-slack, 0) {
		h.Fatalf("the key lives for %d ms, want %v", got, want)
	}
}

// storeMethod is one method of a store on a key, for what holds for all of them.
type storeMethod struct {
	name string
	call func(ctx context.Context, s store.Store, key string) error
}

// keyedMethods are those that take a key.
func keyedMethods() []storeMethod {
	return []storeMethod{
		{"Get", func(ctx context.Context, s store.Store, key string) error { _, err := s.Get(ctx, key); return err }},
		{"Set", func(ctx context.Context, s store.Store, key string) error { return s.Set(ctx, key, "v", time.Minute) }},
		{"SetNX", func(ctx context.Context, s store.Store, key string) error {
			_, err := s.SetNX(ctx, key, "v", time.Minute)
			return err
		}},
		{"GetSet", func(ctx context.Context, s store.Store, key string) error {
			_, err := s.GetSet(ctx, key, "v", time.Minute)
			return err
		}},
		{"IncrBy", func(ctx context.Context, s store.Store, key string) error {
			_, err := s.IncrBy(ctx, key, 1, time.Minute)
			return err
		}},
		{"Del", func(ctx context.Context, s store.Store, key string) error { _, err := s.Del(ctx, key); return err }},
		{"Eval", func(ctx context.Context, s store.Store, key string) error {
			_, err := s.Eval(ctx, store.StoreIncrByV1, []string{key}, []any{int64(1), int64(60_000)})
			return err
		}},
	}
}
