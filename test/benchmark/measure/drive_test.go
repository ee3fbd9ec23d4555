package measure

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestDriveCountsWhatWasDecided(t *testing.T) {
	t.Parallel()
	var calls, warm atomic.Int64
	broken := errors.New("broken")
	tally, err := Drive(t.Context(), Load{Callers: 3, Keys: 3, WarmUp: time.Millisecond, Duration: 5 * time.Millisecond, Latency: true},
		func(context.Context, int) (bool, error) {
			switch calls.Add(1) % 3 {
			case 0:
				return true, nil
			case 1:
				return false, nil
			}
			return false, broken
		}, func() error {
			warm.Store(calls.Load())
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if sum := tally.Allowed + tally.Denied + tally.Failed; sum != calls.Load()-warm.Load() || warm.Load() == 0 {
		t.Errorf("%d counted of %d calls, %d of them to warm up", sum, calls.Load(), warm.Load())
	}
	if tally.Latency.TotalCount() != tally.Decisions()+tally.Failed || !errors.Is(tally.FirstError, broken) || tally.Elapsed < 5*time.Millisecond {
		t.Errorf("%+v", tally)
	}
}

func TestDriveWithoutLatencyCountsEveryCall(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	tally, err := Drive(t.Context(), Load{Callers: 2, Keys: 1, Duration: time.Millisecond}, func(_ context.Context, key int) (bool, error) {
		calls.Add(1)
		return key == 0, nil
	}, nil)
	if err != nil || tally.Allowed != calls.Load() || tally.Latency != nil {
		t.Errorf("%+v of %d calls, %v", tally, calls.Load(), err)
	}
}

func TestDriveRefuses(t *testing.T) {
	t.Parallel()
	allow := func(context.Context, int) (bool, error) { return true, nil }
	for name, load := range map[string]Load{
		"no callers": {Keys: 1, Duration: 1}, "no keys": {Callers: 1, Duration: 1}, "no time": {Callers: 1, Keys: 1},
		"too many keys": {Callers: 1, Keys: 1 << 32, Duration: 1}, "a warm-up below 0": {Callers: 1, Keys: 1, Duration: 1, WarmUp: -1},
	} {
		if _, err := Drive(t.Context(), load, allow, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	load := Load{Callers: 1, Keys: 1, Duration: time.Millisecond}
	if _, err := Drive(t.Context(), load, func(context.Context, int) (bool, error) { return false, errors.New("no") }, nil); err == nil {
		t.Error("a load in which nothing was decided is accepted")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Drive(ended, load, allow, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was ended: %v", err)
	}
	broken := errors.New("broken")
	if _, err := Drive(t.Context(), load, allow, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("what fails between: %v", err)
	}
}

// Each key is chosen about as often as each other, and none out of range.
func TestChooserIsEven(t *testing.T) {
	t.Parallel()
	const keys, each = 100, 2000
	for seed := range uint64(4) {
		c := newChooser(seed, keys)
		var times [keys]int
		for range keys * each {
			times[c.next()]++
		}
		for key, n := range times {
			if n < each*8/10 || n > each*12/10 {
				t.Errorf("seed %d: key %d %d times, want about %d", seed, key, n, each)
			}
		}
	}
}

func TestChoosersDiffer(t *testing.T) {
	t.Parallel()
	a, b := newChooser(0, 1_000_000), newChooser(1, 1_000_000)
	equal := 0
	for range 1000 {
		if a.next() == b.next() {
			equal++
		}
	}
	if equal > 10 {
		t.Errorf("two callers chose the same key %d times in 1000", equal)
	}
}

func TestVisitAsksForEachKeyOnce(t *testing.T) {
	t.Parallel()
	var times [1000]atomic.Int64
	if err := Visit(t.Context(), 8, len(times), func(_ context.Context, key int) (bool, error) {
		times[key].Add(1)
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	for key := range times {
		if n := times[key].Load(); n != 1 {
			t.Errorf("key %d was asked for %d times", key, n)
		}
	}
	broken := errors.New("broken")
	if err := Visit(t.Context(), 8, len(times), func(_ context.Context, key int) (bool, error) {
		if key == 500 {
			return false, broken
		}
		return true, nil
	}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Visit(ended, 8, 10, func(context.Context, int) (bool, error) { return true, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a visit that was ended: %v", err)
	}
}
