package memory

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// revised is a policy like those of newPolicy, at a revision.
func revised(t testing.TB, id ratelimit.PolicyID, revision, limit int64) *ratelimit.RateLimitPolicy {
	t.Helper()
	p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID: id, Revision: revision, Algorithm: ratelimit.AlgorithmFixedWindow, MaxCost: 1, FailurePolicy: ratelimit.FailClosed,
		Parameters: ratelimit.FixedWindowParameters{Limit: limit, Window: time.Minute}, CleanupGrace: time.Second, MaxClockRegression: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func withPolicies(t testing.TB, l *EdgeRateLimiter, policies ...*ratelimit.RateLimitPolicy) *EdgeRateLimiter {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	view, err := l.WithPolicies(set)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func remaining(t testing.TB, l *EdgeRateLimiter, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) int64 {
	t.Helper()
	e, ok := evaluate(t, l, p, subject, 1).(ratelimit.Evaluated)
	if !ok || !e.Decision.Allowed || e.Decision.PolicyRevision != p.Revision() {
		t.Fatalf("%+v", e)
	}
	return e.Decision.Remaining
}

func TestWithPoliciesRefusesNone(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, 10, nil, revised(t, "p", 1, 10))
	if view, err := l.WithPolicies(nil); err == nil || view != nil {
		t.Errorf("%v, %v", view, err)
	}
}

// An unchanged policy counts on, a changed revision or parameter starts fresh, and going back finds what
// was left. Casebook 21.
func TestWithPoliciesKeepsWhatIsUnchanged(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	first := newLimiter(t, 100, clock.now, revised(t, "kept", 1, 10), revised(t, "changed", 1, 10), revised(t, "edited", 1, 10), revised(t, "dropped", 1, 10))
	subject := subjectOf(t, 1)
	for _, id := range []ratelimit.PolicyID{"kept", "changed", "edited", "dropped"} {
		remaining(t, first, first.policies.Get(id), subject)
	}
	// Policies of the same ID are made anew, as a configuration that is read again makes them.
	second := withPolicies(t, first, revised(t, "kept", 1, 10), revised(t, "changed", 2, 10), revised(t, "edited", 1, 11), revised(t, "added", 1, 10))
	for _, c := range []struct {
		l    *EdgeRateLimiter
		id   ratelimit.PolicyID
		want int64
	}{
		{second, "kept", 8},
		{second, "changed", 9},
		{second, "edited", 10},
		{second, "added", 9},
		{first, "kept", 7},
		{first, "changed", 8},
		{first, "edited", 8},
		{first, "dropped", 8},
		{second, "kept", 6},
		{second, "changed", 8},
		{second, "edited", 9},
		{second, "added", 8},
	} {
		if got := remaining(t, c.l, c.l.policies.Get(c.id), subject); got != c.want {
			t.Errorf("%s: %d are left, want %d", c.id, got, c.want)
		}
	}
	if _, err := second.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: "dropped", Subject: subject, Cost: 1, Deadline: farAway}); err == nil {
		t.Error("a policy that was dropped is known")
	}
	if first.LiveKeys() != 7 || second.LiveKeys() != 7 {
		t.Errorf("%d and %d live keys, want 7", first.LiveKeys(), second.LiveKeys())
	}
	// What old revisions left expires by itself.
	clock.advance(time.Hour)
	for range 10 * len(second.states.shards) {
		evaluate(t, second, second.policies.Get("kept"), subject, 1)
		clock.advance(time.Minute)
	}
	if n := second.LiveKeys(); n != 1 {
		t.Errorf("%d live keys, want 1", n)
	}
	verify(t, second)
}

