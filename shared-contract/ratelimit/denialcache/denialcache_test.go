package denialcache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// stub answers what a test has prepared, and counts.
type stub struct {
	answer func(request ratelimit.RateLimitRequest) (ratelimit.Outcome, error)
	calls  atomic.Int64
}

func (s *stub) Evaluate(_ context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	s.calls.Add(1)
	return s.answer(request)
}

// manual is a clock that is moved by hand.
type manual struct{ ns atomic.Int64 }

func (m *manual) now() time.Time          { return time.Unix(0, m.ns.Load()) }
func (m *manual) advance(d time.Duration) { m.ns.Add(int64(d)) }

var farAway = time.Date(2108, 1, 1, 0, 0, 0, 0, time.UTC)

func subjectOf(t testing.TB, n int) ratelimit.SubjectDigest {
	t.Helper()
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	d, err := ratelimit.ParseSubjectDigest(hex.EncodeToString(sum[:]))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustPolicy(t testing.TB, s shape) *ratelimit.RateLimitPolicy {
	t.Helper()
	p, err := s.policy()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// window is a fixed window of 10 units.
func window(t testing.TB) *ratelimit.RateLimitPolicy {
	t.Helper()
	return mustPolicy(t, shape{algorithm: ratelimit.AlgorithmFixedWindow, limit: 10, window: 60_000, regression: 1000})
}

func setOf(t testing.TB, policies ...*ratelimit.RateLimitPolicy) *ratelimit.PolicySet {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func newCache(t testing.TB, port ratelimit.EdgeRateLimitPort, clock func() time.Time, entries int, policies ...*ratelimit.RateLimitPolicy) *EdgeRateLimiter {
	t.Helper()
	l, err := New(port, Config{Policies: setOf(t, policies...), MaxEntries: entries, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// denial is what a store says of a policy.
func denial(p *ratelimit.RateLimitPolicy, retryAfter time.Duration) ratelimit.Evaluated {
	return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{
		Limit: p.Limit(), Remaining: 0, RetryAfter: retryAfter, ResetAt: time.UnixMilli(1_800_000_000_000).UTC(),
		PolicyID: p.ID(), PolicyRevision: p.Revision(), Source: ratelimit.SourceGlobalRedis, Certainty: p.Certainty(),
	}}
}

func ask(t testing.TB, l *EdgeRateLimiter, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, cost int64) ratelimit.Outcome {
	t.Helper()
	o, err := l.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subject, Cost: cost, Deadline: farAway})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func cached(o ratelimit.Outcome) bool {
	e, ok := o.(ratelimit.Evaluated)
	return ok && e.Decision.Source == ratelimit.SourceDenialCache
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	set := setOf(t, window(t))
	port := &stub{}
	inner := newCache(t, port, nil, 1, window(t))
	for name, c := range map[string]struct {
		port   ratelimit.EdgeRateLimitPort
		config Config
		faults []string
	}{
		"nothing":      {nil, Config{}, []string{"port is nil", "Policies is nil", "MaxEntries is 0, want 1..1048576"}},
		"no entries":   {port, Config{Policies: set}, []string{"MaxEntries is 0"}},
		"below":        {port, Config{Policies: set, MaxEntries: -1}, []string{"MaxEntries is -1"}},
		"above":        {port, Config{Policies: set, MaxEntries: MostEntries + 1}, []string{"MaxEntries is 1048577"}},
		"over another": {inner, Config{Policies: set, MaxEntries: 1}, []string{"a denial cache itself"}},
	} {
		l, err := New(c.port, c.config)
		if err == nil || l != nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, fault := range c.faults {
			if !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %q does not say %q", name, err, fault)
			}
		}
		if n := strings.Count(err.Error(), "\n") + 1; n != len(c.faults) {
			t.Errorf("%s: %d faults, want %d: %v", name, n, len(c.faults), err)
		}
	}
	for _, entries := range []int{1, 7, 8, MostEntries} {
		if _, err := New(port, Config{Policies: set, MaxEntries: entries}); err != nil {
			t.Errorf("%d entries: %v", entries, err)
		}
	}
}

func TestLifetime(t *testing.T) {
	t.Parallel()
	for retryAfter, want := range map[time.Duration]time.Duration{
		time.Millisecond:        -time.Microsecond,
		2 * time.Millisecond:    998 * time.Microsecond,
		time.Second:             998 * time.Millisecond,
		9999 * time.Millisecond: 9_988_001 * time.Microsecond,
		10 * time.Second:        9989 * time.Millisecond,
		11 * time.Second:        9989 * time.Millisecond,
		100 * 365 * 24 * 3600e9: 9989 * time.Millisecond,
	} {
		if got := lifetime(retryAfter); got != want {
			t.Errorf("%v is believed for %v, want %v", retryAfter, got, want)
		}
	}
}

func TestPrevail(t *testing.T) {
	t.Parallel()
	held := &claim{cost: 3, until: 100}
	for name, c := range map[string]struct {
		made *claim
		now  time.Duration
		want bool
	}{
		"a lower cost":                       {&claim{cost: 2, until: 200}, 50, true},
		"a lower cost that ends before":      {&claim{cost: 2, until: 60}, 50, true},
		"the same cost that ends later":      {&claim{cost: 3, until: 101}, 50, true},
		"the same cost that ends then":       {&claim{cost: 3, until: 100}, 50, false},
		"the same cost that ends before":     {&claim{cost: 3, until: 99}, 50, false},
		"a higher cost that ends later":      {&claim{cost: 4, until: 200}, 50, false},
		"a higher cost where the other ends": {&claim{cost: 4, until: 200}, 100, true},
		"an earlier end where the other has": {&claim{cost: 3, until: 99}, 101, true},
	} {
		if got := prevail(held, c.made, c.now); (got == c.made) != c.want || got != c.made && got != held {
			t.Errorf("%s: prevails: %v, want %v", name, got == c.made, c.want)
		}
	}
}

// TestOnlyDenialsAreKept: whatever else a port says is handed on, and it is asked again.
func TestOnlyDenialsAreKept(t *testing.T) {
	t.Parallel()
	p := window(t)
	edited := func(edit func(d *ratelimit.RateLimitDecision)) ratelimit.Outcome {
		e := denial(p, 5*time.Second)
		edit(&e.Decision)
		return e
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		outcome ratelimit.Outcome
		err     error
		kept    bool
	}{
		"a denial":                 {outcome: denial(p, 5*time.Second), kept: true},
		"a denial by memory":       {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.Source = ratelimit.SourceLocalMemory }), kept: true},
		"a denial for 2 ms":        {outcome: denial(p, 2*time.Millisecond), kept: true},
		"a denial for 1 ms":        {outcome: denial(p, time.Millisecond)},
		"an admission":             {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.Allowed = true })},
		"of another policy":        {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.PolicyID = "q" })},
		"of another revision":      {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.PolicyRevision++ })},
		"of another limit":         {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.Limit++ })},
		"of another certainty":     {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.Certainty = ratelimit.CertaintyApproximateAlgorithm })},
		"of no certainty":          {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.Certainty = ratelimit.CertaintyInvalid })},
		"of no source":             {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.Source = ratelimit.SourceInvalid })},
		"of another cache":         {outcome: edited(func(d *ratelimit.RateLimitDecision) { d.Source = ratelimit.SourceDenialCache })},
		"an unsafe clock":          {outcome: ratelimit.Unavailable{PolicyID: p.ID(), RetryAfter: 5 * time.Second, Category: ratelimit.UnavailableClockUnsafe}},
		"no admission slot":        {outcome: ratelimit.Unavailable{PolicyID: p.ID(), RetryAfter: 5 * time.Second, Category: ratelimit.UnavailableAdmission}},
		"indeterminate":            {outcome: ratelimit.Indeterminate{PolicyID: p.ID(), RetryAfter: 5 * time.Second}},
		"incompatible":             {outcome: ratelimit.Incompatible{PolicyID: p.ID(), Category: ratelimit.IncompatibleState}},
		"an error":                 {err: broken},
		"an error beside a denial": {outcome: denial(p, 5*time.Second), err: broken},
		"nothing":                  {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := &stub{answer: func(ratelimit.RateLimitRequest) (ratelimit.Outcome, error) { return c.outcome, c.err }}
			clock := &manual{}
			l := newCache(t, port, clock.now, 8, p)
			request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(t, 1), Cost: 1, Deadline: farAway}
			if o, err := l.Evaluate(t.Context(), request); o != c.outcome || !errors.Is(err, c.err) {
				t.Errorf("%+v, %v instead of what the port said", o, err)
			}
			clock.advance(time.Microsecond)
			o, _ := l.Evaluate(t.Context(), request)
			wantCalls, wantEntries := int64(2), 0
			if c.kept {
				wantCalls, wantEntries = 1, 1
			}
			if port.calls.Load() != wantCalls || c.kept && !cached(o) || l.Entries() != wantEntries {
				t.Errorf("asked %d times, then %+v, %d entries, want %d times, %d entries", port.calls.Load(), o, l.Entries(), wantCalls, wantEntries)
			}
		})
	}
}

