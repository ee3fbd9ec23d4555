package algorithm

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// subject is one algorithm with its parameters and state, for laws that all of them obey.
type subject struct {
	name   string
	limit  int64
	span   int64 // the length of a window, or the time to fill
	clock  Clock
	decide func(now, cost int64) Decision
	// fork copies parameters and state; its decisions leave the original alone.
	fork func() *subject
	// forget drops the state.
	forget func() *subject
	// stored gives the state in text, its last observed moment, its expiry, and whether it is valid.
	stored func() (text string, last, expiresAt int64, valid bool)
}

func newSubject[S any](name string, limit, span int64, clock Clock, decide func(S, int64, int64) (Decision, S), facts func(S) (last, expiresAt int64, valid bool), state S) *subject {
	s := &subject{name: name, limit: limit, span: span, clock: clock}
	s.decide = func(now, cost int64) Decision {
		d, next := decide(state, now, cost)
		if d.Status != StatusAllowed && !reflect.DeepEqual(next, state) {
			panic(fmt.Sprintf("%s: %+v changed the state", name, d))
		}
		state = next
		return d
	}
	s.fork = func() *subject { return newSubject(name, limit, span, clock, decide, facts, state) }
	s.forget = func() *subject {
		var none S
		return newSubject(name, limit, span, clock, decide, facts, none)
	}
	s.stored = func() (string, int64, int64, bool) {
		last, expiresAt, valid := facts(state)
		return fmt.Sprintf("%+v", state), last, expiresAt, valid
	}
	return s
}

func subjects(limit, window int64, clock Clock) []*subject {
	f := FixedWindow{Limit: limit, WindowMillis: window, Clock: clock}
	c := SlidingCounter{Limit: limit, WindowMillis: window, Clock: clock}
	b := TokenBucket{Capacity: limit, RefillTokens: max(limit/2, 1), RefillPeriodMillis: window, Clock: clock}
	g := GCRA{Limit: max(limit/2, 1), PeriodMillis: window, Burst: limit, Clock: clock}
	l := SlidingLog{Limit: limit, WindowMillis: window, Clock: clock}
	return []*subject{
		newSubject("fixed window", limit, window, clock, f.Decide, func(s FixedWindowState) (int64, int64, bool) {
			return s.LastObserved, s.ExpiresAt, f.Valid(s)
		}, FixedWindowState{}),
		newSubject("sliding counter", limit, window, clock, c.Decide, func(s SlidingCounterState) (int64, int64, bool) {
			return s.LastObserved, s.ExpiresAt, c.Valid(s)
		}, SlidingCounterState{}),
		newSubject("token bucket", limit, b.FillMillis(), clock, b.Decide, func(s TokenBucketState) (int64, int64, bool) {
			return s.LastRefill, s.ExpiresAt, b.Valid(s)
		}, TokenBucketState{}),
		newSubject("gcra", limit, g.FillMillis(), clock, g.Decide, func(s GCRAState) (int64, int64, bool) {
			return s.LastObserved, s.ExpiresAt, g.Valid(s)
		}, GCRAState{}),
		newSubject("sliding log", limit, window, clock, l.Decide, func(s SlidingLogState) (int64, int64, bool) {
			return s.LastObserved, s.ExpiresAt, l.Valid(s)
		}, SlidingLogState{}),
	}
}

// TestLaws drives each algorithm through random traffic, and holds every decision to what all of
// them promise.
func TestLaws(t *testing.T) {
	t.Parallel()
	clock := Clock{GraceMillis: 300, MaxRegressionMillis: 40}
	for _, shape := range [][2]int64{{1, 1}, {1, 7}, {2, 10}, {5, 100}, {10, 97}, {100, 1000}, {1000, 50}} {
		for i, s := range subjects(shape[0], shape[1], clock) {
			rng := rand.New(rand.NewPCG(uint64(i), uint64(shape[1])))
			now := 1_000_000 + rng.Int64N(1000)
			for range 600 {
				now += rng.Int64N(s.span/4 + 2)
				if rng.IntN(8) == 0 {
					now -= rng.Int64N(60)
				}
				if rng.IntN(40) == 0 {
					now += 3 * s.span
				}
				lawful(t, s, now, 1+rng.Int64N(s.limit))
				if t.Failed() {
					return
				}
			}
		}
	}
}

func lawful(t *testing.T, s *subject, now, cost int64) {
	t.Helper()
	before, last, expiresAt, _ := s.stored()
	fail := func(law string, d Decision) {
		t.Helper()
		t.Errorf("%s, limit %d, %s at %d, cost %d: %s: %+v", s.name, s.limit, before, now, cost, law, d)
	}
	// State past its expiry decides exactly as absent state.
	if expiresAt > 0 && now >= expiresAt {
		if stale, fresh := s.fork().decide(now, cost), s.forget().decide(now, cost); stale != fresh {
			fail(fmt.Sprintf("stale state is not as absent (%+v)", fresh), stale)
		}
	}
	d := s.decide(now, cost)
	after, newLast, newExpiry, valid := s.stored()
	switch {
	case d.ServerNowMillis != now || d.Limit != s.limit:
		fail("clock or limit is another", d)
	case d.Remaining < 0 || d.Remaining > s.limit:
		fail("remaining outside 0..limit", d)
	case newLast < last || newExpiry < expiresAt:
		fail("time of the state went back", d)
	}
	if d.Status == StatusClockUnsafe {
		if last-now <= s.clock.MaxRegressionMillis || d.RetryAfterMillis != last-s.clock.MaxRegressionMillis-now || after != before {
			fail("unsafe clock", d)
		}
		return
	}
	if d.EffectiveNowMillis != max(now, last) {
		fail("effective time", d)
	}
	// At reset-at the full limit is there, and not a millisecond earlier.
	if !admits(s, d.ResetAtMillis, s.limit) {
		fail("no full limit at reset-at", d)
	}
	if d.ResetAtMillis > d.EffectiveNowMillis && admits(s, d.ResetAtMillis-1, s.limit) {
		fail("the full limit before reset-at", d)
	}
	if d.Status == StatusAllowed {
		if d.RetryAfterMillis != 0 || !valid || newExpiry < d.ResetAtMillis+s.clock.GraceMillis || newLast != d.EffectiveNowMillis {
			fail("admission", d)
		}
		// What remains is what is admitted next, and not one more.
		if d.Remaining > 0 && !admits(s, now, d.Remaining) || d.Remaining < s.limit && admits(s, now, d.Remaining+1) {
			fail("remaining is not what is left", d)
		}
		return
	}
	if d.Status != StatusDenied || d.RetryAfterMillis < 1 || after != before {
		fail("denial", d)
	}
	// With no other traffic every millisecond before retry-after is denied, and that one is not.
	step := max(d.RetryAfterMillis/200, 1)
	for at := now; at < now+d.RetryAfterMillis; at += step {
		if admits(s, at, cost) {
			fail(fmt.Sprintf("admitted at %d", at), d)
			return
		}
	}
	if admits(s, now+d.RetryAfterMillis-1, cost) || !admits(s, now+d.RetryAfterMillis, cost) {
		fail("retry-after is not exact", d)
	}
}

// admits asks a copy.
func admits(s *subject, now, cost int64) bool {
	return s.fork().decide(now, cost).Status == StatusAllowed
}
