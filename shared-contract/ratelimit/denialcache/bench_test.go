package denialcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// constant is a port that has one answer, so that what is measured is the cache.
type constant struct{ outcome ratelimit.Outcome }

func (c constant) Evaluate(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return c.outcome, nil
}

func benchEvaluate(b *testing.B, l *EdgeRateLimiter, request ratelimit.RateLimitRequest, here bool) {
	b.Helper()
	ctx := b.Context()
	if _, err := l.Evaluate(ctx, request); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if o, err := l.Evaluate(ctx, request); err != nil || cached(o) != here {
			b.Fatal(o, err)
		}
	}
}

// BenchmarkDenied is a denial that is answered here.
func BenchmarkDenied(b *testing.B) {
	p := window(b)
	clock := &manual{}
	request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(b, 1), Cost: 1, Deadline: farAway}
	b.Run("no-clock", func(b *testing.B) {
		benchEvaluate(b, newCache(b, constant{denial(p, 5*time.Second)}, clock.now, 1024, p), request, true)
	})
	b.Run("clock", func(b *testing.B) {
		// The system's clock, read and not believed: the claim must outlast the benchmark.
		read := func() time.Time {
			_ = time.Now()
			return clock.now()
		}
		benchEvaluate(b, newCache(b, constant{denial(p, 5*time.Second)}, read, 1024, p), request, true)
	})
	b.Run("parallel", func(b *testing.B) {
		l := newCache(b, constant{denial(p, 5*time.Second)}, clock.now, 1024, p)
		ctx := b.Context()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := l.Evaluate(ctx, request); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkPassedOn is what the cache adds to an evaluation that it does not answer, whose port costs
// nothing: with no claim, and with every place taken by claims about others.
func BenchmarkPassedOn(b *testing.B) {
	p := window(b)
	admission := denial(p, 0)
	admission.Decision.Allowed = true
	request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(b, -1), Cost: 1, Deadline: farAway}
	for _, held := range []int{0, 1024, 1 << 16} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) {
			clock := &manual{}
			l := newCache(b, constant{admission}, clock.now, max(held, 1024), p)
			for i := 0; held > 0 && i < 4*held && l.Entries() < held; i++ {
				k := l.known[p].key(subjectOf(b, i))
				l.claims.keep(l.claims.hash(&k), &claim{key: k, cost: 1, until: time.Hour}, 0, prevail)
			}
			benchEvaluate(b, l, request, false)
		})
	}
}

// bucket is a store of one subject, in this process, that counts.
type bucket struct {
	mu     sync.Mutex
	policy *ratelimit.RateLimitPolicy
	state  state
	asked  atomic.Int64
}

func (s *bucket) Evaluate(_ context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	return ratelimit.Conclude(s.policy, s.state.decide(time.Now().UnixMilli(), request.Cost), ratelimit.SourceLocalMemory), nil
}

// BenchmarkHotAbuser is one subject that asks without a pause: how much of it reaches the store, by how
// often the store admits one.
func BenchmarkHotAbuser(b *testing.B) {
	for _, rate := range []int64{1, 10, 100} {
		b.Run(fmt.Sprintf("admits=%d-per-s", rate), func(b *testing.B) {
			p := mustPolicy(b, shape{algorithm: ratelimit.AlgorithmTokenBucket, limit: 10, rate: rate, window: 1000})
			store := &bucket{policy: p, state: stateOf(p)}
			l := newCache(b, store, nil, 1024, p)
			request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(b, 1), Cost: 1, Deadline: farAway}
			ctx, admitted := b.Context(), 0
			for range 20 {
				if _, err := l.Evaluate(ctx, request); err != nil {
					b.Fatal(err)
				}
			}
			store.asked.Store(0)
			b.ReportAllocs()
			for b.Loop() {
				o, err := l.Evaluate(ctx, request)
				if err != nil {
					b.Fatal(err)
				}
				if ratelimit.Allows(o) {
					admitted++
				}
			}
			seconds := b.Elapsed().Seconds()
			b.ReportMetric(float64(b.N)/seconds, "evaluations/s")
			b.ReportMetric(float64(store.asked.Load())/seconds, "asked/s")
			b.ReportMetric(float64(admitted)/seconds, "admitted/s")
		})
	}
}
