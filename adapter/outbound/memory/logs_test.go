package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func contents(r *ring) []algorithm.SlidingLogEntry {
	pieces := r.pieces()
	return slices.Concat(pieces.Older, pieces.Newer)
}

// TestRing: a ring holds what a slice would, never has room for more than the limit, and gives back
// what it does not need.
func TestRing(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(31, 31))
	for _, limit := range []int{1, 2, 3, 4, 5, 9, 50, 1000} {
		var r ring
		var plain []algorithm.SlidingLogEntry
		wrapped := false
		for i := range int64(6000) {
			dead := rng.IntN(min(len(plain), 3) + 1)
			if rng.IntN(200) == 0 {
				dead = len(plain)
			}
			if len(plain) == limit {
				dead = max(dead, 1)
			}
			entry := algorithm.SlidingLogEntry{At: i, Cumulative: i, Cost: 1}
			plain = append(plain[dead:], entry)
			r.advance(algorithm.SlidingLogStep{Dead: dead, Entry: entry}, limit)
			if got := contents(&r); !slices.Equal(got, plain) {
				t.Fatalf("limit %d, step %d: %v, want %v", limit, i, got, plain)
			}
			if n := len(r.slots); n > limit || n > 2*firstRoom && n > 4*len(plain) {
				t.Fatalf("limit %d: room for %d, %d are held", limit, n, len(plain))
			}
			wrapped = wrapped || r.first+r.count > len(r.slots)
		}
		if limit > 2 && !wrapped {
			t.Errorf("limit %d: the ring never went around its end", limit)
		}
	}
}

// A log at the greatest limit takes what the package says, and gives it back when it has expired.
func TestLogMemory(t *testing.T) {
	clock := newManualClock()
	p := newPolicy(t, "p", ratelimit.SlidingWindowLogParameters{Limit: algorithm.MaxSlidingLogLimit, Window: time.Minute}, 1)
	l := newLimiter(t, 100, clock.now, p)
	const subjects = 10
	before := heapInUse()
	for n := range subjects {
		subject := subjectOf(t, n)
		for range algorithm.MaxSlidingLogLimit {
			if o := evaluate(t, l, p, subject, 1); !ratelimit.Allows(o) {
				t.Fatalf("%+v", o)
			}
		}
		if o := evaluate(t, l, p, subject, 1); ratelimit.Allows(o) {
			t.Fatalf("%+v above the limit", o)
		}
	}
	verify(t, l)
	each := (heapInUse() - before) / subjects
	if each < 240_000 || each > 260_000 {
		t.Errorf("a full log takes %d bytes, want about 240,000", each)
	}
	clock.advance(time.Hour)
	for l.LiveKeys() > 1 {
		evaluate(t, l, p, subjectOf(t, 0), 1)
	}
	if left := heapInUse() - before; left > 40_000 {
		t.Errorf("%d bytes are left", left)
	}
	verify(t, l)
}

// TestLogAtInvalidClock: a clock outside its range decides nothing, for a log as for the others.
func TestLogAtInvalidClock(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, "p", ratelimit.SlidingWindowLogParameters{Limit: 1, Window: time.Minute}, 1)
	l := newLimiter(t, 10, newManualClock().now, p)
	for _, now := range []int64{-1, algorithm.MaxNowMillis + 1} {
		var s state
		d, step := l.compiled.get(p.ID()).decideLog(&s, algorithm.SlidingLogEntries{}, now, 1)
		if d != algorithm.Rejected(algorithm.StatusInvalid, now) || step != (algorithm.SlidingLogStep{}) || s.present() {
			t.Errorf("at %d: %+v %+v", now, d, step)
		}
	}
}
