package memory

import (
	"crypto/sha256"
	"math"
	"sync"
	"sync/atomic"
	"time"

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

// key names a state.
type key struct {
	digest [sha256.Size]byte
	policy uint32
}

// logged reports whether the key is that of a log.
func (k key) logged() bool { return k.policy&logMark != 0 }

// entry is a state with its place in the order of expiry.
type entry struct {
	key   key
	place uint32 // its position in shard.order
	state state
}

// never is the earliest expiry of an empty shard.
const never = math.MaxInt64

// ownReclaim and sweepReclaim bound the expired states that a call removes from its own shard and
// from the one whose turn it is. Together they are well above the one state that a call can add.
const (
	ownReclaim   = 2
	sweepReclaim = 6
)

// smallest is the capacity up to which a shard's memory is not worth giving back: a subject that comes
// and goes need not allocate each time.
const smallest = 8

// shard holds a part of the states. Entries lie dense in one slice; index finds them by key; order is
// a heap of their positions by expiry; logs holds what the states of logs have beside them.
type shard struct {
	mu       sync.Mutex
	budget   *budget
	index    map[key]uint32
	entries  []entry
	order    []uint32
	logs     logs
	turn     int // which neighbour's turn it is to be swept
	earliest atomic.Int64
	_        [56]byte // keeps the locks of neighbours on cache lines of their own
}

func (s *shard) init(b *budget) {
	s.budget = b
	s.earliest.Store(never)
}

// reply is a shard's answer to a question.
type reply struct {
	decision algorithm.Decision
	verdict  verdict
	now      int64 // the clock reading, ms
	turn     int   // how far on the shard lies that should be swept next
}

// decide reads the clock, decides and stores. placed says that the caller has already reserved a
// place for a new state; one that turns out not to be needed goes back.
func (s *shard) decide(clock func() time.Time, a *ask, placed bool) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	reading := clock()
	now := reading.UnixMilli()
	r := reply{now: now}
	var before state
	position, present := s.index[a.key]
	if present {
		before = s.entries[position].state
	}
	if !reading.Before(a.deadline) {
		r.verdict = verdictDeadline
	} else {
		var after state
		var step algorithm.SlidingLogStep
		if a.policy.logged() {
			r.decision, step = a.policy.decideLog(s.logs.entries(before.count, present), now, a.cost)
			after = state{last: step.Entry.At, count: before.count, expiresAt: step.ExpiresAt}
		} else {
			r.decision, after = a.policy.decide(before, present, now, a.cost)
		}
		switch {
		case r.decision.Status != algorithm.StatusAllowed:
		case present:
			s.update(position, after)
		case placed || s.budget.take():
			if a.policy.logged() {
				after.count = s.logs.open()
			}
			s.insert(a.key, after)
			placed = false
		default:
			r.verdict = verdictFull
			return r
		}
		if a.policy.logged() && r.decision.Status == algorithm.StatusAllowed {
			s.logs.advance(after.count, step, a.policy.log.Limit)
		}
		s.reclaim(now, ownReclaim)
		s.turn++
		r.turn = s.turn
	}
	if placed {
		s.budget.give(1)
	}
	return r
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
	removed := int64(0)
	for range most {
		if s.earliest.Load() > now {
			break
		}
		s.removeEarliest()
		removed++
	}
	if removed > 0 {
		s.budget.give(removed)
		s.shrink()
	}
}

func (s *shard) insert(k key, after state) {
	if s.index == nil {
		s.index = make(map[key]uint32)
	}
	position := uint32(len(s.entries)) //nolint:gosec // G115: at most MostKeys.
	s.index[k] = position
	s.entries = append(s.entries, entry{key: k, place: position, state: after})
	s.order = append(s.order, position)
	s.rise(int(position))
	s.note()
}

// update stores a state. Its expiry never moves back, since an effective time never does.
func (s *shard) update(position uint32, after state) {
	e := &s.entries[position]
	moved := e.state.expiresAt != after.expiresAt
	e.state = after
	if moved {
		s.sink(int(e.place))
		s.note()
	}
}

// removeEarliest removes the state at the top of the heap. The last entry takes its place in the
// slice, so that the slice stays dense.
func (s *shard) removeEarliest() {
	gone, last := s.order[0], len(s.order)-1
	s.order[0] = s.order[last]
	s.order = s.order[:last]
	if last > 0 {
		s.entries[s.order[0]].place = 0
		s.sink(0)
	}
	if s.entries[gone].key.logged() {
		s.logs.close(s.entries[gone].state.count)
	}
	delete(s.index, s.entries[gone].key)
	if int(gone) != last {
		s.entries[gone] = s.entries[last]
		s.order[s.entries[gone].place] = gone
		s.index[s.entries[gone].key] = gone
	}
	s.entries = s.entries[:last]
	s.note()
}

// shrink gives memory back where three quarters of it are unused: what is above twice the need, and so
// all of it where nothing is left. Maps never shrink by themselves.
func (s *shard) shrink() {
	n := len(s.entries)
	if cap(s.entries) <= smallest || n > cap(s.entries)/4 {
		return
	}
	index := make(map[key]uint32, n)
	entries := make([]entry, n, 2*n)
	copy(entries, s.entries)
	order := make([]uint32, n, 2*n)
	copy(order, s.order)
	for i := range entries {
		index[entries[i].key] = uint32(i)
	}
	s.index, s.entries, s.order = index, entries, order
	s.logs.compact(entries)
}
