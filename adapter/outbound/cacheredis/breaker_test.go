package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func breakerPolicy(t testing.TB, change ...func(c *breaker.PolicyConfig)) *breaker.Policy {
	t.Helper()
	config := breaker.PolicyConfig{
		ID: "login", Revision: 3, Trip: breaker.ConsecutiveFailures{Threshold: 5}, OpenTimeout: time.Second, MaxProbes: 2,
		ProbeLease: 2 * time.Second, ProbeSuccesses: 3, CleanupGrace: time.Minute, MaxClockRegression: time.Second,
	}
	for _, f := range change {
		f(&config)
	}
	p, err := breaker.NewPolicy(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func breakerFor(t testing.TB, s store.Store, policies ...*breaker.Policy) *CircuitBreaker {
	t.Helper()
	if len(policies) == 0 {
		policies = []*breaker.Policy{breakerPolicy(t)}
	}
	set, err := breaker.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewCircuitBreaker(s, BreakerConfig{
		Policies: set, Namespace: "test", Secret: []byte(strings.Repeat("s", 32)), MaxInFlight: 2, CommandTimeout: 100 * time.Millisecond,
		UnavailableRetryAfter: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func breakerValues(t testing.TB, values ...any) store.Reply {
	t.Helper()
	var r store.Reply
	for _, v := range values {
		value := store.Value{}
		switch v := v.(type) {
		case string:
			value = store.Text(v)
		case int:
			value = store.Integer(int64(v))
		case nil:
			value = store.Nil()
		default:
			t.Fatalf("a value of type %T", v)
		}
		if !r.Append(value) {
			t.Fatal("too many values")
		}
	}
	return r
}

// ask asks in all three ways and gives what came of each.
func askBreaker(ctx context.Context, t testing.TB, b *CircuitBreaker, left time.Duration) []any {
	t.Helper()
	deadline := time.Now().Add(left)
	resource := subject(t, "payments")
	acquired, err1 := b.Acquire(ctx, breaker.AcquireRequest{PolicyID: "login", Resource: resource, Deadline: deadline})
	permit := breaker.Permit{PolicyID: "login", PolicyRevision: 3, Resource: resource, Kind: breaker.PermitCall, Token: strings.Repeat("0", 32)}
	recorded, err2 := b.Record(ctx, breaker.RecordRequest{Permit: permit, Result: breaker.ResultFailure, Deadline: deadline})
	seen, err3 := b.Read(ctx, breaker.ReadRequest{PolicyID: "login", Resource: resource, Deadline: deadline})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return []any{acquired, recorded, seen}
}

func thrice(outcome breaker.Failure) []any { return []any{outcome, outcome, outcome} }

// TestBreakerEveryCode: each code of the store has its category where nothing was changed, and says
// "indeterminate" where something may have been.
func TestBreakerEveryCode(t *testing.T) {
	t.Parallel()
	down := func(category ratelimit.UnavailableCategory) breaker.Failure {
		return breaker.Unavailable{PolicyID: "login", RetryAfter: 3 * time.Second, Category: category}
	}
	unfit := func(category ratelimit.IncompatibleCategory) breaker.Failure {
		return breaker.Incompatible{PolicyID: "login", Category: category}
	}
	unknown := breaker.Indeterminate{PolicyID: "login", RetryAfter: 3 * time.Second}
	for name, c := range map[string]struct {
		err  error
		want breaker.Failure
	}{
		"not ready":      {&store.Error{Certainty: store.NotSent, Code: store.CodeNotReady}, down(ratelimit.UnavailableNotReady)},
		"connect":        {&store.Error{Certainty: store.NotSent, Code: store.CodeConnect}, down(ratelimit.UnavailableConnection)},
		"read only":      {&store.Error{Certainty: store.Refused, Code: store.CodeReadOnly}, down(ratelimit.UnavailableReadOnly)},
		"wrapped":        {fmt.Errorf("x: %w", &store.Error{Certainty: store.Refused, Code: store.CodeCapacity}), down(ratelimit.UnavailableCapacity)},
		"no program":     {&store.Error{Certainty: store.NotSent, Code: store.CodeUnknownProgram}, unfit(ratelimit.IncompatibleProgram)},
		"argument":       {&store.Error{Certainty: store.NotSent, Code: store.CodeInvalidArgument}, unfit(ratelimit.IncompatibleProgram)},
		"wrong type":     {&store.Error{Certainty: store.Mismatched, Code: store.CodeWrongType}, unfit(ratelimit.IncompatibleState)},
		"reply":          {&store.Error{Certainty: store.Mismatched, Code: store.CodeReply}, unfit(ratelimit.IncompatibleReply)},
		"lost":           {&store.Error{Certainty: store.Uncertain, Code: store.CodeConnectionLost}, unknown},
		"program failed": {&store.Error{Certainty: store.Uncertain, Code: store.CodeProgramFailed}, unknown},
		"no certainty":   {&store.Error{Code: store.CodeConnect}, unknown},
		"any error":      {errors.New("something"), unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := breakerFor(t, storeAnswers(store.Reply{}, c.err))
			if diff := cmp.Diff(thrice(c.want), askBreaker(t.Context(), t, b, time.Minute)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBreakerAsksNot: what cannot be answered in time, or is not wanted any more, is not sent.
func TestBreakerAsksNot(t *testing.T) {
	t.Parallel()
	f := storeThat(func(context.Context) (store.Reply, error) { return store.Reply{}, errors.New("asked") })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b := breakerFor(t, f)
	down := func(category ratelimit.UnavailableCategory) breaker.Failure {
		return breaker.Unavailable{PolicyID: "login", RetryAfter: 3 * time.Second, Category: category}
	}
	if diff := cmp.Diff(thrice(down(ratelimit.UnavailableDeadline)), askBreaker(t.Context(), t, b, 99*time.Millisecond)); diff != "" {
		t.Errorf("less time than a command takes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(thrice(down(ratelimit.UnavailableCanceled)), askBreaker(gone, t, b, time.Minute)); diff != "" {
		t.Errorf("canceled (-want +got):\n%s", diff)
	}
	b.admission.enter()
	b.admission.enter()
	if diff := cmp.Diff(thrice(down(ratelimit.UnavailableAdmission)), askBreaker(t.Context(), t, b, time.Minute)); diff != "" {
		t.Errorf("no slot (-want +got):\n%s", diff)
	}
	b.admission.leave()
	b.admission.leave()
	if err := b.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(thrice(down(ratelimit.UnavailableClosed)), askBreaker(t.Context(), t, b, time.Minute)); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	if asked := f.asked(); len(asked) != 0 {
		t.Errorf("asked %+v", asked)
	}
}

// TestBreakerReplies: what the programs can say under the policy is taken, and nothing else is.
func TestBreakerReplies(t *testing.T) {
	t.Parallel()
	const now = fakeNow
	rated := breakerPolicy(t, func(c *breaker.PolicyConfig) {
		c.Trip = breaker.FailureRate{Window: time.Second, Buckets: 2, MinimumCalls: 1, RatePermille: 1}
	})
	acquire := func(p *breaker.Policy, r store.Reply) error { _, err := parseAcquire(r, p); return err }
	record := func(p *breaker.Policy, r store.Reply) error { _, err := parseRecord(r, p); return err }
	read := func(p *breaker.Policy, r store.Reply) error { _, err := parseRead(r, p); return err }
	for _, c := range []struct {
		parse  func(*breaker.Policy, store.Reply) error
		policy *breaker.Policy // nil is that of three failures
		good   bool
		reply  []any
	}{
		{acquire, nil, true, []any{"CALL", "closed", now, now, 0, 0, 0}},
		{acquire, nil, true, []any{"CALL", "closed", now, now + 1000, now, 0, 0}},
		{acquire, nil, true, []any{"PROBE", "half-open", now, now, now - 5, 0, now + 2000}},
		{acquire, nil, true, []any{"REJECTED", "open", now, now, now, 1000, 0}},
		{acquire, nil, true, []any{"REJECTED", "open", now, now, now - 999, 1, 0}},
		{acquire, nil, true, []any{"REJECTED", "half-open", now, now, now - 5, 2000, 0}},
		{acquire, nil, true, []any{"CLOCK_UNSAFE", "INVALID", now, now, 0, 77, 0}},
		{acquire, nil, true, []any{"STATE_INCOMPATIBLE", "INVALID", now, now, 0, 0, 0}},
		{acquire, nil, true, []any{"INVALID", "INVALID", now, now, 0, 0, 0}},
		{acquire, nil, false, []any{}},
		{acquire, nil, false, []any{"CALL", "closed", now, now, 0, 0}},
		{acquire, nil, false, []any{"CALL", "closed", now, now, 0, 0, 0, 0}},
		{acquire, nil, false, []any{"CALL", "closed", now, now, 0, 0, nil}},
		{acquire, nil, false, []any{"CALL", "closed", "1", now, 0, 0, 0}},
		{acquire, nil, false, []any{1, "closed", now, now, 0, 0, 0}},
		{acquire, nil, false, []any{"ALLOWED", "closed", now, now, 0, 0, 0}},
		{acquire, nil, false, []any{"call", "closed", now, now, 0, 0, 0}},
		{acquire, nil, false, []any{"CALL", "shut", now, now, 0, 0, 0}},
		{acquire, nil, false, []any{"CALL", "INVALID", now, now, 0, 0, 0}},
		{acquire, nil, false, []any{"CALL", "open", now, now, now, 1000, 0}},
		{acquire, nil, false, []any{"CALL", "half-open", now, now, now, 0, 0}},
		{acquire, nil, false, []any{"CALL", "closed", now, now - 1, 0, 0, 0}},
		{acquire, nil, false, []any{"CALL", "closed", now, now + 1001, 0, 0, 0}},
		{acquire, nil, false, []any{"CALL", "closed", now, now, now + 1, 0, 0}},
		{acquire, nil, false, []any{"CALL", "closed", now, now, -1, 0, 0}},
		{acquire, nil, false, []any{"CALL", "closed", now, now, 0, 1, 0}},
		{acquire, nil, false, []any{"CALL", "closed", now, now, 0, 0, now}},
		{acquire, nil, false, []any{"PROBE", "half-open", now, now, now, 0, now + 1999}},
		{acquire, nil, false, []any{"PROBE", "closed", now, now, now, 0, now + 2000}},
		{acquire, nil, false, []any{"REJECTED", "open", now, now, now, 0, 0}},
		{acquire, nil, false, []any{"REJECTED", "open", now, now, now, 999, 0}},
		{acquire, nil, false, []any{"REJECTED", "half-open", now, now, now, 0, 0}},
		{acquire, nil, false, []any{"REJECTED", "half-open", now, now, now, 2001, 0}},
		{acquire, nil, false, []any{"REJECTED", "closed", now, now, now, 1, 0}},
		{acquire, nil, false, []any{"CLOCK_UNSAFE", "INVALID", now, now, 0, 0, 0}},
		{acquire, nil, false, []any{"CLOCK_UNSAFE", "closed", now, now, 0, 7, 0}},
		{acquire, nil, false, []any{"STATE_INCOMPATIBLE", "INVALID", now, now, 0, 1, 0}},
		{acquire, nil, false, []any{"COUNTED", "closed", now, now, 0, 0, 0}},
		{acquire, nil, false, []any{"READ", "closed", now, now, 0, 0, 0}},

		{record, nil, true, []any{"COUNTED", "closed", "closed", now, now, 0, 0}},
		{record, nil, true, []any{"COUNTED", "closed", "open", now, now, now, 1000}},
		{record, nil, true, []any{"COUNTED", "half-open", "closed", now, now, now, 0}},
		{record, nil, true, []any{"COUNTED", "half-open", "open", now, now, now, 1000}},
		{record, nil, true, []any{"COUNTED", "half-open", "half-open", now, now, now, 0}},
		{record, nil, true, []any{"RELEASED", "closed", "closed", now, now, 0, 0}},
		{record, nil, true, []any{"LATE", "open", "open", now, now, now, 1000}},
		{record, nil, true, []any{"CLOCK_UNSAFE", "INVALID", "INVALID", now, now, 0, 1}},
		{record, nil, false, []any{"COUNTED", "open", "open", now, now, now, 1000}},
		{record, nil, false, []any{"COUNTED", "closed", "half-open", now, now, now, 0}},
		{record, nil, false, []any{"COUNTED", "open", "closed", now, now, now, 0}},
		{record, nil, false, []any{"RELEASED", "open", "open", now, now, now, 1000}},
		{record, nil, false, []any{"LATE", "closed", "open", now, now, now, 1000}},
		{record, nil, false, []any{"LATE", "INVALID", "open", now, now, now, 1000}},
		{record, nil, false, []any{"CALL", "closed", "closed", now, now, 0, 0}},
		{record, nil, false, []any{"STATE_INCOMPATIBLE", "closed", "INVALID", now, now, 0, 0}},

		{read, nil, true, []any{"READ", "closed", now, now, 0, 0, 4, 4}},
		{read, nil, true, []any{"READ", "open", now, now, now, 1000, 0, 0}},
		{read, nil, true, []any{"READ", "half-open", now, now, now, 0, 2, 1}},
		{read, nil, true, []any{"READ", "half-open", now, now, now, 5, 2, 2}},
		{read, rated, true, []any{"READ", "closed", now, now, 0, 0, 1, 9}},
		{read, nil, false, []any{"READ", "closed", now, now, 0, 0, 5, 5}},
		{read, nil, false, []any{"READ", "closed", now, now, 0, 0, 3, 4}},
		{read, nil, false, []any{"READ", "open", now, now, now, 1000, 1, 1}},
		{read, nil, false, []any{"READ", "half-open", now, now, now, 0, 3, 1}},
		{read, nil, false, []any{"READ", "half-open", now, now, now, 5, 0, 3}},
		{read, rated, false, []any{"READ", "closed", now, now, 0, 0, 10, 9}},
		{read, nil, false, []any{"INVALID", "INVALID", now, now, 0, 0, 1, 1}},
		{read, nil, false, []any{"CALL", "closed", now, now, 0, 0, 0, 0}},
	} {
		policy := c.policy
		if policy == nil {
			policy = breakerPolicy(t)
		}
		if err := c.parse(policy, breakerValues(t, c.reply...)); (err == nil) != c.good || err != nil && !errors.Is(err, errReply) {
			t.Errorf("%v: %v, want it taken: %v", c.reply, err, c.good)
		}
	}
	b := breakerFor(t, storeAnswers(breakerValues(t, "ALLOWED", 1), nil))
	want := thrice(breaker.Incompatible{PolicyID: "login", Category: ratelimit.IncompatibleReply})
	if diff := cmp.Diff(want, askBreaker(t.Context(), t, b, time.Minute)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBreakerSendsNoTime: nothing that is sent depends on this process's clock. At another time the
// same is sent, but for the random token. Casebook 31.
func TestBreakerSendsNoTime(t *testing.T) {
	t.Parallel()
	f := storeAnswers(store.Reply{}, errors.New("down"))
	b := breakerFor(t, f)
	askBreaker(t.Context(), t, b, time.Minute)
	time.Sleep(3 * time.Millisecond) // Two readings of this process's clock differ.
	askBreaker(t.Context(), t, b, time.Hour)
	calls := f.asked()
	if len(calls) != 6 {
		t.Fatalf("%d calls", len(calls))
	}
	for i := range 3 {
		one, two := calls[i], calls[i+3]
		if one.program == store.BreakerAcquireV1 {
			if one.args[12] == two.args[12] {
				t.Error("two acquires with one token")
			}
			two.args[12] = one.args[12]
		}
		if !slices.Equal(one.args, two.args) || !slices.Equal(one.keys, two.keys) {
			t.Errorf("%s: sent %v, then %v", one.program.ID(), one.args, two.args)
		}
		if len(one.args) != len(one.program.Args) || one.args[one.program.ClockIndex()] != int64(0) {
			t.Errorf("%s: arguments %v", one.program.ID(), one.args)
		}
		if one.left > 100*time.Millisecond {
			t.Errorf("%s: %v are left to the store, the command timeout is 100ms", one.program.ID(), one.left)
		}
	}
}

// TestBreakerKeys: no breaker shares a key with another, or with a rate limit of the same names.
func TestBreakerKeys(t *testing.T) {
	t.Parallel()
	one := breakerFor(t, storeAnswers(store.Reply{}, nil), breakerPolicy(t))
	next := breakerFor(t, storeAnswers(store.Reply{}, nil), breakerPolicy(t, func(c *breaker.PolicyConfig) { c.Revision = 4 }))
	other := breakerFor(t, storeAnswers(store.Reply{}, nil), breakerPolicy(t, func(c *breaker.PolicyConfig) { c.ID = "logout" }))
	simulated := storeAnswers(store.Reply{}, nil)
	simulated.clock = store.ClockCaller
	payments, orders := subject(t, "payments"), subject(t, "orders")
	keys := []string{
		one.StateKey("login", payments), one.StateKey("login", orders), next.StateKey("login", payments), other.StateKey("logout", payments),
		breakerFor(t, simulated).StateKey("login", payments), limiterFor(t, storeAnswers(store.Reply{}, nil)).StateKey("login", payments),
	}
	if !strings.HasPrefix(keys[0], "edgelimit:test:breaker:login:state:") || !strings.HasPrefix(keys[4], "edgelimit:test:breaker:login:sim:") {
		t.Errorf("keys %v", keys)
	}
	digests := map[string]bool{}
	for _, key := range keys {
		digests[key] = true
		if strings.Contains(key, payments.String()) {
			t.Errorf("%s holds the resource's digest", key)
		}
	}
	if len(digests) != len(keys) {
		t.Errorf("two of these are one: %v", keys)
	}
	if one.StateKey("x", payments) != "" || one.StateKey("login", breaker.ResourceDigest{}) != "" {
		t.Error("a key without a policy or a resource")
	}
}

func TestBreakerConfig(t *testing.T) {
	t.Parallel()
	_, err := NewCircuitBreaker(nil, BreakerConfig{})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 6 {
		t.Errorf("got %v, want six faults", err)
	}
	set, err := breaker.NewPolicySet(breakerPolicy(t))
	if err != nil {
		t.Fatal(err)
	}
	nowhere := storeAnswers(store.Reply{}, nil)
	nowhere.source = store.SourceInvalid
	_, err = NewCircuitBreaker(nowhere, BreakerConfig{
		Policies: set, Namespace: "test", Secret: []byte(strings.Repeat("s", 32)), MaxInFlight: 1, CommandTimeout: time.Second, UnavailableRetryAfter: time.Second,
	})
	if err == nil {
		t.Error("a store that does not say where its state lives was taken")
	}
}
