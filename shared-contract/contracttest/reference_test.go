package contracttest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// faultVariable names the deliberate fault that the reference provider has in a subprocess.
const faultVariable = "EDGELIMIT_CONTRACT_FAULT"

// TestReference runs the whole suite over a provider that can do everything: one map of text fields
// under one lock, with a clock that is set by hand.
func TestReference(t *testing.T) {
	contracttest.RunEdgeRateLimit(t, func(testing.TB) *contracttest.Backend {
		return newReference(os.Getenv(faultVariable)).backend()
	})
}

type fields map[string]string

// reference is a store of text fields, as a remote store would be, and the faults that it may have.
type reference struct {
	fault string

	mu     sync.Mutex
	now    time.Time
	newest time.Time
	states map[string]fields
	expiry map[string]time.Time
}

func newReference(fault string) *reference {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &reference{fault: fault, now: now, newest: now, states: map[string]fields{}, expiry: map[string]time.Time{}}
}

func (r *reference) backend() *contracttest.Backend {
	return &contracttest.Backend{
		New: func(t testing.TB, policies ...*ratelimit.RateLimitPolicy) ratelimit.EdgeRateLimitPort {
			set, err := ratelimit.NewPolicySet(policies...)
			if err != nil {
				t.Fatal(err)
			}
			return &referenceLimiter{store: r, policies: set}
		},
		Source: ratelimit.SourceLocalMemory, Now: r.clock, SetTime: r.setTime,
		Advance: func(d time.Duration) { r.setTime(r.clock().Add(d)) },
		Shares:  true, TTL: r.ttl, State: r.state, PutForeign: r.putForeign,
		Fields: r.fields, Corrupt: r.corrupt, Drop: r.drop,
	}
}

func (r *reference) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *reference) setTime(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = now
	if now.After(r.newest) {
		r.newest = now
	}
	for key, at := range r.expiry {
		if !at.After(r.newest) && r.fault != "never-expires" {
			delete(r.states, key)
			delete(r.expiry, key)
		}
	}
}

func (r *reference) key(p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) string {
	text := subject.String()
	switch r.fault {
	case "policies-collide":
		return fmt.Sprintf("%d/%v/%s", p.Revision(), p.Algorithm(), text)
	case "policy-case-ignored":
		return fmt.Sprintf("%s/%d/%v/%s", strings.ToLower(string(p.ID())), p.Revision(), p.Algorithm(), text)
	case "revision-ignored":
		return fmt.Sprintf("%s/%v/%s", p.ID(), p.Algorithm(), text)
	case "digest-cut":
		text = text[:60]
	}
	return fmt.Sprintf("%s/%d/%v/%s", p.ID(), p.Revision(), p.Algorithm(), text)
}

func (r *reference) ttl(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.expiry[r.key(p, subject)]
	return at.Sub(r.now), ok
}

func (r *reference) state(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.states[r.key(p, subject)]
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(state)) {
		fmt.Fprintf(&text, "%s=%q ", name, state[name])
	}
	return text.String()
}

func (r *reference) putForeign(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, kind contracttest.ForeignKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[r.key(p, subject)] = fields{"other kind": string(kind)}
}

func (r *reference) fields(p *ratelimit.RateLimitPolicy) []contracttest.StateField {
	all := []contracttest.StateField{{Name: "identity", Text: true}, {Name: "last", Max: algorithm.MaxNowMillis}, {Name: "expiry", Max: algorithm.MaxExact}}
	switch parameters := p.Parameters().(type) {
	case ratelimit.FixedWindowParameters:
		return append(all, contracttest.StateField{Name: "a", Max: p.Limit()})
	case ratelimit.SlidingWindowCounterParameters:
		return append(all, contracttest.StateField{Name: "a", Max: p.Limit()}, contracttest.StateField{Name: "b", Max: p.Limit()})
	case ratelimit.TokenBucketParameters:
		return append(all, contracttest.StateField{Name: "a", Max: p.Limit() - 1}, contracttest.StateField{Name: "b", Max: parameters.Arithmetic(p.Clock()).Rate().Denominator - 1})
	case ratelimit.GCRAParameters:
		return append(all, contracttest.StateField{Name: "a", Max: algorithm.MaxNowMillis + algorithm.MaxHorizonMillis},
			contracttest.StateField{Name: "b", Max: parameters.Arithmetic(p.Clock()).Rate().Numerator - 1})
	case ratelimit.SlidingWindowLogParameters:
		// The field entries, which is no number, is not among them.
		return append(all, contracttest.StateField{Name: "a", Max: algorithm.MaxExact - p.Limit()})
	}
	return nil
}

func (r *reference) corrupt(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, field, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[r.key(p, subject)][field] = value
}

