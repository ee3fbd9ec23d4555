package contract

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit/denialcache"
	"github.com/edgelimit/edgelimit/test/embedded"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// passage is what a monotonic clock makes of a clock that is set: the time that passes forward.
type passage struct {
	mu     sync.Mutex
	shown  time.Time // the clock that is set
	passed time.Time
}

func newPassage(from time.Time) *passage { return &passage{shown: from, passed: from} }

func (p *passage) set(to time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to.After(p.shown) {
		p.passed = p.passed.Add(to.Sub(p.shown))
	}
	p.shown = to
}

func (p *passage) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// behindCache decorates the limiters of a backend. Where its clock is set, time passes for the cache with
// it, and each cached denial is compared with what the store says at that very moment.
type behindCache struct {
	backend *contracttest.Backend
	clock   func() time.Time
	compare bool
	here    *atomic.Int64 // decisions that were taken by a cache
}

func (b *behindCache) decorate() *contracttest.Backend {
	decorated := *b.backend
	decorated.New = func(t testing.TB, policies ...*ratelimit.RateLimitPolicy) ratelimit.EdgeRateLimitPort {
		port := b.backend.New(t, policies...)
		return &watched{behindCache: b, t: t, port: port, cache: withDenialCache(t, port, b.clock, policies...)}
	}
	if set := b.backend.SetTime; set != nil {
		passed := newPassage(b.backend.Now())
		b.clock, b.compare = passed.now, true
		decorated.SetTime = func(to time.Time) {
			set(to)
			passed.set(to)
		}
		decorated.Advance = func(d time.Duration) { decorated.SetTime(b.backend.Now().Add(d)) }
	}
	return &decorated
}

