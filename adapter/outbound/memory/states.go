package memory

import (
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// states are the states of a limiter, and of all that were made of it by WithPolicies.
type states struct {
	naming naming
	clock  clock
	shards []shard
	budget *budget
}

func newStates(maxKeys int, given func() time.Time) *states {
	s := &states{
		naming: newNaming(), clock: newClock(given), shards: make([]shard, shardsFor(maxKeys)),
		budget: &budget{most: int64(maxKeys)},
	}
	for i := range s.shards {
		s.shards[i].init(&s.naming, s.budget)
	}
	return s
}

const (
	fewestShards = 64
	mostShards   = 1024
	keysPerShard = 512
)

// shardsFor gives a power of two: enough that locks are seldom contended and that a shard's
// rebuilding is short, few enough to look at all of them in one call.
func shardsFor(keys int) int {
	n := fewestShards
	for n < mostShards && n*keysPerShard < keys {
		n *= 2
	}
	return n
}

// ask is one question on its way through the shards, and the decision once it has been made.
type ask struct {
	policy   *compiled
	name     name
	hash     uint64
	deadline time.Time
	cost     int64
	decision algorithm.Decision
}

// verdict says how a shard dealt with a question.
type verdict uint8

const (
	// verdictDecided: the decision stands.
	verdictDecided verdict = iota
	// verdictDeadline: the deadline was over at the clock reading; nothing was decided.
	verdictDeadline
	// verdictFull: a new state was needed and there was no room for it; nothing was decided.
	verdictFull
)

// decide decides without an allocation, unless a shard has to grow or shrink.
func (s *states) decide(a *ask) verdict {
	own := s.shardOf(a.hash)
	r := s.shards[own].decide(&s.clock, a, false)
	if r.verdict == verdictFull {
		// The place of an expired state anywhere is taken over, not freed and taken: so one search is
		// enough, whatever others do meanwhile.
		if !s.takeOver(own, r.now) {
			return verdictFull
		}
		r = s.shards[own].decide(&s.clock, a, true)
	}
	if r.turn != 0 {
		s.shards[(own+r.turn)&(len(s.shards)-1)].sweep(r.now)
	}
	return r.verdict
}

// shardOf takes bits of the hash that a shard's index does not use.
func (s *states) shardOf(hash uint64) int {
	return int(hash >> 48 & uint64(len(s.shards)-1)) //nolint:gosec // G115: below mostShards.
}

// takeOver looks through all shards, beginning with one, for an expired state, removes it and keeps
// its place in the budget. Shards are locked one at a time, and only where one has expired.
func (s *states) takeOver(first int, now int64) bool {
	for i := range s.shards {
		if s.shards[(first+i)&(len(s.shards)-1)].evictOne(now) {
			return true
		}
	}
	return false
}
