package contracttest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

const (
	storeCallers     = 32
	storeCallsOfEach = 25
)

func storeConcurrencyTests() []storeTest {
	return []storeTest{
		{name: "ConcurrentIncrBy", run: concurrentIncrBy},
		{name: "ConcurrentSetNX", run: concurrentSetNX},
		{name: "ConcurrentGetSet", run: concurrentGetSet},
		{name: "ConcurrentEval", run: concurrentEval},
	}
}

// together runs f in many goroutines at once.
func (h *storeHarness) together(f func(caller int)) {
	var all sync.WaitGroup
	for caller := range storeCallers {
		all.Go(func() { f(caller) })
	}
	all.Wait()
}

// concurrentIncrBy: no increment is lost or counted twice, and each sum is seen once.
func concurrentIncrBy(h *storeHarness) {
	ctx := h.ctx()
	var seen sync.Map
	h.together(func(int) {
		for range storeCallsOfEach {
			sum, err := h.s.IncrBy(ctx, "n", 3, time.Minute)
			if err != nil {
				h.Errorf("IncrBy: %v", err)
				return
			}
			if _, twice := seen.LoadOrStore(sum, true); twice {
				h.Errorf("the sum %d came twice", sum)
			}
		}
	})
	h.holds("n", fmt.Sprint(3*storeCallers*storeCallsOfEach))
}

// concurrentSetNX: one wins, and its value stands there.
func concurrentSetNX(h *storeHarness) {
	ctx := h.ctx()
	for round := range 5 {
		key := fmt.Sprint("k", round)
		var won atomic.Int64
		var winner atomic.Int64
		h.together(func(caller int) {
			stored, err := h.s.SetNX(ctx, key, fmt.Sprint(caller), time.Minute)
			if err != nil {
				h.Errorf("SetNX: %v", err)
			}
			if stored {
				won.Add(1)
				winner.Store(int64(caller))
			}
		})
		if won.Load() != 1 {
			h.Fatalf("%d callers won", won.Load())
		}
		h.holds(key, fmt.Sprint(winner.Load()))
	}
}

// concurrentGetSet: each value is handed on to one other.
func concurrentGetSet(h *storeHarness) {
	ctx := h.ctx()
	h.set("k", "first", time.Minute)
	var seen sync.Map
	h.together(func(caller int) {
		for i := range storeCallsOfEach {
			before, err := h.s.GetSet(ctx, "k", fmt.Sprintf("%d/%d", caller, i), time.Minute)
			if err != nil {
				h.Errorf("GetSet: %v", err)
				return
			}
			if _, twice := seen.LoadOrStore(before, true); twice {
				h.Errorf("the value %s was given twice", before)
			}
		}
	})
	count := 0
	seen.Range(func(any, any) bool { count++; return true })
	if count != storeCallers*storeCallsOfEach {
		h.Errorf("%d values were handed on, want %d", count, storeCallers*storeCallsOfEach)
	}
}

// concurrentEval: exactly the limit is admitted. Casebook 8.
func concurrentEval(h *storeHarness) {
	ctx := h.ctx()
	var admitted atomic.Int64
	h.together(func(int) {
		for range storeCallsOfEach {
			reply, err := h.s.Eval(ctx, store.RateTokenBucketV1, []string{"k"},
				[]any{"1:tb:1:contract", int64(100), int64(1), int64(3_600_000), int64(60_000), int64(2000), int64(1), int64(0)})
			if err != nil {
				h.Errorf("Eval: %v", err)
				return
			}
			if reply.At(0) == store.Text("ALLOWED") {
				admitted.Add(1)
			}
		}
	})
	if admitted.Load() != 100 {
		h.Errorf("%d were admitted, want 100", admitted.Load())
	}
}