func withDenialCache(t testing.TB, port ratelimit.EdgeRateLimitPort, clock func() time.Time, policies ...*ratelimit.RateLimitPolicy) *denialcache.EdgeRateLimiter {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := denialcache.New(port, denialcache.Config{Policies: set, MaxEntries: 1024, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// watched is a cache whose own decisions are counted, judged, and then handed on as the store's: the suite
// knows one source for each backend.
type watched struct {
	*behindCache
	t     testing.TB
	port  ratelimit.EdgeRateLimitPort
	cache *denialcache.EdgeRateLimiter
}

func (w *watched) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	outcome, err := w.cache.Evaluate(ctx, request)
	evaluated, ok := outcome.(ratelimit.Evaluated)
	if err != nil || !ok || evaluated.Decision.Source != ratelimit.SourceDenialCache {
		return outcome, err
	}
	w.here.Add(1)
	if ratelimit.Allows(outcome) {
		w.t.Errorf("an admission from the cache: %+v", outcome)
	}
	evaluated.Decision.Source = w.backend.Source
	if !w.compare {
		return evaluated, nil
	}
	// A denial spends nothing, so asking again changes nothing; an admission would be a wrong denial.
	exact, err := w.port.Evaluate(ctx, request)
	if err != nil || ratelimit.Allows(exact) {
		w.t.Errorf("cost %d of %s: the cache denied it, the store says %+v, %v", request.Cost, request.PolicyID, exact, err)
	}
	if of, ok := exact.(ratelimit.Evaluated); ok {
		same := evaluated.Decision
		same.Remaining, same.RetryAfter, same.ResetAt = of.Decision.Remaining, of.Decision.RetryAfter, of.Decision.ResetAt
		if same != of.Decision {
			w.t.Errorf("the cache says %+v, the store %+v", evaluated.Decision, of.Decision)
		}
	}
	// What remains may have changed since, and where the clock was set back the retry too: the suite's
	// comparisons to the millisecond are for the store.
	return exact, err
}

// heldToContract runs the suite over decorated backends, and requires that caches decided.
func heldToContract(t *testing.T, factory contracttest.Factory) {
	t.Helper()
	var here atomic.Int64
	t.Run("suite", func(t *testing.T) {
		contracttest.RunEdgeRateLimit(t, func(t testing.TB) *contracttest.Backend {
			return (&behindCache{backend: factory(t), here: &here}).decorate()
		})
	})
	t.Logf("%d decisions by a cache", here.Load())
	if here.Load() == 0 {
		t.Error("no decision was taken by a cache")
	}
}

// TestDenialCacheOverMemory runs the rate-limit suite over the decorator over the provider in memory.
func TestDenialCacheOverMemory(t *testing.T) {
	heldToContract(t, func(t testing.TB) *contracttest.Backend {
		clock := newSetClock(start)
		const inside = "the provider's own package reaches into its state; TestContract there does"
		return &contracttest.Backend{
			New: func(t testing.TB, policies ...*ratelimit.RateLimitPolicy) ratelimit.EdgeRateLimitPort {
				return newMemoryLimiter(t, clock.now, policies...)
			},
			Source: ratelimit.SourceLocalMemory, Now: clock.now, SetTime: clock.set, Advance: func(d time.Duration) { clock.set(clock.now().Add(d)) },
			Missing: map[contracttest.Capability]string{
				contracttest.CapabilityShare: "a limiter's state is its own", contracttest.CapabilityTTL: inside, contracttest.CapabilityState: inside,
				contracttest.CapabilityPutForeign: inside, contracttest.CapabilityCorrupt: inside,
			},
		}
	})
}

// setClock is a clock that is set.
type setClock struct{ ns atomic.Int64 }

func newSetClock(to time.Time) *setClock {
	c := &setClock{}
	c.set(to)
	return c
}

func (c *setClock) set(to time.Time) { c.ns.Store(to.UnixNano()) }
func (c *setClock) now() time.Time   { return time.Unix(0, c.ns.Load()).UTC() }

func newMemoryLimiter(t testing.TB, clock func() time.Time, policies ...*ratelimit.RateLimitPolicy) ratelimit.EdgeRateLimitPort {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := memory.NewEdgeRateLimiter(memory.Config{Policies: set, Clock: clock, MaxKeys: 10_000, UnavailableRetryAfter: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// undamaged leaves out what no cache takes part in: a state that is none is no denial.
func undamaged(b *contracttest.Backend) *contracttest.Backend {
	b.PutForeign, b.Corrupt, b.Drop, b.Fields = nil, nil, nil, nil
	const reason = "what stands where a state should be is the store's matter; TestEmbeddedRedis and TestRedis place it"
	b.Missing = map[contracttest.Capability]string{contracttest.CapabilityPutForeign: reason, contracttest.CapabilityCorrupt: reason}
	return b
}

// TestDenialCacheOverEmbeddedRedis runs it over the provider for Redis where the clock is set, instances
// share state and revisions roll.
func TestDenialCacheOverEmbeddedRedis(t *testing.T) {
	heldToContract(t, func(t testing.TB) *contracttest.Backend {
		server := embedded.Start(t, start)
		clock := newSetClock(start)
		backend := undamaged(newBench(t, server.Addr()).backend())
		backend.Now = clock.now
		backend.SetTime = func(to time.Time) {
			clock.set(to)
			server.SetTime(to)
		}
		backend.Advance = func(d time.Duration) { backend.SetTime(clock.now().Add(d)) }
		return backend
	})
}

// TestDenialCacheOverRedis runs it over the real Redis of each lane, with the clocks that there are.
func TestDenialCacheOverRedis(t *testing.T) {
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			heldToContract(t, func(t testing.TB) *contracttest.Backend {
				b := newBench(t, server.Addr)
				backend := undamaged(b.backend())
				backend.Now = func() time.Time { return b.time(t) }
				backend.Missing[contracttest.CapabilitySetTime] = "the clock of this server is the machine's; TestDenialCacheOverEmbeddedRedis sets one"
				backend.Advance = func(d time.Duration) {
					for end := backend.Now().Add(d); backend.Now().Before(end); {
						time.Sleep(min(d, 5*time.Millisecond))
					}
				}
				return backend
			})
		})
	}
}

// time is the server's clock.
func (b *bench) time(t testing.TB) time.Time {
	t.Helper()
	now, err := b.client.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func windowPolicy(t testing.TB, window time.Duration) *ratelimit.RateLimitPolicy {
	t.Helper()
	p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID: "window", Revision: 1, Algorithm: ratelimit.AlgorithmFixedWindow, Parameters: ratelimit.FixedWindowParameters{Limit: 1, Window: window},
		MaxCost: 1, CleanupGrace: time.Minute, MaxClockRegression: time.Second, FailurePolicy: ratelimit.FailClosed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func digest(t testing.TB, n int) ratelimit.SubjectDigest {
	t.Helper()
	d, err := ratelimit.ParseSubjectDigest(fmt.Sprintf("%064x", n))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func evaluateWindow(t testing.TB, port ratelimit.EdgeRateLimitPort, subject ratelimit.SubjectDigest) ratelimit.RateLimitDecision {
	t.Helper()
	outcome, err := port.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: "window", Subject: subject, Cost: 1, Deadline: time.Now().Add(patience)})
	if err != nil {
		t.Fatal(err)
	}
	evaluated, ok := outcome.(ratelimit.Evaluated)
	if !ok {
		t.Fatalf("%+v, want Evaluated", outcome)
	}
	return evaluated.Decision
}

// TestDenialCacheAgainstTheServersClock asks without a pause through many windows of a real Redis. The
// window's end is the moment at which a denied request is admitted, so no cached denial may come when the
// server's clock has already shown it, and none may name a retry before it.
func TestDenialCacheAgainstTheServersClock(t *testing.T) {
	const window, windows = 40 * time.Millisecond, 30
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, server.Addr)
			p := windowPolicy(t, window)
			cache := withDenialCache(t, b.limiter(t, p), nil, p)
			subject := digest(t, 1)
			admitted, here := 0, 0
			for end := time.Now().Add(patience); admitted < windows; {
				if time.Now().After(end) {
					t.Fatalf("%d windows in %v", admitted, patience)
				}
				before := b.time(t)
				d := evaluateWindow(t, cache, subject)
				switch {
				case d.Allowed:
					admitted++
				case d.Source == ratelimit.SourceDenialCache:
					here++
					if !before.Before(d.ResetAt) {
						t.Errorf("denied here at %v or later, the store admits from %v on", before, d.ResetAt)
					}
					if after := b.time(t); after.Add(d.RetryAfter).Before(d.ResetAt) {
						t.Errorf("retry in %v at %v or before, the store admits from %v on", d.RetryAfter, after, d.ResetAt)
					}
				}
			}
			t.Logf("%d windows, %d denials from the cache", admitted, here)
			if here == 0 {
				t.Error("the cache answered nothing")
			}
		})
	}
}