func (r *reference) drop(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest, field string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states[r.key(p, subject)], field)
}

type referenceLimiter struct {
	store    *reference
	policies *ratelimit.PolicySet
}

func (l *referenceLimiter) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	r := l.store
	policy, deadline, err := l.policies.Admit(ctx, request)
	if err != nil {
		if r.fault == "outcome-beside-error" {
			return ratelimit.Indeterminate{PolicyID: request.PolicyID, RetryAfter: time.Second}, err
		}
		var invalid *ratelimit.InvalidRequestError
		if r.fault != "cost-unchecked" || !errors.As(err, &invalid) || invalid.Fault != ratelimit.FaultCost {
			return nil, err
		}
		return ratelimit.Unavailable{PolicyID: request.PolicyID, RetryAfter: time.Second, Category: ratelimit.UnavailableCapacity}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if deadline.Before(r.now) && r.fault != "deadline-ignored" || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ratelimit.Unavailable{PolicyID: policy.ID(), RetryAfter: time.Second, Category: ratelimit.UnavailableDeadline}, nil
	}
	if ctx.Err() != nil && r.fault != "cancel-ignored" {
		return ratelimit.Unavailable{PolicyID: policy.ID(), RetryAfter: time.Second, Category: ratelimit.UnavailableCanceled}, nil
	}
	outcome := ratelimit.Conclude(policy, r.decide(policy, request), ratelimit.SourceLocalMemory)
	if evaluated, ok := outcome.(ratelimit.Evaluated); ok && r.fault == "uncertain" {
		evaluated.Decision.Certainty = ratelimit.CertaintyCertain
		return evaluated, nil
	}
	return outcome, nil
}

// decide reads, decides and writes under the lock.
func (r *reference) decide(policy *ratelimit.RateLimitPolicy, request ratelimit.RateLimitRequest) algorithm.Decision {
	key, now := r.key(policy, request.Subject), r.now.UnixMilli()
	stored, found := r.states[key]
	if found && r.fault == "forgives-corruption" && (len(stored) < 3 || !digits(stored["a"])) {
		stored, found = nil, false
	}
	before, ok := r.read(policy, stored)
	if found && !ok {
		if r.fault == "overwrites-incompatible" {
			r.states[key] = fields{"other kind": "cleared"}
		}
		return algorithm.Rejected(algorithm.StatusStateIncompatible, now)
	}
	var d algorithm.Decision
	var after fields
	clock := policy.Clock()
	if r.fault == "regression-ignored" {
		clock.MaxRegressionMillis = algorithm.MaxRegressionMillis
	}
	switch parameters := policy.Parameters().(type) {
	case ratelimit.FixedWindowParameters:
		arithmetic := parameters.Arithmetic(clock)
		arithmetic.Limit += r.extra()
		state := algorithm.FixedWindowState{Present: found, LastObserved: before[0], Consumed: before[1], Window: before[0] / arithmetic.WindowMillis, ExpiresAt: before[3]}
		d, state = arithmetic.Decide(state, now, request.Cost)
		if r.fault == "spends-on-denial" && d.Status == algorithm.StatusDenied {
			state.Consumed++
			d.Status = algorithm.StatusDenied
			r.write(key, text(policy, state.LastObserved, state.Consumed, 0, state.ExpiresAt))
		}
		after = text(policy, state.LastObserved, state.Consumed, 0, state.ExpiresAt)
	case ratelimit.SlidingWindowCounterParameters:
		arithmetic := parameters.Arithmetic(clock)
		arithmetic.Limit += r.extra()
		window := before[0] / arithmetic.WindowMillis
		state := algorithm.SlidingCounterState{
			Present: found, LastObserved: before[0], Count: before[1], PreviousCount: before[2], Window: window, Previous: max(window-1, 0), ExpiresAt: before[3],
		}
		d, state = arithmetic.Decide(state, now, request.Cost)
		after = text(policy, state.LastObserved, state.Count, state.PreviousCount, state.ExpiresAt)
	case ratelimit.TokenBucketParameters:
		arithmetic := parameters.Arithmetic(clock)
		state := algorithm.TokenBucketState{Present: found, LastRefill: before[0], Tokens: before[1], Remainder: before[2], ExpiresAt: before[3]}
		d, state = arithmetic.Decide(state, now, request.Cost)
		if r.fault == "remainder-lost" {
			state.Remainder = 0
		}
		after = text(policy, state.LastRefill, state.Tokens, state.Remainder, state.ExpiresAt)
	case ratelimit.GCRAParameters:
		arithmetic := parameters.Arithmetic(clock)
		state := algorithm.GCRAState{Present: found, LastObserved: before[0], TAT: algorithm.Span{Millis: before[1], Fraction: before[2]}, ExpiresAt: before[3]}
		d, state = arithmetic.Decide(state, now, request.Cost)
		if r.fault == "fraction-lost" {
			state.TAT.Fraction = 0
		}
		after = text(policy, state.LastObserved, state.TAT.Millis, state.TAT.Fraction, state.ExpiresAt)
	case ratelimit.SlidingWindowLogParameters:
		arithmetic := parameters.Arithmetic(clock)
		arithmetic.Limit += r.extra()
		state := algorithm.SlidingLogState{Present: found, LastObserved: before[0], Entries: entriesOf(stored["entries"]), ExpiresAt: before[3]}
		d, state = arithmetic.Decide(state, now, request.Cost)
		if n := len(state.Entries); n > 0 {
			last := state.Entries[n-1]
			if r.fault == "log-forgets" && n > 100 {
				state.Entries = state.Entries[1:]
			}
			after = text(policy, state.LastObserved, last.Cumulative, 0, state.ExpiresAt)
			after["entries"] = fmt.Sprint(state.Entries)
		}
	}
	d.Limit -= r.extra()
	d.Remaining = min(d.Remaining, d.Limit)
	r.spoil(&d)
	if d.Status == algorithm.StatusAllowed {
		r.write(key, after)
	}
	return d
}

