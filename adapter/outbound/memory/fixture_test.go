package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// manualClock is a clock that is set by hand and counts its readings.
type manualClock struct {
	millis   atomic.Int64
	readings atomic.Int64
}

func newManualClock() *manualClock {
	c := &manualClock{}
	c.set(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return c
}

func (c *manualClock) set(t time.Time) { c.millis.Store(t.UnixMilli()) }

func (c *manualClock) advance(d time.Duration) { c.millis.Add(d.Milliseconds()) }

// peek is now without being counted as a reading of the limiter.
func (c *manualClock) peek() time.Time { return time.UnixMilli(c.millis.Load()).UTC() }

func (c *manualClock) now() time.Time {
	c.readings.Add(1)
	return c.peek()
}

func newPolicy(t testing.TB, id string, parameters ratelimit.Parameters, maxCost int64) *ratelimit.RateLimitPolicy {
	t.Helper()
	config := ratelimit.RateLimitPolicyConfig{
		ID: ratelimit.PolicyID(id), Revision: 1, Parameters: parameters, MaxCost: maxCost,
		CleanupGrace: time.Second, MaxClockRegression: time.Second, FailurePolicy: ratelimit.FailClosed,
	}
	switch parameters.(type) {
	case ratelimit.FixedWindowParameters:
		config.Algorithm = ratelimit.AlgorithmFixedWindow
	case ratelimit.SlidingWindowCounterParameters:
		config.Algorithm = ratelimit.AlgorithmSlidingWindowCounter
	case ratelimit.TokenBucketParameters:
		config.Algorithm = ratelimit.AlgorithmTokenBucket
	case ratelimit.GCRAParameters:
		config.Algorithm = ratelimit.AlgorithmGCRA
	case ratelimit.SlidingWindowLogParameters:
		config.Algorithm = ratelimit.AlgorithmSlidingWindowLog
	}
	p, err := ratelimit.NewRateLimitPolicy(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newLimiter(t testing.TB, maxKeys int, clock func() time.Time, policies ...*ratelimit.RateLimitPolicy) *EdgeRateLimiter {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewEdgeRateLimiter(Config{Policies: set, Clock: clock, MaxKeys: maxKeys, UnavailableRetryAfter: 250 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func subjectOf(t testing.TB, n int) ratelimit.SubjectDigest {
	t.Helper()
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	d, err := ratelimit.ParseSubjectDigest(hex.EncodeToString(sum[:]))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// farAway is a deadline after every clock that these tests set.
var farAway = time.Date(2108, 1, 1, 0, 0, 0, 0, time.UTC)

func evaluate(t testing.TB, l *EdgeRateLimiter, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, cost int64) ratelimit.Outcome {
	t.Helper()
	outcome, err := l.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subject, Cost: cost, Deadline: farAway})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func full(p *ratelimit.RateLimitPolicy) ratelimit.Outcome {
	return ratelimit.Unavailable{PolicyID: p.ID(), RetryAfter: 250 * time.Millisecond, Category: ratelimit.UnavailableCapacity}
}

// ask is the question about one unit for a subject that Evaluate would ask.
func (l *EdgeRateLimiter) ask(p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) ask {
	c := l.compiled.get(p.ID())
	a := ask{policy: c, name: c.pad.name(&subject), deadline: farAway, cost: 1}
	a.hash = l.states.naming.hash(a.name)
	return a
}

// verify holds every shard to its invariants, and the budget to their sum.
func verify(t testing.TB, l *EdgeRateLimiter) {
	t.Helper()
	held := 0
	for i := range l.states.shards {
		s := &l.states.shards[i]
		s.mu.Lock()
		held += len(s.table.entries)
		verifyTable(t, &s.table)
		places := map[int64]bool{}
		for _, place := range s.logs.free {
			if places[place] || s.logs.rings[place].slots != nil {
				t.Errorf("shard %d: place %d is free twice or holds memory", i, place)
			}
			places[place] = true
		}
		for position := range s.table.entries {
			e := &s.table.entries[position]
			if e.state.logged() {
				if places[e.state.count] || s.logs.rings[e.state.count].count == 0 {
					t.Errorf("shard %d: entry %d has the place %d, which is another's or empty", i, position, e.state.count)
				}
				places[e.state.count] = true
			}
			if own := l.states.shardOf(l.states.naming.hash(e.name)); own != i {
				t.Errorf("shard %d: entry %d belongs to shard %d", i, position, own)
			}
		}
		if len(places) != len(s.logs.rings) {
			t.Errorf("shard %d: %d logs, of which %d are held or free", i, len(s.logs.rings), len(places))
		}
		if earliest := s.table.earliest(); s.earliest.Load() != earliest {
			t.Errorf("shard %d: earliest %d, want %d", i, s.earliest.Load(), earliest)
		}
		s.mu.Unlock()
	}
	if held != l.LiveKeys() {
		t.Errorf("%d states held, LiveKeys says %d", held, l.LiveKeys())
	}
}

// verifyTable holds a table to its invariants: each entry is found from its home, nothing else is in the
// index, which has room, and the order is a heap over all.
func verifyTable(t testing.TB, table *table) {
	t.Helper()
	n := len(table.entries)
	if len(table.order) != n || len(table.places) != n || 4*n > 3*len(table.index) || len(table.index)&(len(table.index)-1) != 0 {
		t.Errorf("%d entries, %d in order, %d places, %d slots", n, len(table.order), len(table.places), len(table.index))
	}
	used := 0
	for _, s := range table.index {
		if s != 0 {
			used++
		}
	}
	if used != n {
		t.Errorf("%d entries, %d slots in use", n, used)
	}
	for position := range table.entries {
		e := &table.entries[position]
		if at, ok := table.seek(table.naming.hash(e.name), &e.name); !ok || int(at) != position {
			t.Errorf("entry %d is found at %d, %t", position, at, ok)
		}
		place := table.places[position]
		if int(table.order[place]) != position {
			t.Errorf("entry %d says place %d, which holds %d", position, place, table.order[place])
		}
		if place > 0 && table.expiry(int(place-1)/2) > e.state.expiresAt {
			t.Errorf("entry %d expires before the one above it", position)
		}
	}
}
