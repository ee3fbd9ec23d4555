package cacheredis

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// gatedLimiter has calls wait in the store until the gate opens.
func gatedLimiter(t *testing.T, slots int) (l *EdgeRateLimiter, f *fakeStore, open func()) {
	t.Helper()
	gate := make(chan struct{})
	f = storeThat(func(context.Context) (store.Reply, error) {
		<-gate
		return firstAllowed.reply(), nil
	})
	l = limiterFor(t, f, func(c *LimiterConfig) { c.MaxInFlight = slots })
	open = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	return l, f, open
}

// TestAdmission: evaluations beyond the slots are refused at once; a slot is free again when its
// command has ended, and not when its caller has gone.
func TestAdmission(t *testing.T) {
	t.Parallel()
	l, f, open := gatedLimiter(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	outcomes := make(chan ratelimit.Outcome, 2)
	for range 2 {
		go func() {
			outcome, _ := l.Evaluate(ctx, request(t)) // A nil outcome fails below.
			outcomes <- outcome
		}()
	}
	eventually(t, "both slots are taken", func() bool { return len(f.asked()) == 2 })
	cancel()
	if l.InFlight() != 2 {
		t.Fatalf("%d in flight", l.InFlight())
	}
	for range 3 {
		if diff := cmp.Diff(unavailable(ratelimit.UnavailableAdmission), evaluate(t, l)); diff != "" {
			t.Errorf("outcome (-want +got):\n%s", diff)
		}
	}
	if len(f.asked()) != 2 {
		t.Errorf("%d calls", len(f.asked()))
	}
	open()
	for range 2 {
		if outcome := <-outcomes; !ratelimit.Allows(outcome) {
			t.Errorf("outcome %v", outcome)
		}
	}
	if l.InFlight() != 0 {
		t.Errorf("%d in flight", l.InFlight())
	}
	if outcome := evaluate(t, l); !ratelimit.Allows(outcome) {
		t.Errorf("a free slot: %v", outcome)
	}
}

// TestSlotIsFreeAfterPanic of a store: it must not be lost.
func TestSlotIsFreeAfterPanic(t *testing.T) {
	t.Parallel()
	l := limiterFor(t, storeThat(func(context.Context) (store.Reply, error) { panic("store") }))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = l.Evaluate(t.Context(), request(t))
	}()
	if l.InFlight() != 0 {
		t.Errorf("%d in flight", l.InFlight())
	}
}

// TestDrain refuses new evaluations at once and waits for those in flight.
func TestDrain(t *testing.T) {
	t.Parallel()
	l, f, open := gatedLimiter(t, 2)
	outcomes := make(chan ratelimit.Outcome, 1)
	go func() {
		outcome, _ := l.Evaluate(t.Context(), request(t)) // A nil outcome fails below.
		outcomes <- outcome
	}()
	eventually(t, "one is in flight", func() bool { return len(f.asked()) == 1 })

	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Drain(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain without time: %v", err)
	}
	if diff := cmp.Diff(unavailable(ratelimit.UnavailableClosed), evaluate(t, l)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	drained := make(chan error, 1)
	go func() { drained <- l.Drain(t.Context()) }()
	select {
	case err := <-drained:
		t.Errorf("Drain did not wait: %v", err)
	case <-time.After(5 * time.Millisecond): // Shows what it can; correctness does not rest on it.
	}
	open()
	if err := <-drained; err != nil {
		t.Errorf("Drain: %v", err)
	}
	if outcome := <-outcomes; !ratelimit.Allows(outcome) {
		t.Errorf("outcome of the one in flight: %v", outcome)
	}
	if err := l.Drain(t.Context()); err != nil {
		t.Errorf("Drain again: %v", err)
	}
}

// TestDrainIdle: nothing in flight, nothing to wait for.
func TestDrainIdle(t *testing.T) {
	t.Parallel()
	l := limiterFor(t, storeAnswers(firstAllowed.reply(), nil))
	if err := l.Drain(t.Context()); err != nil {
		t.Errorf("Drain: %v", err)
	}
	if diff := cmp.Diff(unavailable(ratelimit.UnavailableClosed), evaluate(t, l)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}