// TestADenialIsAnsweredHere: what it says as time goes on, and its last nanosecond.
func TestADenialIsAnsweredHere(t *testing.T) {
	t.Parallel()
	const took = 3 * time.Millisecond
	for _, c := range []struct {
		retryAfter, after time.Duration // since the reply
		left              time.Duration // 0: the store is asked
	}{
		{100 * time.Millisecond, 0, 100 * time.Millisecond},
		{100 * time.Millisecond, time.Millisecond, 100 * time.Millisecond}, // a thousandth less than one has passed for certain
		{100 * time.Millisecond, 1002 * time.Microsecond, 99 * time.Millisecond},
		{100 * time.Millisecond, 50 * time.Millisecond, 51 * time.Millisecond},
		{100 * time.Millisecond, 95_899_999, 5 * time.Millisecond},
		{100 * time.Millisecond, 95_900_000, 0},
		{time.Hour, 9_985_999_999, time.Hour - 9976*time.Millisecond},
		{time.Hour, 9_986_000_000, 0},
		{5 * time.Millisecond, 0, 5 * time.Millisecond},
		{5 * time.Millisecond, 994_999, 5 * time.Millisecond},
		{5 * time.Millisecond, 995_000, 0},
		{4 * time.Millisecond, 0, 0}, // over before the reply came
	} {
		p, clock := window(t), &manual{}
		clock.advance(time.Hour)
		port := &stub{answer: func(ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
			clock.advance(took)
			o := denial(p, c.retryAfter)
			o.Decision.Remaining = 2
			return o, nil
		}}
		l := newCache(t, port, clock.now, 8, p)
		ask(t, l, p, subjectOf(t, 1), 3)
		clock.advance(c.after)
		got := ask(t, l, p, subjectOf(t, 1), 3)
		if c.left == 0 {
			if cached(got) || port.calls.Load() != 2 {
				t.Errorf("%v after a denial for %v: %+v", c.after, c.retryAfter, got)
			}
			continue
		}
		want := denial(p, c.left)
		want.Decision.Remaining, want.Decision.Source = 2, ratelimit.SourceDenialCache
		if got != ratelimit.Outcome(want) || port.calls.Load() != 1 {
			t.Errorf("%v after a denial for %v:\n got %+v\nwant %+v", c.after, c.retryAfter, got, want)
		}
	}
}

