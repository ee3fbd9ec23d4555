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

// verify holds every shard to its invariants, and the budget to their sum.
func verify(t testing.TB, l *EdgeRateLimiter) {
	t.Helper()
	held := 0
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n := len(s.entries)
		held += n
		if len(s.order) != n || len(s.index) != n {
			t.Errorf("shard %d: %d entries, %d in order, %d in index", i, n, len(s.order), len(s.index))
		}
		earliest := int64(never)
		places := map[int64]bool{}
		for _, place := range s.logs.free {
			if places[place] || s.logs.rings[place].slots != nil {
				t.Errorf("shard %d: place %d is free twice or holds memory", i, place)
			}
			places[place] = true
		}
		for position := range s.entries {
			e := &s.entries[position]
			earliest = min(earliest, e.state.expiresAt)
			if e.key.logged() {
				if places[e.state.count] || s.logs.rings[e.state.count].count == 0 {
					t.Errorf("shard %d: entry %d has the place %d, which is another's or empty", i, position, e.state.count)
				}
				places[e.state.count] = true
			}
			if int(s.order[e.place]) != position {
				t.Errorf("shard %d: entry %d says place %d, which holds %d", i, position, e.place, s.order[e.place])
			}
			if s.index[e.key] != uint32(position) {
				t.Errorf("shard %d: entry %d is indexed at %d", i, position, s.index[e.key])
			}
			if e.place > 0 && s.expiry(int(e.place-1)/2) > e.state.expiresAt {
				t.Errorf("shard %d: entry %d expires before the one above it", i, position)
			}
		}
		if len(places) != len(s.logs.rings) {
			t.Errorf("shard %d: %d logs, of which %d are held or free", i, len(s.logs.rings), len(places))
		}
		if s.earliest.Load() != earliest {
			t.Errorf("shard %d: earliest %d, want %d", i, s.earliest.Load(), earliest)
		}
		s.mu.Unlock()
	}
	if held != l.LiveKeys() {
		t.Errorf("%d states held, LiveKeys says %d", held, l.LiveKeys())
	}
}