// extra is one where the fault is to admit one too many.
func (r *reference) extra() int64 {
	if r.fault == "limit-plus-one" {
		return 1
	}
	return 0
}

// spoil makes a decision wrong in one field.
func (r *reference) spoil(d *algorithm.Decision) {
	switch {
	case r.fault == "retry-early" && d.Status == algorithm.StatusDenied:
		d.RetryAfterMillis = max(d.RetryAfterMillis-1, 1)
	case r.fault == "retry-late" && d.Status == algorithm.StatusDenied:
		d.RetryAfterMillis++
	case r.fault == "retry-from-clamped" && d.Status == algorithm.StatusDenied:
		d.RetryAfterMillis -= d.EffectiveNowMillis - d.ServerNowMillis
	case r.fault == "reset-late":
		d.ResetAtMillis++
	case r.fault == "shortfall-wrong" && d.Status == algorithm.StatusClockUnsafe:
		d.RetryAfterMillis++
	case r.fault == "remaining-before":
		d.Remaining = min(d.Remaining+1, d.Limit)
	}
}

func (r *reference) write(key string, state fields) {
	r.states[key] = state
	at, _ := strconv.ParseInt(state["expiry"], 10, 64)
	switch r.fault {
	case "ttl-grows":
		at += int64(len(r.states)) + r.now.UnixMilli()%1000
	case "no-ttl":
		return
	}
	r.expiry[key] = time.UnixMilli(at)
}

func text(policy *ratelimit.RateLimitPolicy, last, a, b, expiry int64) fields {
	state := fields{"identity": policy.Fingerprint() + "/" + strconv.FormatInt(policy.Revision(), 10)}
	for name, value := range map[string]int64{"last": last, "a": a, "b": b, "expiry": expiry} {
		state[name] = strconv.FormatInt(value, 10)
	}
	if policy.Algorithm() == ratelimit.AlgorithmFixedWindow || policy.Algorithm() == ratelimit.AlgorithmSlidingWindowLog {
		delete(state, "b")
	}
	return state
}

// entriesOf reads what fmt prints of the entries of a log.
func entriesOf(text string) []algorithm.SlidingLogEntry {
	var entries []algorithm.SlidingLogEntry
	for _, each := range strings.Split(strings.Trim(text, "[]"), "} {") {
		var e algorithm.SlidingLogEntry
		if _, err := fmt.Sscan(strings.Trim(each, "{}"), &e.At, &e.Cumulative, &e.Cost); err == nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// read parses the stored fields: last, a, b and expiry.
func (r *reference) read(policy *ratelimit.RateLimitPolicy, state fields) (values [4]int64, ok bool) {
	if state["identity"] != policy.Fingerprint()+"/"+strconv.FormatInt(policy.Revision(), 10) && r.fault != "identity-unchecked" {
		return values, false
	}
	for _, field := range r.fields(policy) {
		if field.Text {
			continue
		}
		n, err := strconv.ParseInt(state[field.Name], 10, 64)
		if err != nil || !digits(state[field.Name]) || n > field.Max {
			return values, false
		}
		values[map[string]int{"last": 0, "a": 1, "b": 2, "expiry": 3}[field.Name]] = n
	}
	return values, true
}

func digits(text string) bool {
	return text != "" && len(text) <= 16 && strings.Trim(text, "0123456789") == ""
}