// TestCosts: a lower cost asks the store, and what it gets changes nothing for higher ones.
func TestCosts(t *testing.T) {
	t.Parallel()
	p, clock := window(t), &manual{}
	subject := subjectOf(t, 1)
	var admit bool
	port := &stub{answer: func(ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		o := denial(p, 5*time.Second)
		o.Decision.Allowed = admit
		return o, nil
	}}
	l := newCache(t, port, clock.now, 8, p)
	expect := func(cost int64, here bool) {
		t.Helper()
		if got := ask(t, l, p, subject, cost); cached(got) != here {
			t.Errorf("cost %d at %v: %+v, want it answered here: %v", cost, time.Duration(clock.ns.Load()), got, here)
		}
	}
	expect(5, false)
	admit = true
	expect(4, false) // admitted
	expect(5, true)
	expect(10, true)
	clock.advance(time.Second)
	admit = false
	expect(3, false) // denied: the claim is now about 3 and above, until later
	expect(3, true)
	expect(4, true)
	expect(5, true)
	clock.advance(4500 * time.Millisecond)
	expect(5, true)
	expect(2, false)
	expect(1, false)
	expect(1, true)
}

// TestHigherCostsWaitLonger: what is told to a higher cost than the one that was denied.
func TestHigherCostsWaitLonger(t *testing.T) {
	t.Parallel()
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, c := range []struct {
		shape      shape
		retryAfter time.Duration
		cost       int64
		want       time.Duration
	}{
		{shape{algorithm: ratelimit.AlgorithmFixedWindow, limit: 10, window: 60_000}, ms(400), 10, ms(400)},
		{shape{algorithm: ratelimit.AlgorithmTokenBucket, limit: 10, rate: 10, window: 1000}, ms(40), 2, ms(140)},
		{shape{algorithm: ratelimit.AlgorithmTokenBucket, limit: 10, rate: 3, window: 1000}, ms(40), 2, ms(374)},
		{shape{algorithm: ratelimit.AlgorithmGCRA, limit: 10, rate: 3, window: 1000}, ms(40), 4, ms(1040)},
		{shape{algorithm: ratelimit.AlgorithmGCRA, limit: 1000, rate: 1000, window: 10}, ms(3), 2, ms(4)},
		{shape{algorithm: ratelimit.AlgorithmSlidingWindowLog, limit: 10, window: 60_000, regression: 500}, ms(400), 2, ms(60_399)},
		{shape{algorithm: ratelimit.AlgorithmSlidingWindowLog, limit: 10, window: 60_000, regression: 500}, ms(40_000), 2, ms(60_500)},
		{shape{algorithm: ratelimit.AlgorithmSlidingWindowLog, limit: 10, window: 60_000}, ms(3), 2, ms(60_000)},
		{shape{algorithm: ratelimit.AlgorithmSlidingWindowCounter, limit: 10, window: 60_000, regression: 500}, ms(400), 2, ms(120_399)},
		{shape{algorithm: ratelimit.AlgorithmSlidingWindowCounter, limit: 10, window: 60_000, regression: 500}, ms(80_000), 2, ms(120_500)},
		// A store that waits for longer than it can is believed.
		{shape{algorithm: ratelimit.AlgorithmSlidingWindowLog, limit: 10, window: 60_000, regression: 500}, ms(70_000), 2, ms(70_000)},
	} {
		p, clock := mustPolicy(t, c.shape), &manual{}
		port := &stub{answer: func(ratelimit.RateLimitRequest) (ratelimit.Outcome, error) { return denial(p, c.retryAfter), nil }}
		l := newCache(t, port, clock.now, 8, p)
		ask(t, l, p, subjectOf(t, 1), 1)
		got := ask(t, l, p, subjectOf(t, 1), c.cost)
		if e, ok := got.(ratelimit.Evaluated); !ok || !cached(got) || e.Decision.RetryAfter != c.want {
			t.Errorf("%+v, cost %d after a denial of cost 1 for %v: %+v, want %v", c.shape, c.cost, c.retryAfter, got, c.want)
		}
	}
}