// The bound on keys is that of all generations together.
func TestWithPoliciesSharesTheBound(t *testing.T) {
	t.Parallel()
	p, q := revised(t, "p", 1, 10), revised(t, "p", 2, 10)
	first := newLimiter(t, 2, newManualClock().now, p)
	second := withPolicies(t, first, q)
	subject := subjectOf(t, 1)
	evaluate(t, first, p, subject, 1)
	evaluate(t, second, q, subject, 1)
	for _, o := range []ratelimit.Outcome{evaluate(t, first, p, subjectOf(t, 2), 1), evaluate(t, second, q, subjectOf(t, 2), 1)} {
		if o != full(p) {
			t.Errorf("%+v", o)
		}
	}
}

// A state of one algorithm is never read by another, though ID and revision are the same.
func TestWithPoliciesOfAnotherAlgorithm(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	var l *EdgeRateLimiter
	subject := subjectOf(t, 1)
	for range 2 {
		for i, parameters := range []ratelimit.Parameters{
			ratelimit.FixedWindowParameters{Limit: 10, Window: time.Hour},
			ratelimit.SlidingWindowCounterParameters{Limit: 10, Window: time.Hour},
			ratelimit.TokenBucketParameters{Capacity: 10, RefillTokens: 1, RefillPeriod: time.Hour},
			ratelimit.GCRAParameters{Limit: 1, Period: time.Hour, Burst: 10},
			ratelimit.SlidingWindowLogParameters{Limit: 10, Window: time.Hour},
		} {
			p := newPolicy(t, "p", parameters, 1)
			if l == nil {
				l = newLimiter(t, 100, clock.now, p)
			} else {
				l = withPolicies(t, l, p)
			}
			want := int64(9)
			if l.LiveKeys() == 5 {
				want = 8
			}
			if got := remaining(t, l, p, subject); got != want {
				t.Errorf("%d: %d are left, want %d", i, got, want)
			}
			verify(t, l)
		}
	}
}

// Ten thousand reloads leave nothing behind: neither where all policies change, nor where none does.
func TestReloadsLeaveMemoryFlat(t *testing.T) {
	const reloads = 10_000
	clock := newManualClock()
	kept := revised(t, "kept", 1, math.MaxInt32)
	l := newLimiter(t, 1000, clock.now, kept, revised(t, "changed", 1, 10))
	subject := subjectOf(t, 1)
	reload := func(revision int64) {
		changed := revised(t, "changed", revision, 10)
		l = withPolicies(t, l, kept, changed)
		if got := remaining(t, l, changed, subject); got != 9 {
			t.Fatalf("revision %d has %d left", revision, got)
		}
		evaluate(t, l, kept, subject, 1)
		clock.advance(time.Second)
	}
	for i := range int64(1000) {
		reload(2 + i)
	}
	before := heapInUse()
	for i := range int64(reloads) {
		reload(2000 + i)
	}
	if grown := heapInUse() - before; grown > 64<<10 {
		t.Errorf("the heap grew by %d bytes over %d reloads", grown, reloads)
	}
	// A revision's state lives for at most a window and the grace after it was written.
	if n := l.LiveKeys(); n > 150 {
		t.Errorf("%d live keys", n)
	}
	verify(t, l)
	runtime.KeepAlive(l)
}

