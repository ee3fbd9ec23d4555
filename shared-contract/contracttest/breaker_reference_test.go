package contracttest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// TestBreakerReference runs the whole suite over a breaker that can do everything: text fields by key
// under one lock, with a clock that is set by hand.
func TestBreakerReference(t *testing.T) {
	t.Parallel()
	contracttest.RunCircuitBreaker(t, func(testing.TB) *contracttest.BreakerBackend {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		r := &breakerReference{fault: os.Getenv(faultVariable), now: now, newest: now, held: map[string]*breakerHeld{}}
		return r.backend()
	})
}

// breakerHeld is what stands at a key: the fields of a state, or something foreign.
type breakerHeld struct {
	foreign   contracttest.ForeignKind
	fields    map[string]string
	expiresAt int64 // ms; 0 is never
}

type breakerReference struct {
	fault string

	mu          sync.Mutex
	now, newest time.Time
	tokens      int
	held        map[string]*breakerHeld
}

func (r *breakerReference) key(p *breaker.Policy, resource breaker.ResourceDigest) string {
	if r.fault == "policies-collide" {
		return resource.String()
	}
	if r.fault == "revision-ignored" {
		return fmt.Sprint(p.ID(), resource)
	}
	return fmt.Sprint(p.ID(), "/", p.Revision(), "/", resource)
}

// at gives what stands at a key and has not expired. The lock is held.
func (r *breakerReference) at(key string) *breakerHeld {
	h := r.held[key]
	if h != nil && h.expiresAt != 0 && r.newest.UnixMilli() > h.expiresAt && r.fault != "never-expires" {
		delete(r.held, key)
		return nil
	}
	return h
}

func (r *breakerReference) backend() *contracttest.BreakerBackend {
	locked := func(f func()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		f()
	}
	now := func() (now time.Time) {
		locked(func() { now = r.now })
		return now
	}
	set := func(to time.Time) {
		locked(func() {
			r.now = to
			if to.After(r.newest) {
				r.newest = to
			}
		})
	}
	return &contracttest.BreakerBackend{
		New: func(t testing.TB, policies ...*breaker.Policy) breaker.CircuitBreakerPort {
			s, err := breaker.NewPolicySet(policies...)
			if err != nil {
				t.Fatal(err)
			}
			return &referenceBreaker{r: r, policies: s}
		},
		Source: ratelimit.SourceLocalMemory, Now: now, SetTime: set, Advance: func(d time.Duration) { set(now().Add(d)) }, Shares: true,
		TTL: func(_ testing.TB, p *breaker.Policy, resource breaker.ResourceDigest) (ttl time.Duration, ok bool) {
			locked(func() {
				if h := r.at(r.key(p, resource)); h != nil && h.expiresAt != 0 {
					ttl, ok = time.Duration(h.expiresAt-r.now.UnixMilli())*time.Millisecond, true
				}
			})
			return ttl, ok
		},
		State: func(_ testing.TB, p *breaker.Policy, resource breaker.ResourceDigest) (text string) {
			locked(func() {
				if h := r.at(r.key(p, resource)); h != nil {
					text = fmt.Sprintf("%s %q", h.foreign, h.fields)
				}
			})
			return text
		},
		PutForeign: func(_ testing.TB, p *breaker.Policy, resource breaker.ResourceDigest, kind contracttest.ForeignKind) {
			locked(func() { r.held[r.key(p, resource)] = &breakerHeld{foreign: kind} })
		},
		Corrupt: func(_ testing.TB, p *breaker.Policy, resource breaker.ResourceDigest, field, value string) {
			locked(func() { r.held[r.key(p, resource)].fields[field] = value })
		},
		Drop: func(_ testing.TB, p *breaker.Policy, resource breaker.ResourceDigest, field string) {
			locked(func() { delete(r.held[r.key(p, resource)].fields, field) })
		},
	}
}

type referenceBreaker struct {
	r        *breakerReference
	policies *breaker.PolicySet
}

// load reads a state. It reports false for what is none. The lock is held.
func (b *referenceBreaker) load(p *breaker.Policy, key string) (breaker.Stored, bool) {
	h := b.r.at(key)
	if h == nil {
		return breaker.Stored{}, true
	}
	if b.r.fault == "forgives-corruption" {
		if s, ok := p.Machine().ParseFields(p.Fingerprint(), b.texts(p, h)); ok {
			return s, true
		}
		return breaker.Stored{}, true
	}
	identity := p.Fingerprint()
	if b.r.fault == "identity-unchecked" {
		identity = h.fields["m"]
	}
	return p.Machine().ParseFields(identity, b.texts(p, h))
}