// TestRequestsAreJudgedFirst: a claim answers no request that is none, that is late, or that nobody waits
// for.
func TestRequestsAreJudgedFirst(t *testing.T) {
	t.Parallel()
	p, clock := window(t), &manual{}
	clock.advance(1000 * time.Hour)
	port := &stub{answer: func(ratelimit.RateLimitRequest) (ratelimit.Outcome, error) { return denial(p, 5*time.Second), nil }}
	l := newCache(t, port, clock.now, 8, p)
	subject := subjectOf(t, 1)
	ask(t, l, p, subject, 1)
	good := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subject, Cost: 1, Deadline: farAway}
	for fault, edit := range map[ratelimit.RequestFault]func(*ratelimit.RateLimitRequest){
		ratelimit.FaultUnknownPolicy: func(r *ratelimit.RateLimitRequest) { r.PolicyID = "q" },
		ratelimit.FaultSubject:       func(r *ratelimit.RateLimitRequest) { r.Subject = ratelimit.SubjectDigest{} },
		ratelimit.FaultCost:          func(r *ratelimit.RateLimitRequest) { r.Cost = 11 },
		ratelimit.FaultEvaluationID:  func(r *ratelimit.RateLimitRequest) { r.EvaluationID = "e" },
		ratelimit.FaultDeadline:      func(r *ratelimit.RateLimitRequest) { r.Deadline = time.Time{} },
	} {
		request := good
		edit(&request)
		var invalid *ratelimit.InvalidRequestError
		if o, err := l.Evaluate(t.Context(), request); o != nil || !errors.As(err, &invalid) || invalid.Fault != fault {
			t.Errorf("%v: %+v, %v", fault, o, err)
		}
	}
	if n := port.calls.Load(); n != 1 {
		t.Errorf("the port was asked %d times", n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late := good
	late.Deadline = clock.now()
	for name, c := range map[string]struct {
		ctx     context.Context
		request ratelimit.RateLimitRequest
	}{"late": {t.Context(), late}, "gone": {gone, good}} {
		before := port.calls.Load()
		if o, err := l.Evaluate(c.ctx, c.request); err != nil || cached(o) || port.calls.Load() != before+1 {
			t.Errorf("%s: %+v, %v, want the port to be asked", name, o, err)
		}
	}
	inTime := good
	inTime.Deadline = clock.now().Add(1)
	if o, err := l.Evaluate(t.Context(), inTime); err != nil || !cached(o) {
		t.Errorf("in time: %+v, %v", o, err)
	}
}

// TestClaimsAreApart: subjects, and policies of one subject.
func TestClaimsAreApart(t *testing.T) {
	t.Parallel()
	var policies []*ratelimit.RateLimitPolicy
	for _, id := range []ratelimit.PolicyID{"a", "b", "c"} {
		p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
			ID: id, Revision: 1, Algorithm: ratelimit.AlgorithmFixedWindow, Parameters: ratelimit.FixedWindowParameters{Limit: 10, Window: time.Minute},
			MaxCost: 10, FailurePolicy: ratelimit.FailClosed,
		})
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	set := setOf(t, policies...)
	port := &stub{answer: func(r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		return denial(set.Get(r.PolicyID), 5*time.Second), nil
	}}
	clock := &manual{}
	l := newCache(t, port, clock.now, 64, policies...)
	for i, p := range policies {
		for n := range 3 {
			if o := ask(t, l, p, subjectOf(t, n), 1); cached(o) {
				t.Errorf("policy %d, subject %d: %+v before it was denied", i, n, o)
			}
			if o := ask(t, l, p, subjectOf(t, n), 1); !cached(o) || o.(ratelimit.Evaluated).Decision.PolicyID != p.ID() { //nolint:forcetypeassert // cached says what it is.
				t.Errorf("policy %d, subject %d: %+v after it", i, n, o)
			}
		}
	}
	if l.Entries() != 9 {
		t.Errorf("%d entries", l.Entries())
	}
}

