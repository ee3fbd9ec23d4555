package denialcache

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostWays is the number of places in a set, of which there may be fewer where all of the table has.
	mostWays = 8
	// writers is the number of locks over which sets are spread.
	writers = 64
)

// table holds claims in sets of places. Reading it takes no lock: a claim does not change, and whatever a
// reader finds at a place is judged by itself.
type table struct {
	seed   maphash.Seed
	ways   int
	sets   uint64
	places []place
	shards [writers]shard
	held   atomic.Int64
}

// place holds a claim. mark is a part of its key's hash, so that a reader need not look at claims about
// others; it may be that of the claim before for a moment, and then the claim is not found.
type place struct {
	mark  atomic.Uint64
	claim atomic.Pointer[claim]
}

// shard is the lock of those who write to some of the sets.
type shard struct {
	mu sync.Mutex
	_  [56]byte // keeps the locks of neighbours on cache lines of their own
}

func newTable(entries int) *table {
	ways := min(entries, mostWays)
	sets := entries / ways
	return &table{seed: maphash.MakeSeed(), ways: ways, sets: uint64(sets), places: make([]place, sets*ways)} //nolint:gosec // G115: at most MostEntries.
}

// hash mixes a key with a seed of this process: callers choose digests.
func (t *table) hash(k *key) uint64 {
	const odd = 0x9e3779b97f4a7c15 // spreads the policies of one subject over the sets
	return maphash.Bytes(t.seed, k.digest[:]) + odd*uint64(k.policy)
}

// set gives the places of a hash and the lock of those who write there.
func (t *table) set(hash uint64) ([]place, *sync.Mutex) {
	high, _ := bits.Mul64(hash, t.sets)
	i := int(high) //nolint:gosec // G115: below sets.
	return t.places[i*t.ways : (i+1)*t.ways], &t.shards[i%writers].mu
}

// find gives a claim that denies a cost at now, or nil.
func (t *table) find(hash uint64, k *key, cost int64, now time.Duration) *claim {
	places, _ := t.set(hash)
	for i := range places {
		p := &places[i]
		if p.mark.Load() != hash {
			continue
		}
		if c := p.claim.Load(); c != nil && c.answers(k, cost, now) {
			if !c.asked.Load() { // Where many ask, only the first one writes.
				c.asked.Store(true)
			}
			return c
		}
	}
	return nil
}

// keep puts a claim into its set, in the place of the one about the same subject if there is one and the
// new one prevails.
func (t *table) keep(hash uint64, made *claim, now time.Duration, prevail func(held, made *claim, now time.Duration) *claim) {
	places, mu := t.set(hash)
	mu.Lock()
	defer mu.Unlock()
	for i := range places {
		if held := places[i].claim.Load(); held != nil && held.key == made.key {
			if better := prevail(held, made, now); better != held {
				places[i].claim.Store(better)
			}
			return
		}
	}
	p := choose(places, now)
	if p.claim.Load() == nil {
		t.held.Add(1)
	}
	p.claim.Store(made)
	p.mark.Store(hash)
}

// choose gives the place that a new claim takes: an empty one, or else that of one that has ended, or
// else of those that were not asked for the one that ends first. Where all were asked, all begin anew.
func choose(places []place, now time.Duration) *place {
	var gone *place
	var first time.Duration
	for i := range places {
		c := places[i].claim.Load()
		if c == nil || c.until <= now {
			return &places[i]
		}
		if !c.asked.Load() && (gone == nil || c.until < first) {
			gone, first = &places[i], c.until
		}
	}
	if gone != nil {
		return gone
	}
	gone = &places[0]
	for i := range places {
		c := places[i].claim.Load()
		c.asked.Store(false)
		if c.until < gone.claim.Load().until {
			gone = &places[i]
		}
	}
	return gone
}
