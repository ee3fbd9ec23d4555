package memory

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// comparedEvery is the longest time for which elapsed time is added to one reading of the wall clock
	// before the two clocks are compared again: a step of the wall clock shows after that time at most.
	comparedEvery = 100 * time.Millisecond
	// tolerated is how far the clocks may be apart, beyond what the comparison itself may err, without
	// that being taken for a step.
	tolerated = time.Millisecond
	// attempts bounds how often a comparison is made again because something came in between.
	attempts = 4
)

// clock is the wall clock, or the one that was given instead.
type clock struct {
	given func() time.Time // nil for the wall clock
	wall  *wallClock       // nil for a given one
}

func newClock(given func() time.Time) clock {
	if given != nil {
		return clock{given: given}
	}
	return clock{wall: newWallClock()}
}

// read gives the time in ms since the epoch, and whether a deadline is over.
func (c *clock) read(deadline time.Time) (now int64, late bool) {
	if c.given != nil {
		reading := c.given()
		return reading.UnixMilli(), !reading.Before(deadline)
	}
	elapsed, b := time.Since(c.wall.anchor), c.wall.base.Load()
	if elapsed >= b.until || b.apart {
		reading := c.wall.now()
		return reading.UnixMilli(), !reading.Before(deadline)
	}
	// Both clocks have gone alike since the anchor, so it does not matter by which a deadline was set.
	return (b.anchored + int64(elapsed)) / int64(time.Millisecond), elapsed >= deadline.Sub(c.wall.anchor)
}

// wallClock gives the readings of time.Now for about half of their cost: it reads the monotonic clock
// alone, and adds what has elapsed to an earlier reading of both. Its zero value is not usable.
type wallClock struct {
	anchor time.Time // where elapsed time is counted from
	base   atomic.Pointer[baseReading]
	mu     sync.Mutex // held while the clocks are compared
}

// baseReading is a reading of both clocks. It is not changed.
type baseReading struct {
	at    time.Time
	from  time.Duration // when it was taken, counted from the anchor
	until time.Duration // when the clocks are to be compared again, counted from the anchor

	anchored int64 // at, less from, in ns since the epoch, where the clocks are not apart
	apart    bool  // the clocks have not gone alike since the anchor, or show a time that has no such number
}

func newWallClock() *wallClock {
	w := &wallClock{anchor: time.Now()}
	first := baseReading{at: w.anchor, anchored: w.anchor.UnixNano(), apart: !countable(w.anchor)}
	w.base.Store(&first)
	return w
}

// now is a reading of the wall clock that carries the monotonic clock's, as that of time.Now does.
func (w *wallClock) now() time.Time {
	elapsed, b := time.Since(w.anchor), w.base.Load()
	if elapsed >= b.until {
		return w.compare()
	}
	return b.at.Add(elapsed - b.from)
}

// compare compares the clocks, unless another call has just done so, and gives a reading. Callers wait
// for the one that compares, so that no reading is older than the constants say.
func (w *wallClock) compare() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.base.Load()
	if elapsed := time.Since(w.anchor); elapsed < b.until {
		return b.at.Add(elapsed - b.from)
	}
	var before, after time.Duration
	var fresh time.Time
	for range attempts {
		before = time.Since(w.anchor)
		fresh = time.Now()
		after = time.Since(w.anchor)
		if after-before <= tolerated {
			break
		}
	}
	next := b.next(before, fresh, fresh.Sub(w.anchor), after)
	w.base.Store(&next)
	return next.at.Add(after - next.from)
}

// next gives the base for the time that follows, from a fresh reading that was taken at a moment (counted
// from the anchor) between before and after. The base stays where the clocks went alike: a new one
// would be apart from it by what the reading errs, and a clock must not step back by that.
func (b *baseReading) next(before time.Duration, fresh time.Time, at, after time.Duration) baseReading {
	next := *b
	next.until = after + comparedEvery
	passed := fresh.Round(0).Sub(b.at.Round(0))
	if passed < before-b.from-tolerated || passed > after-b.from+tolerated {
		next.at, next.from, next.apart = fresh, at, true
	}
	return next
}

// countable reports whether nanoseconds since the epoch hold a time and are not negative.
func countable(t time.Time) bool { return t.Year() > 1970 && t.Year() < 2200 }
