// Package quiet keeps a log short that tells of things which happen in masses: a store that is down fails
// everything, and the log must not be what falls next.
//
// It logs nothing itself and starts nothing. A Throttle is safe for concurrent use.
package quiet

import (
	"sync"
	"time"
)

// For is how long the same thing is not told again.
const For = 10 * time.Second

// Throttle admits each key at most once in For. It remembers every key that it was asked about, so keys
// are of a closed set. Its constructor is New.
type Throttle[K comparable] struct {
	now func() time.Time

	mu   sync.Mutex
	last map[K]*told
}

type told struct {
	since      time.Time
	suppressed int64
}

// New makes a throttle that has admitted nothing. now reads the clock, time.Now but in tests.
func New[K comparable](now func() time.Time) *Throttle[K] {
	return &Throttle[K]{now: now, last: make(map[K]*told)}
}

// Admit reports whether to tell now, and if so how often that was not told since the last time.
func (t *Throttle[K]) Admit(key K) (suppressed int64, tell bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.last[key]
	if last == nil {
		t.last[key] = &told{since: now}
		return 0, true
	}
	if now.Sub(last.since) < For {
		last.suppressed++
		return 0, false
	}
	suppressed = last.suppressed
	last.since, last.suppressed = now, 0
	return suppressed, true
}