// TestAClaimIsOfItsRevision: one made under another revision than the request's is not found, wherever it
// came from.
func TestAClaimIsOfItsRevision(t *testing.T) {
	t.Parallel()
	p, clock := window(t), &manual{}
	port := &stub{answer: func(ratelimit.RateLimitRequest) (ratelimit.Outcome, error) { return denial(p, 5*time.Second), nil }}
	l := newCache(t, port, clock.now, 8, p)
	k := l.known[p].key(subjectOf(t, 1))
	k.revision++
	l.claims.keep(l.claims.hash(&k), &claim{key: k, cost: 1, until: time.Second}, 0, prevail)
	if o := ask(t, l, p, subjectOf(t, 1), 1); cached(o) {
		t.Errorf("%+v", o)
	}
}

// TestBounded: however many subjects are denied, no more claims are held than configured, and each one that
// is answered is answered with what was said of it.
func TestBounded(t *testing.T) {
	t.Parallel()
	const subjects = 500
	p := mustPolicy(t, shape{algorithm: ratelimit.AlgorithmTokenBucket, limit: 1 << 20, rate: 1, window: 1000})
	index := map[ratelimit.SubjectDigest]int64{}
	digests := make([]ratelimit.SubjectDigest, subjects)
	for i := range digests {
		digests[i] = subjectOf(t, i)
		index[digests[i]] = int64(i)
	}
	for _, entries := range []int{1, 2, 7, 8, 9, 64, 100, 1024} {
		clock := &manual{}
		rng := rand.New(rand.NewPCG(1, uint64(entries)))
		port := &stub{answer: func(r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
			o := denial(p, time.Duration(1+index[r.Subject])*10*time.Millisecond)
			o.Decision.Remaining = index[r.Subject]
			return o, nil
		}}
		l := newCache(t, port, clock.now, entries, p)
		here := 0
		for range 20_000 {
			clock.advance(time.Duration(rng.Int64N(int64(time.Millisecond))))
			n := rng.IntN(subjects)
			if rng.IntN(2) == 0 {
				n = rng.IntN(min(entries, 8)) // some are asked for again and again
			}
			o, ok := ask(t, l, p, digests[n], subjects+1).(ratelimit.Evaluated)
			if !ok || o.Decision.Allowed || o.Decision.Remaining != int64(n) || o.Decision.RetryAfter > time.Duration(1+n)*10*time.Millisecond {
				t.Fatalf("subject %d: %+v", n, o)
			}
			if cached(o) {
				here++
			} else if !cached(ask(t, l, p, digests[n], subjects+1)) {
				t.Fatalf("subject %d was denied and is asked for again at that moment", n)
			}
			if l.Entries() > entries {
				t.Fatalf("%d entries, at most %d wanted", l.Entries(), entries)
			}
		}
		if places := max(entries/8*8, min(entries, 8)); here == 0 || l.Entries() != min(places, l.Entries()) || entries <= 100 && l.Entries() != places {
			t.Errorf("of %d: %d entries, %d answered here", entries, l.Entries(), here)
		}
	}
}

