package memory

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// budget counts the states of all shards against their bound.
type budget struct {
	most int64
	held atomic.Int64
	_    [112]byte // keeps what is written often off the cache line of what is only read
}

// take reserves a place and reports whether there was one. It compares and swaps, since an addition
// that is taken back would make others see a bound that is not reached.
func (b *budget) take() bool {
	for {
		held := b.held.Load()
		if held >= b.most {
			return false
		}
		if b.held.CompareAndSwap(held, held+1) {
			return true
		}
	}
}

func (b *budget) give(n int64) { b.held.Add(-n) }

// never is the earliest expiry of an empty shard.
const never = math.MaxInt64

// A call removes at most ownReclaim expired states from its own shard. One call in sweepEvery also
// removes at most sweepReclaim from the shard whose turn it is. Together that is four states for each
// call, well above the one that a call can add.
const (
	ownReclaim   = 2
	sweepEvery   = 8
	sweepReclaim = 16
)

// shard holds a part of the states, behind a lock of its own.
type shard struct {
	mu       sync.Mutex
	calls    uint32       // decisions made; not exact, it wraps around
	earliest atomic.Int64 // the first expiry, which others read without the lock
	table    table
	budget   *budget
	logs     logs
	_        [72]byte // keeps the locks of neighbours on cache lines of their own: 256 bytes in all
}

func (s *shard) init(n *naming, b *budget) {
	s.table.naming = n
	s.budget = b
	s.earliest.Store(never)
}

// reply is a shard's answer to a question, beside the decision.
type reply struct {
	verdict verdict
	now     int64 // the clock reading, ms
	turn    int   // how far on the shard lies that should be swept next; 0 for none
}

// decide reads the clock, decides and stores. placed says that the caller has already reserved a
// place for a new state; one that turns out not to be needed goes back.
func (s *shard) decide(c *clock, a *ask, placed bool) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, late := c.read(a.deadline)
	r := reply{now: now}
	if !late {
		s.evaluate(&r, a, placed)
		return r
	}
	r.verdict = verdictDeadline
	if placed {
		s.budget.give(1)
	}
	return r
}

// evaluate is decide at a time.
func (s *shard) evaluate(r *reply, a *ask, placed bool) {
	var fresh state
	at := &fresh
	position, present := s.table.seek(a.hash, &a.name)
	if present {
		at = &s.table.entries[position].state
	}
	expiresAt := at.expiresAt
	var step algorithm.SlidingLogStep
	if a.policy.logged() {
		a.decision, step = a.policy.decideLog(at, s.logs.entries(at), r.now, a.cost)
	} else {
		a.policy.decide(at, r.now, a.cost, &a.decision)
	}
	if a.decision.Status == algorithm.StatusAllowed {
		switch {
		case present:
			s.move(position, expiresAt)
		case placed || s.budget.take():
			placed = false
			if a.policy.logged() {
				fresh.count = s.logs.open()
			}
			s.table.insert(a.hash, &a.name, fresh)
			s.note()
		default:
			r.verdict = verdictFull
			return
		}
		if a.policy.logged() {
			s.logs.advance(at.count, step, a.policy.log.Limit)
		}
	}
	s.reclaim(r.now, ownReclaim)
	if s.calls++; s.calls%sweepEvery == 0 {
		r.turn = int(s.calls / sweepEvery)
	}
	if placed {
		s.budget.give(1)
	}
}

// move restores the order of expiry where it moved. It never moves back, since an effective time never
// does.
func (s *shard) move(position uint32, from int64) {
	if s.table.entries[position].state.expiresAt != from {
		s.table.sink(int(s.table.places[position]))
		s.note()
	}
}

// note publishes the earliest expiry.
func (s *shard) note() {
	if earliest := s.table.earliest(); s.earliest.Load() != earliest {
		s.earliest.Store(earliest)
	}
}

// sweep removes some expired states, unless another call is at this shard.
func (s *shard) sweep(now int64) {
	if s.earliest.Load() > now || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.reclaim(now, sweepReclaim)
}

// evictOne removes one expired state, if there is any, and leaves its place in the budget reserved.
func (s *shard) evictOne(now int64) bool {
	if s.earliest.Load() > now {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.earliest.Load() > now {
		return false
	}
	s.removeEarliest()
	s.shrink()
	return true
}

// reclaim removes up to most expired states.
func (s *shard) reclaim(now int64, most int) {
	if s.earliest.Load() > now {
		return
	}
	removed := int64(0)
	for range most {
		if s.earliest.Load() > now {
			break
		}
		s.removeEarliest()
		removed++
	}
	s.budget.give(removed)
	s.shrink()
}

func (s *shard) removeEarliest() {
	if gone := s.table.removeEarliest(); gone.state.logged() {
		s.logs.close(gone.state.count)
	}
	s.note()
}

// shrink gives memory back where three quarters of it are unused: what is above twice the need, and so
// all of it where nothing is left.
func (s *shard) shrink() {
	if s.table.sparse() {
		s.table.shrink()
		s.logs.compact(s.table.entries)
	}
}