// TestDenialCacheAfterALoss: a store that has lost its state would admit; the cache denies until the claim
// ends, which is within MaxHold, and then asks.
func TestDenialCacheAfterALoss(t *testing.T) {
	b := newBench(t, lanes.Default(t).Addr)
	p := windowPolicy(t, 365*24*time.Hour)
	clock := newSetClock(time.Now())
	cache := withDenialCache(t, b.limiter(t, p), clock.now, p)
	subject := digest(t, 1)
	if d := evaluateWindow(t, cache, subject); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	first := evaluateWindow(t, cache, subject)
	if first.Allowed || first.Source != ratelimit.SourceGlobalRedis {
		t.Fatalf("%+v", first)
	}
	b.removeAll(t)
	clock.set(clock.now().Add(denialcache.MaxHold - 11*time.Millisecond - 1))
	if d := evaluateWindow(t, cache, subject); d.Allowed || d.Source != ratelimit.SourceDenialCache {
		t.Errorf("before the claim ends: %+v", d)
	}
	clock.set(clock.now().Add(1))
	if d := evaluateWindow(t, cache, subject); !d.Allowed || d.Source != ratelimit.SourceGlobalRedis {
		t.Errorf("at its end: %+v", d)
	}
}

// TestDenialCacheEndsWithARevision: beside a cache that denies under one revision, one under the next asks
// and is admitted.
func TestDenialCacheEndsWithARevision(t *testing.T) {
	b := newBench(t, lanes.Default(t).Addr)
	old := windowPolicy(t, 365*24*time.Hour)
	next, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID: old.ID(), Revision: 2, Algorithm: old.Algorithm(), Parameters: ratelimit.FixedWindowParameters{Limit: 2, Window: time.Hour},
		MaxCost: 1, CleanupGrace: time.Minute, MaxClockRegression: time.Second, FailurePolicy: ratelimit.FailClosed,
	})
	if err != nil {
		t.Fatal(err)
	}
	subject := digest(t, 1)
	before := withDenialCache(t, b.limiter(t, old), nil, old)
	after := withDenialCache(t, b.limiter(t, next), nil, next)
	evaluateWindow(t, before, subject)
	evaluateWindow(t, before, subject)
	if d := evaluateWindow(t, before, subject); d.Source != ratelimit.SourceDenialCache || d.PolicyRevision != 1 {
		t.Fatalf("%+v", d)
	}
	if d := evaluateWindow(t, after, subject); !d.Allowed || d.PolicyRevision != 2 {
		t.Errorf("%+v", d)
	}
}

