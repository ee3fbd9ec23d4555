package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// ample are policies that go on admitting while a benchmark runs.
func ample(b *testing.B) []*ratelimit.RateLimitPolicy {
	const limit = 9_000_000_000
	return []*ratelimit.RateLimitPolicy{
		newPolicy(b, "fixed-window", ratelimit.FixedWindowParameters{Limit: limit, Window: time.Hour}, limit),
		newPolicy(b, "sliding-window-counter", ratelimit.SlidingWindowCounterParameters{Limit: limit, Window: time.Hour}, limit),
		newPolicy(b, "token-bucket", ratelimit.TokenBucketParameters{Capacity: limit, RefillTokens: 1000, RefillPeriod: time.Second}, limit),
		newPolicy(b, "gcra", ratelimit.GCRAParameters{Limit: 1000, Period: time.Second, Burst: limit}, limit),
		newPolicy(b, "sliding-window-log", ratelimit.SlidingWindowLogParameters{Limit: 10_000, Window: time.Millisecond}, 10_000),
	}
}

func BenchmarkOneKey(b *testing.B) {
	for _, p := range ample(b) {
		l := newLimiter(b, 1000, nil, p)
		request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(b, 1), Cost: 1, Deadline: farAway}
		b.Run(string(p.ID()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if o, err := l.Evaluate(b.Context(), request); err != nil || !ratelimit.Allows(o) {
					b.Fatal(o, err)
				}
			}
		})
	}
}

func BenchmarkDenial(b *testing.B) {
	p := newPolicy(b, "p", ratelimit.TokenBucketParameters{Capacity: 1, RefillTokens: 1, RefillPeriod: 24 * time.Hour}, 1)
	l := newLimiter(b, 1000, nil, p)
	request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(b, 1), Cost: 1, Deadline: farAway}
	evaluate(b, l, p, request.Subject, 1)
	b.ReportAllocs()
	for b.Loop() {
		if o, err := l.Evaluate(b.Context(), request); err != nil || ratelimit.Allows(o) {
			b.Fatal(o, err)
		}
	}
}

func BenchmarkDecisionAlone(b *testing.B) {
	p := ample(b)[2]
	l := newLimiter(b, 1000, nil, p)
	a := ask{policy: l.compiled[p], deadline: farAway, cost: 1}
	a.key = key{digest: subjectOf(b, 1).Bytes(), policy: a.policy.index}
	b.ReportAllocs()
	for b.Loop() {
		if _, verdict := l.decide(&a); verdict != verdictDecided {
			b.Fatal(verdict)
		}
	}
}

func subjectsOf(b *testing.B, n int) []ratelimit.SubjectDigest {
	subjects := make([]ratelimit.SubjectDigest, n)
	for i := range subjects {
		subjects[i] = subjectOf(b, i)
	}
	return subjects
}

func BenchmarkManyKeys(b *testing.B) {
	p := ample(b)[2]
	for _, n := range []int{1000, 100_000, 1_000_000} {
		subjects := subjectsOf(b, n)
		l := newLimiter(b, n, nil, p)
		for _, subject := range subjects {
			evaluate(b, l, p, subject, 1)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Cost: 1, Deadline: farAway}
			for i := 0; b.Loop(); i++ {
				request.Subject = subjects[i*7919%n]
				if _, err := l.Evaluate(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParallel(b *testing.B) {
	p := ample(b)[2]
	for _, n := range []int{1, 100_000} {
		subjects := subjectsOf(b, n)
		l := newLimiter(b, n, nil, p)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Cost: 1, Deadline: farAway}
				for i := rand.IntN(n); pb.Next(); i++ {
					request.Subject = subjects[i*7919%n]
					if _, err := l.Evaluate(b.Context(), request); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkRefusalAtCapacity is a flood of new subjects against a full limiter with nothing expired:
// each call looks at every shard.
func BenchmarkRefusalAtCapacity(b *testing.B) {
	p := ample(b)[2]
	for _, n := range []int{1000, 1_000_000} {
		l := newLimiter(b, n, nil, p)
		for i := range n {
			evaluate(b, l, p, subjectOf(b, i), 1)
		}
		request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(b, n+1), Cost: 1, Deadline: farAway}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if o, err := l.Evaluate(b.Context(), request); err != nil || o != full(p) {
					b.Fatal(o, err)
				}
			}
		})
	}
}

// BenchmarkChurn is traffic in which every call brings a new subject and an old one expires.
func BenchmarkChurn(b *testing.B) {
	clock := newManualClock()
	p := newPolicy(b, "p", ratelimit.FixedWindowParameters{Limit: 10, Window: time.Second}, 10)
	l := newLimiter(b, 100_000, clock.now, p)
	subjects := subjectsOf(b, 200_000)
	request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Cost: 1, Deadline: farAway}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%20 == 0 {
			clock.advance(time.Millisecond)
		}
		request.Subject = subjects[i%len(subjects)]
		if _, err := l.Evaluate(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}