func (b *referenceBreaker) texts(p *breaker.Policy, h *breakerHeld) []string {
	var texts []string
	for _, name := range p.Machine().FieldNames() {
		if text, ok := h.fields[name]; ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func (b *referenceBreaker) decide(
	ctx context.Context, p *breaker.Policy, resource breaker.ResourceDigest, deadline time.Time,
	run func(m breaker.Machine, s breaker.Stored, now int64, token string) (breaker.Transition, breaker.Stored),
) (breaker.Transition, string, breaker.Failure) {
	r := b.r
	r.mu.Lock()
	defer r.mu.Unlock()
	down := func(category ratelimit.UnavailableCategory) (breaker.Transition, string, breaker.Failure) {
		return breaker.Transition{}, "", breaker.Unavailable{PolicyID: p.ID(), RetryAfter: time.Second, Category: category}
	}
	if errors.Is(ctx.Err(), context.Canceled) && r.fault != "cancel-ignored" {
		return down(ratelimit.UnavailableCanceled)
	}
	if !r.now.Before(deadline) && r.fault != "deadline-ignored" {
		return down(ratelimit.UnavailableDeadline)
	}
	now := r.now.UnixMilli()
	key := r.key(p, resource)
	s, ok := b.load(p, key)
	if !ok {
		if r.fault == "overwrites-incompatible" {
			r.held[key] = &breakerHeld{fields: map[string]string{}}
		}
		return breaker.Refused(breaker.StatusStateIncompatible, now), "", nil
	}
	r.tokens++
	token := fmt.Sprintf("%032x", r.tokens)
	m := p.Machine()
	switch r.fault {
	case "one-probe-more":
		m.MaxProbes = min(m.MaxProbes+1, breaker.MostProbes)
	case "trips-late":
		if m.Threshold > 0 {
			m.Threshold++
		}
	case "trips-early":
		if m.Threshold > 1 {
			m.Threshold--
		}
	case "rate-off":
		if m.RatePermille > 1 {
			m.RatePermille--
		}
	case "minimum-ignored":
		m.MinimumCalls = min(m.MinimumCalls, 1)
	case "timeout-early":
		m.OpenTimeoutMillis = max(m.OpenTimeoutMillis-1, 1)
	case "lease-long":
		m.ProbeLeaseMillis++
	case "closes-early":
		m.ProbeSuccesses = 1
	case "regression-ignored":
		m.Clock.MaxRegressionMillis = 1 << 40
	case "lifetime-short":
		m.Clock.GraceMillis -= 10
	}
	t, after := run(m, s, now, token)
	if t.Writes {
		h := &breakerHeld{fields: map[string]string{}, expiresAt: t.EffectiveNowMillis + m.LifetimeMillis()}
		if r.fault == "no-ttl" {
			h.expiresAt = 0
		}
		for i, text := range m.Fields(p.Fingerprint(), after) {
			h.fields[m.FieldNames()[i]] = text
		}
		r.held[key] = h
	}
	return t, token, nil
}

func (b *referenceBreaker) Acquire(ctx context.Context, request breaker.AcquireRequest) (breaker.AcquireOutcome, error) {
	p, deadline, err := b.policies.AdmitAcquire(ctx, request)
	if err != nil {
		if b.r.fault == "outcome-beside-error" {
			return breaker.Rejected{}, err
		}
		return nil, err
	}
	t, token, failure := b.decide(ctx, p, request.Resource, deadline,
		func(m breaker.Machine, s breaker.Stored, now int64, token string) (breaker.Transition, breaker.Stored) {
			t, after := m.Acquire(s, now, token)
			if b.r.fault == "rejection-writes" && t.Status == breaker.StatusRejected {
				t.Writes = true
				after.LastObserved = t.EffectiveNowMillis + 1
			}
			return t, after
		})
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeAcquire(p, request.Resource, token, t, ratelimit.SourceLocalMemory), nil
}

func (b *referenceBreaker) Record(ctx context.Context, request breaker.RecordRequest) (breaker.RecordOutcome, error) {
	p, deadline, err := b.policies.AdmitRecord(ctx, request)
	if err != nil {
		return nil, err
	}
	permit := request.Permit
	report := breaker.Report{Kind: permit.Kind, Token: permit.Token, Generation: permit.Generation, AcquiredAt: permit.AcquiredAt, Result: request.Result}
	if b.r.fault == "neither-fails" && report.Result == breaker.ResultNeither {
		report.Result = breaker.ResultFailure
	}
	t, _, failure := b.decide(ctx, p, permit.Resource, deadline,
		func(m breaker.Machine, s breaker.Stored, now int64, _ string) (breaker.Transition, breaker.Stored) {
			switch b.r.fault {
			case "late-call-counts":
				report.Generation = s.Since
			case "old-call-counts":
				report.AcquiredAt = now
			case "late-probe-counts":
				for i, probe := range s.Probes {
					if probe.Token == report.Token {
						s.Probes[i].ExpiresAt = now + 1
					}
				}
			}
			return m.Record(s, now, report)
		})
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeRecord(p, t, ratelimit.SourceLocalMemory), nil
}

func (b *referenceBreaker) Read(ctx context.Context, request breaker.ReadRequest) (breaker.ReadOutcome, error) {
	p, deadline, err := b.policies.AdmitRead(ctx, request)
	if err != nil {
		return nil, err
	}
	t, _, failure := b.decide(ctx, p, request.Resource, deadline,
		func(m breaker.Machine, s breaker.Stored, now int64, _ string) (breaker.Transition, breaker.Stored) {
			return m.Read(s, now), s
		})
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeRead(p, t, ratelimit.SourceLocalMemory), nil
}

// TestBreakerSuiteFindsFaults runs the suite in a process of its own over the reference breaker with
// one deliberate fault at a time. It must fail, and in the subtest that is there for that fault.
func TestBreakerSuiteFindsFaults(t *testing.T) {
	if os.Getenv(faultVariable) != "" {
		t.Fatal("a faulty process must run TestBreakerReference alone")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for fault, where := range map[string][]string{
		"policies-collide":        {"ResourcesAndPoliciesAreApart"},
		"revision-ignored":        {"RevisionsBeginClosed"},
		"identity-unchecked":      {"OtherParametersOfOneRevision", "CorruptFields"},
		"forgives-corruption":     {"CorruptFields", "MissingFields", "ForeignKeys"},
		"overwrites-incompatible": {"CorruptFields", "ForeignKeys"},
		"never-expires":           {"StateGoesByItself"},
		"no-ttl":                  {"LifetimeIsFinite", "LifetimeIsExact"},
		"lifetime-short":          {"LifetimeIsExact", "Forgotten"},
		"cancel-ignored":          {"Deadlines"},
		"deadline-ignored":        {"Deadlines"},
		"outcome-beside-error":    {"RequestFaults"},
		"one-probe-more":          {"ProbesAreBounded", "ProbeRush", "LeaseIsExact"},
		"trips-late":              {"ConsecutiveFailuresTrip", "TripRush"},
		"trips-early":             {"ConsecutiveFailuresTrip", "TripRush"},
		"rate-off":                {"FailureRateTrips"},
		"minimum-ignored":         {"FailureRateHasAMinimum"},
		"timeout-early":           {"OpenTimeoutIsExact", "SmallStepsBackAreClamped"},
		"lease-long":              {"LeaseIsExact", "OpenTimeoutIsExact"},
		"closes-early":            {"ProbeSuccessesClose", "InstancesAgree"},
		"regression-ignored":      {"LargeStepsBackAreUnsafe"},
		"rejection-writes":        {"OpenTimeoutIsExact", "ConsecutiveFailuresTrip"},
		"neither-fails":           {"NeitherCountsNothing", "ProbeIsReleased"},
		"late-call-counts":        {"CallsOfBeforeATripAreLate"},
		"old-call-counts":         {"CallsAreLateAfterTheLifetime"},
		"late-probe-counts":       {"LeaseIsExact"},
	} {
		t.Run(fault, func(t *testing.T) {
			command := exec.Command(self, "-test.run=^TestBreakerReference$/"+only(where), "-test.count=1")
			command.Env = append(os.Environ(), faultVariable+"="+fault)
			output, err := command.CombinedOutput()
			if err == nil {
				t.Fatalf("the suite passes a breaker with the fault %s", fault)
			}
			if strings.Contains(string(output), "panic: ") {
				t.Fatalf("the suite panics:\n%s", output)
			}
			for _, name := range where {
				if !strings.Contains(string(output), "--- FAIL: TestBreakerReference/"+name+" ") {
					t.Errorf("TestBreakerReference/%s does not notice the fault %s", name, fault)
				}
			}
		})
	}
}