// TestWhatGoes: an ended claim first, then those that nobody asked for, then the one that ends first.
func TestWhatGoes(t *testing.T) {
	t.Parallel()
	const now = 100
	type given struct {
		until time.Duration
		asked bool
	}
	for name, c := range map[string]struct {
		set  []given
		want int
		left []bool // asked, after
	}{
		"an empty place":                     {[]given{{200, false}, {}, {50, false}}, 1, []bool{false, false, false}},
		"one that has ended":                 {[]given{{200, false}, {150, false}, {100, true}}, 2, []bool{false, false, true}},
		"one not asked for, though later":    {[]given{{110, true}, {300, false}, {120, true}}, 1, []bool{true, false, true}},
		"the first to end of those not":      {[]given{{110, true}, {300, false}, {200, false}}, 2, []bool{true, false, false}},
		"the first to end where all are":     {[]given{{300, true}, {110, true}, {200, true}}, 1, []bool{false, false, false}},
		"the first of all, and all forgiven": {[]given{{110, true}, {300, true}}, 0, []bool{false, false}},
	} {
		places := make([]place, len(c.set))
		for i, g := range c.set {
			if g.until > 0 {
				held := &claim{until: g.until}
				held.asked.Store(g.asked)
				places[i].claim.Store(held)
			}
		}
		got := choose(places, now)
		var left []bool
		for i := range places {
			held := places[i].claim.Load()
			left = append(left, held != nil && held.asked.Load())
		}
		if got != &places[c.want] || !slices.Equal(left, c.left) {
			t.Errorf("%s: another went, or %v are left asked, want %d, %v", name, left, c.want, c.left)
		}
	}
}