// Old and new limiters decide at once, over one state, while others are made of them.
func TestWithPoliciesWhileOthersDecide(t *testing.T) {
	t.Parallel()
	const limit, goroutines, each = 500, 16, 100
	clock := newManualClock()
	p := revised(t, "p", 1, limit)
	log := newPolicy(t, "log", ratelimit.SlidingWindowLogParameters{Limit: limit, Window: time.Minute}, 1)
	var current atomic.Pointer[EdgeRateLimiter]
	first := newLimiter(t, 1000, clock.now, p, log)
	current.Store(first)
	var admitted, logged atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				l := current.Load()
				if i%3 == 0 {
					l = first
				}
				if g == 0 {
					current.Store(withPolicies(t, l, revised(t, "p", 1, limit), log, revised(t, "other", int64(i+1), 10)))
				}
				if ratelimit.Allows(evaluate(t, l, p, subjectOf(t, 1), 1)) {
					admitted.Add(1)
				}
				if ratelimit.Allows(evaluate(t, l, log, subjectOf(t, 1), 1)) {
					logged.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != limit || logged.Load() != limit {
		t.Errorf("%d and %d admitted, want %d", admitted.Load(), logged.Load(), limit)
	}
	verify(t, first)
}

// Names differ with the policy's ID, revision, parameters and algorithm, and with the limiter.
func TestPads(t *testing.T) {
	t.Parallel()
	n, other := newNaming(), newNaming()
	pads := map[name]string{}
	for what, pad := range map[string]name{
		"one":             n.pad(revised(t, "p", 1, 10)),
		"another ID":      n.pad(revised(t, "q", 1, 10)),
		"revision":        n.pad(revised(t, "p", 2, 10)),
		"limit":           n.pad(revised(t, "p", 1, 11)),
		"algorithm":       n.pad(newPolicy(t, "p", ratelimit.SlidingWindowCounterParameters{Limit: 10, Window: time.Minute}, 1)),
		"another limiter": other.pad(revised(t, "p", 1, 10)),
	} {
		if same, twice := pads[pad]; twice {
			t.Errorf("%s has the pad of %s", what, same)
		}
		pads[pad] = what
	}
	pad := n.pad(revised(t, "p", 1, 10))
	if pads[pad] != "one" {
		t.Error("one policy has two pads")
	}
	subject := subjectOf(t, 1)
	if k := pad.name(&subject); n.hash(k) == other.hash(k) {
		t.Error("hashes do not depend on the limiter")
	}
}

// Few policies are looked through, many are hashed, and both ways give the same.
func TestCompiledSet(t *testing.T) {
	t.Parallel()
	naming := newNaming()
	for _, count := range []int{1, few, few + 1, 100} {
		var policies []*ratelimit.RateLimitPolicy
		for i := range count {
			policies = append(policies, revised(t, ratelimit.PolicyID("p"+string(rune('0'+i%10))+"-"+string(rune('a'+i/10))), 1, 10))
		}
		set, err := ratelimit.NewPolicySet(policies...)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := compileAll(set, &naming)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range policies {
			if c := compiled.get(p.ID()); c == nil || c.policy != p {
				t.Errorf("%d policies: %s is %+v", count, p.ID(), c)
			}
		}
		for _, id := range []ratelimit.PolicyID{"", "p", "p0-", "p0-aa", "q0-a"} {
			if c := compiled.get(id); c != nil {
				t.Errorf("%d policies: %q is %+v", count, id, c)
			}
		}
	}
}

// The zero state is an absent one: whatever a policy stores expires after the epoch, even at its very
// moment.
func TestStoredStatesArePresent(t *testing.T) {
	t.Parallel()
	naming := newNaming()
	for _, parameters := range []ratelimit.Parameters{
		ratelimit.FixedWindowParameters{Limit: 1, Window: time.Millisecond},
		ratelimit.SlidingWindowCounterParameters{Limit: 1, Window: time.Millisecond},
		ratelimit.TokenBucketParameters{Capacity: 1, RefillTokens: 1000, RefillPeriod: time.Millisecond},
		ratelimit.GCRAParameters{Limit: 1000, Period: time.Millisecond, Burst: 1},
		ratelimit.SlidingWindowLogParameters{Limit: 1, Window: time.Millisecond},
	} {
		p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
			ID: "p", Revision: 1, Algorithm: newPolicy(t, "p", parameters, 1).Algorithm(), Parameters: parameters, MaxCost: 1, FailurePolicy: ratelimit.FailClosed,
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := compile(p, &naming)
		if err != nil {
			t.Fatal(err)
		}
		var s state
		var d algorithm.Decision
		if c.logged() {
			d, _ = c.decideLog(&s, algorithm.SlidingLogEntries{}, 0, 1)
		} else {
			c.decide(&s, 0, 1, &d)
		}
		if d.Status != algorithm.StatusAllowed || !s.present() {
			t.Errorf("%v: %+v %+v", p.Algorithm(), d, s)
		}
	}
}
