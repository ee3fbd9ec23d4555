package memory

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
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

// BenchmarkClock is what the others are measured by: time.Now is what a limiter pays at least that reads
// the time as usual, and the limiter's own clock is what it pays instead.
func BenchmarkClock(b *testing.B) {
	var last time.Time
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			last = time.Now()
		}
	})
	c := newClock(nil)
	b.Run("limiter", func(b *testing.B) {
		for b.Loop() {
			if _, late := c.read(farAway); late {
				b.Fatal("late")
			}
		}
	})
	runtime.KeepAlive(last)
}

func BenchmarkOneKey(b *testing.B) {
	for _, p := range ample(b) {
		l := newLimiter(b, 1000, nil, p)
		request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(b, 1), Cost: 1, Deadline: farAway}
		b.Run(string(p.ID()), func(b *testing.B) {
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if o, err := l.Evaluate(ctx, request); err != nil || !ratelimit.Allows(o) {
					b.Fatal("not allowed")
				}
			}
		})
		b.Run(string(p.ID())+"/port", func(b *testing.B) {
			var port ratelimit.EdgeRateLimitPort = hidden{l}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if o, err := port.Evaluate(ctx, request); err != nil || !ratelimit.Allows(o) {
					b.Fatal("not allowed")
				}
			}
		})
	}
}

// hidden is a limiter behind the port: the compiler does not see which one.
type hidden struct{ ratelimit.EdgeRateLimitPort }

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
	a := l.ask(p, subjectOf(b, 1))
	b.ReportAllocs()
	for b.Loop() {
		if verdict := l.states.decide(&a); verdict != verdictDecided {
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
	for _, n := range keyCounts() {
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

var mostKeys = flag.Int("most-keys", 1_000_000, "leave out benchmarks of more keys; 10,000,000 take up to 2 GB")

// keyCounts are those of benchmarks over the number of keys.
func keyCounts() []int {
	var counts []int
	for _, n := range []int{1000, 100_000, 1_000_000, 10_000_000} {
		if n <= *mostKeys {
			counts = append(counts, n)
		}
	}
	return counts
}

// BenchmarkMemory measures bytes for each live key, beside what an empty limiter takes, and the longest
// call while they came.
func BenchmarkMemory(b *testing.B) {
	p := ample(b)[2]
	for _, n := range keyCounts() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				l := newLimiter(b, n, nil, p)
				before := heapInUse()
				longest := time.Duration(0)
				request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Cost: 1, Deadline: farAway}
				for i := range n {
					request.Subject = subjectOf(b, i)
					began := time.Now()
					if _, err := l.Evaluate(b.Context(), request); err != nil {
						b.Fatal(err)
					}
					longest = max(longest, time.Since(began))
				}
				b.ReportMetric(float64(heapInUse()-before)/float64(n), "B/key")
				b.ReportMetric(float64(longest.Microseconds()), "longest-us")
				b.ReportMetric(0, "ns/op")
				if l.LiveKeys() != n {
					b.Fatalf("%d live keys", l.LiveKeys())
				}
			}
		})
	}
}

// BenchmarkRebuild moves all that a shard holds to other memory, which is the longest that a call holds a
// lock. A shard holds a thousandth of the keys of a large limiter: here those of 1, 10 and 100 million.
func BenchmarkRebuild(b *testing.B) {
	n := newNaming()
	for _, entries := range []uint64{1000, 10_000, 100_000} {
		full := table{naming: &n}
		for i := range entries {
			k := name{w0: i, w1: 1, w2: 2, w3: 3}
			full.insert(n.hash(k), &k, state{expiresAt: 1 + int64(i)})
		}
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			for b.Loop() {
				table := full
				table.shrink()
			}
		})
	}
}

// BenchmarkReload is WithPolicies for one policy.
func BenchmarkReload(b *testing.B) {
	l := newLimiter(b, 1000, nil, ample(b)[2])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.WithPolicies(l.policies); err != nil {
			b.Fatal(err)
		}
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
