package composition

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/internal/quiet"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// bucketsText has policies whose tokens come back no sooner than any test ends.
const bucketsText = `
app:
  rate-limit:
    enabled: true
    provider: memory
    default-policy: kept
    denial-cache: {enabled: DENIALS}
    policies:
      kept: {revision: 1, algorithm: token-bucket, capacity: 2, refill-tokens: 1, refill-period: 24h}
      changed: {revision: REVISION, algorithm: token-bucket, capacity: 1, refill-tokens: 1, refill-period: 24h}
`

func buckets(t *testing.T, revision int, denials bool) config.RateLimit {
	t.Helper()
	return configure(t, strings.NewReplacer("REVISION", fmt.Sprint(revision), "DENIALS", fmt.Sprint(denials)).Replace(bucketsText))
}

func memoryLimiter(t *testing.T, cfg config.RateLimit, telemetry Telemetry) *Limiter {
	t.Helper()
	l, err := NewLimiter(within(t, 10*time.Second), cfg, telemetry)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestWithPolicies: what is the same in both sets goes on, what is another revision starts fresh, both
// ports decide side by side, and closing the limiter closes both.
func TestWithPolicies(t *testing.T) {
	t.Parallel()
	for _, denials := range []bool{false, true} {
		t.Run(fmt.Sprintf("denial cache %v", denials), func(t *testing.T) {
			t.Parallel()
			l := memoryLimiter(t, buckets(t, 1, denials), Telemetry{})
			other, err := l.WithPolicies(buckets(t, 2, denials).Policies)
			if err != nil {
				t.Fatal(err)
			}
			ctx := within(t, 10*time.Second)
			for i, step := range []struct {
				port     ratelimit.EdgeRateLimitPort
				policy   ratelimit.PolicyID
				revision int64
				allowed  bool
			}{
				{l, "kept", 1, true},
				{other, "kept", 1, true},
				{l, "kept", 1, false},
				{other, "kept", 1, false},
				{l, "changed", 1, true},
				{l, "changed", 1, false},
				{other, "changed", 2, true},
				{other, "changed", 2, false},
				{l, "changed", 1, false},
				{other, "changed", 2, false},
			} {
				outcome, err := step.port.Evaluate(ctx, request(t, l.Digester(), step.policy))
				decided, ok := outcome.(ratelimit.Evaluated)
				if err != nil || !ok || decided.Decision.Allowed != step.allowed || decided.Decision.PolicyRevision != step.revision {
					t.Errorf("step %d: %+v, %v", i, outcome, err)
				}
			}
			if err := l.Close(ctx); err != nil {
				t.Fatal(err)
			}
			closed := ratelimit.Unavailable{PolicyID: "kept", RetryAfter: time.Second, Category: ratelimit.UnavailableClosed}
			for _, port := range []ratelimit.EdgeRateLimitPort{l, other} {
				if outcome, err := port.Evaluate(ctx, request(t, l.Digester(), "kept")); err != nil || outcome != closed {
					t.Errorf("after Close: %+v, %v", outcome, err)
				}
			}
		})
	}
}

func TestWithPoliciesOverRedis(t *testing.T) {
	t.Parallel()
	l, err := build(configure(t, redisAt("127.0.0.1:1")), Telemetry{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.WithPolicies(buckets(t, 1, false).Policies)
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 10*time.Second)
	want := ratelimit.Unavailable{PolicyID: "kept", RetryAfter: 3 * time.Second, Category: ratelimit.UnavailableNotReady}
	if outcome, err := other.Evaluate(ctx, request(t, l.Digester(), "kept")); err != nil || outcome != want {
		t.Errorf("before the start: %+v, %v", outcome, err)
	}
	if _, err := l.Evaluate(ctx, request(t, l.Digester(), "kept")); err == nil {
		t.Error("the limiter knows another's policy")
	}
	if l.CircuitState() != breaker.StateClosed {
		t.Errorf("the circuit is %v", l.CircuitState())
	}
	if err := l.Close(ctx); err != nil {
		t.Fatal(err)
	}
	want.Category = ratelimit.UnavailableClosed
	if outcome, err := other.Evaluate(ctx, request(t, l.Digester(), "kept")); err != nil || outcome != want {
		t.Errorf("after Close: %+v, %v", outcome, err)
	}
	if _, err := l.WithPolicies(nil); err == nil {
		t.Error("no policies are taken")
	}
}

// TestCircuitIsConfigured: on for Redis unless it is turned off, and never there in memory.
func TestCircuitIsConfigured(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want breaker.State
	}{
		"default": {redisAt("127.0.0.1:1"), breaker.StateClosed},
		"off":     {strings.Replace(redisAt("127.0.0.1:1"), "provider: redis", "provider: redis\n    circuit: {enabled: false}", 1), breaker.StateInvalid},
		"memory":  {memoryText, breaker.StateInvalid},
	} {
		l, err := build(configure(t, row.text), Telemetry{})
		if err != nil {
			t.Fatal(err)
		}
		if got := l.CircuitState(); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestDenialCacheIsComposed: a repeated denial is answered here and says so, telemetry sees it, and a
// limiter without the cache asks each time.
func TestDenialCacheIsComposed(t *testing.T) {
	t.Parallel()
	for denials, want := range map[bool]ratelimit.Source{true: ratelimit.SourceDenialCache, false: ratelimit.SourceLocalMemory} {
		r := &recorder{}
		l := memoryLimiter(t, buckets(t, 1, denials), Telemetry{MeterProvider: meters{recorder: r}})
		ctx := within(t, 10*time.Second)
		var last ratelimit.Outcome
		for range 3 {
			var err error
			if last, err = l.Evaluate(ctx, request(t, l.Digester(), "changed")); err != nil {
				t.Fatal(err)
			}
		}
		if decided, ok := last.(ratelimit.Evaluated); !ok || decided.Decision.Allowed || decided.Decision.Source != want {
			t.Errorf("with a cache %v: %+v, want a denial from %v", denials, last, want)
		}
		if n := strings.Count(strings.Join(r.lines, "\n"), "edgelimit.evaluations +1 edgelimit.category=DENIED"); n != 2 {
			t.Errorf("with a cache %v: %d denials are counted, want 2", denials, n)
		}
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	cfg := buckets(t, 1, true)
	cfg.DenialCache.MaxEntries = 0
	if _, err := build(cfg, Telemetry{}); err == nil {
		t.Error("a cache without an entry")
	}
}

func named(t *testing.T, ids ...ratelimit.PolicyID) *ratelimit.PolicySet {
	t.Helper()
	var policies []*ratelimit.RateLimitPolicy
	for _, id := range ids {
		p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
			ID: id, Revision: 1, Algorithm: ratelimit.AlgorithmFixedWindow,
			Parameters: ratelimit.FixedWindowParameters{Limit: 1, Window: time.Hour},
			MaxCost:    1, FailurePolicy: ratelimit.FailClosed,
		})
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestLabelsStayBounded: however often policies change, metrics have a bounded number of them, and one
// that was told apart stays so.
func TestLabelsStayBounded(t *testing.T) {
	t.Parallel()
	l := labels{most: 3}
	for i, step := range []struct{ ids, want string }{
		{"a b", "a b"},
		{"b c", "b c"},
		{"d a", "_other a"},
		{"e", "_other"},
		{"c d b", "c _other b"},
	} {
		var ids []ratelimit.PolicyID
		for id := range strings.FieldsSeq(step.ids) {
			ids = append(ids, ratelimit.PolicyID(id))
		}
		given := l.of(named(t, ids...))
		var got []string
		for _, id := range ids {
			got = append(got, given[id])
		}
		if strings.Join(got, " ") != step.want || len(given) != len(ids) {
			t.Errorf("step %d: %v, want %s", i, given, step.want)
		}
	}

	r := &recorder{}
	i, err := newInstruments(Telemetry{MeterProvider: meters{recorder: r}})
	if err != nil {
		t.Fatal(err)
	}
	i.labels.most = 10
	subject, err := ratelimit.ParseSubjectDigest(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	for generation := range 100 {
		id := ratelimit.PolicyID(fmt.Sprintf("p%d", generation))
		port := i.around(scripted{ratelimit.Indeterminate{}, nil}, named(t, id))
		if _, err := port.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: id, Subject: subject, Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	different := make(map[string]int)
	for _, line := range r.lines {
		if strings.HasPrefix(line, "edgelimit.evaluations ") {
			different[line]++
		}
	}
	other := "edgelimit.evaluations +1 edgelimit.category=,edgelimit.outcome=INDETERMINATE,edgelimit.policy=_other"
	if len(different) != 11 || different[other] != 90 {
		t.Errorf("%d series, %d of others: %v", len(different), different[other], different)
	}
}

// TestCircuitLog: one line for an opening and one for its end, however often a circuit flaps, and none
// that stays wrong.
func TestCircuitLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1000, 0)
	c := newCircuitLog(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	opened := cacheredis.CircuitChange{State: breaker.StateOpen}
	still := cacheredis.CircuitChange{State: breaker.StateOpen, Since: time.Second}
	closed := cacheredis.CircuitChange{State: breaker.StateClosed, Since: 2 * time.Second}
	for _, step := range []struct {
		after  time.Duration
		change cacheredis.CircuitChange
	}{
		{0, opened},
		{1, still},
		{1, still},
		{1, closed},
		{1, opened},
		{1, still},
		{1, closed},
		{1, opened},
		{1, closed}, // flapping: not told
		{1, opened},
		{1, still},
		{quiet.For, still}, // the last opening lasts: told now, with the two before it
		{1, still},
		{1, closed},
		{quiet.For, opened},
		{1, closed},
	} {
		now = now.Add(step.after)
		c.note(step.change)
	}
	want := []string{
		`level=WARN msg="edgelimit: circuit opened" since=0s suppressed=0`,
		`level=INFO msg="edgelimit: circuit closed" after=2s`,
		`level=WARN msg="edgelimit: circuit opened" since=1s suppressed=2`,
		`level=INFO msg="edgelimit: circuit closed" after=2s`,
		`level=WARN msg="edgelimit: circuit opened" since=0s suppressed=0`,
		`level=INFO msg="edgelimit: circuit closed" after=2s`,
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("logged\n%s", &log)
	}
	for i := range want {
		if !strings.HasSuffix(lines[i], want[i]) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want[i])
		}
	}
}
