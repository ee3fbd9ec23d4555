package quiet

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestThrottle(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	throttle := New[string](func() time.Time { return now })
	for i, step := range []struct {
		after      time.Duration
		key        string
		suppressed int64
		tell       bool
	}{
		{0, "a", 0, true},
		{0, "a", 0, false},
		{0, "b", 0, true},
		{For - 1, "a", 0, false},
		{1, "a", 2, true},
		{0, "a", 0, false},
		{0, "b", 0, true},
		{2 * For, "a", 1, true},
		{For, "a", 0, true},
	} {
		now = now.Add(step.after)
		if suppressed, tell := throttle.Admit(step.key); suppressed != step.suppressed || tell != step.tell {
			t.Errorf("step %d: %d, %v, want %d, %v", i, suppressed, tell, step.suppressed, step.tell)
		}
	}
}

// TestThrottleTogether: of many at once one is told, and the others are counted.
func TestThrottleTogether(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	throttle := New[int](func() time.Time { return time.Unix(0, clock.Load()) })
	var told atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, tell := throttle.Admit(1); tell {
				told.Add(1)
			}
		})
	}
	all.Wait()
	clock.Store(int64(For))
	if suppressed, tell := throttle.Admit(1); told.Load() != 1 || suppressed != 99 || !tell {
		t.Errorf("told %d times, then %d suppressed, %v", told.Load(), suppressed, tell)
	}
}