// TestManyCallers: concurrent callers get what was said of their own subject, and nothing is admitted.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, shape{algorithm: ratelimit.AlgorithmTokenBucket, limit: 1 << 20, rate: 1, window: 1000})
	const subjects = 40
	index := map[ratelimit.SubjectDigest]int64{}
	digests := make([]ratelimit.SubjectDigest, subjects)
	for i := range digests {
		digests[i] = subjectOf(t, i)
		index[digests[i]] = int64(i)
	}
	port := &stub{answer: func(r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		o := denial(p, time.Duration(3+index[r.Subject])*time.Millisecond)
		o.Decision.Remaining = index[r.Subject]
		return o, nil
	}}
	l := newCache(t, port, nil, 16, p)
	var wg sync.WaitGroup
	var here atomic.Int64
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(g)))
			for range 20_000 {
				n := rng.IntN(subjects)
				o, err := l.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: digests[n], Cost: subjects + rng.Int64N(10), Deadline: farAway})
				e, ok := o.(ratelimit.Evaluated)
				if err != nil || !ok || e.Decision.Allowed || e.Decision.Remaining != int64(n) || e.Decision.RetryAfter < time.Millisecond {
					t.Errorf("subject %d: %+v, %v", n, o, err)
					return
				}
				if cached(o) {
					here.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if l.Entries() > 16 || here.Load() == 0 {
		t.Errorf("%d entries, %d answered here", l.Entries(), here.Load())
	}
}

// TestAReadingFromBefore: a caller whose clock reading is older than a claim's reply asks the store.
func TestAReadingFromBefore(t *testing.T) {
	t.Parallel()
	c := &claim{cost: 1, reply: 100, until: 200}
	for now, want := range map[time.Duration]bool{0: false, 99: false, 100: true, 199: true, 200: false} {
		if got := c.answers(&key{}, 1, now); got != want {
			t.Errorf("at %d: %v", now, got)
		}
	}
}

// AllocsPerRun counts what the whole process allocates, so this test is not parallel.
func TestAnAnswerIsOneAllocation(t *testing.T) {
	p := window(t)
	l := newCache(t, &stub{answer: func(ratelimit.RateLimitRequest) (ratelimit.Outcome, error) { return denial(p, time.Hour), nil }}, nil, 8, p)
	ctx := t.Context()
	request := ratelimit.RateLimitRequest{PolicyID: p.ID(), Subject: subjectOf(t, 1), Cost: 1, Deadline: farAway}
	if _, err := l.Evaluate(ctx, request); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if o, err := l.Evaluate(ctx, request); err != nil || !cached(o) {
			t.Fatal(o, err)
		}
	}); n != 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestSizes holds the sizes that the documents name.
func TestSizes(t *testing.T) {
	t.Parallel()
	if claims, places := reflect.TypeFor[claim]().Size(), reflect.TypeFor[place]().Size(); claims != 112 || places != 16 {
		t.Errorf("a claim takes %d bytes and a place %d", claims, places)
	}
}