// BenchmarkHotAbuser is one subject that callers ask for without a pause, on a Redis of its own: what a
// denial costs, and how many commands reach the server.
func BenchmarkHotAbuser(b *testing.B) {
	for _, each := range []time.Duration{10 * time.Millisecond, time.Second, time.Minute} {
		for _, callers := range []int{1, 64} {
			for _, cached := range []bool{false, true} {
				b.Run(fmt.Sprintf("one-each-%v/callers=%d/cache=%v", each, callers, cached), func(b *testing.B) {
					hotAbuser(b, each, callers, cached)
				})
			}
		}
	}
}

func hotAbuser(b *testing.B, each time.Duration, callers int, cached bool) {
	b.Helper()
	server := lanes.StartProcess(b, lanes.Options{})
	bench := newBench(b, server.Addr)
	p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID: "window", Revision: 1, Algorithm: ratelimit.AlgorithmTokenBucket,
		Parameters: ratelimit.TokenBucketParameters{Capacity: 10, RefillTokens: 1, RefillPeriod: each},
		MaxCost:    1, CleanupGrace: time.Minute, MaxClockRegression: time.Second, FailurePolicy: ratelimit.FailClosed,
	})
	if err != nil {
		b.Fatal(err)
	}
	port := bench.limiter(b, p)
	if cached {
		port = withDenialCache(b, port, nil, p)
	}
	subject := digest(b, 1)
	for range 200 {
		evaluateWindow(b, port, subject)
	}
	before := scriptCalls(b, bench)
	var admitted atomic.Int64
	var next atomic.Int64
	var wg sync.WaitGroup
	ctx, deadline := b.Context(), time.Now().Add(time.Hour)
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				o, err := port.Evaluate(ctx, ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subject, Cost: 1, Deadline: deadline})
				if err != nil {
					b.Error(err)
					return
				}
				if ratelimit.Allows(o) {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N)/seconds, "evaluations/s")
	b.ReportMetric(float64(admitted.Load())/seconds, "admitted/s")
	b.ReportMetric((scriptCalls(b, bench)-before)/seconds, "commands/s")
}

// scriptCalls is how many programs a server has run.
func scriptCalls(b *testing.B, bench *bench) float64 {
	b.Helper()
	stats, err := bench.client.Info(b.Context(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(stats) {
		if of, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			calls, err := strconv.ParseFloat(of[:strings.IndexByte(of, ',')], 64)
			if err != nil {
				b.Fatal(err)
			}
			return calls
		}
	}
	return 0
}
