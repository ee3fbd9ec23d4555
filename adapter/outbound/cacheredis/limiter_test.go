package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// fakeStore answers what the test says and keeps what it was asked.
type fakeStore struct {
	store.Store // The scalar methods, which the limiter never calls.
	eval        func(ctx context.Context) (store.Reply, error)
	source      store.Source
	clock       store.ClockSource

	mu    sync.Mutex
	calls []fakeCall
}

type fakeCall struct {
	program *store.Program
	keys    []string
	args    []any
	left    time.Duration // until the deadline
}

func (f *fakeStore) Eval(ctx context.Context, program *store.Program, keys []string, args []any) (store.Reply, error) {
	deadline, _ := ctx.Deadline()
	f.mu.Lock()
	f.calls = append(f.calls, fakeCall{program, append([]string(nil), keys...), append([]any(nil), args...), time.Until(deadline)})
	f.mu.Unlock()
	return f.eval(ctx)
}

func (f *fakeStore) Ping(context.Context) error { return nil }
func (f *fakeStore) Source() store.Source       { return f.source }
func (f *fakeStore) Clock() store.ClockSource   { return f.clock }
func (f *fakeStore) Close() error               { return nil }

func (f *fakeStore) asked() []fakeCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func storeThat(eval func(ctx context.Context) (store.Reply, error)) *fakeStore {
	return &fakeStore{eval: eval, source: store.SourceGlobalRedis, clock: store.ClockServer}
}

func storeAnswers(reply store.Reply, err error) *fakeStore {
	return storeThat(func(context.Context) (store.Reply, error) { return reply, err })
}

var firstAllowed = decisionRow{"ALLOWED", [6]int64{fakeNow, fakeNow, 10, 9, 0, fakeNow + 1000}}

// TestEveryCode: each code of the store has its category where nothing was spent, and says
// "indeterminate" where something may have been.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	want := map[store.Code]ratelimit.Outcome{
		store.CodeInvalidArgument: incompatible(ratelimit.IncompatibleProgram),
		store.CodeUnknownProgram:  incompatible(ratelimit.IncompatibleProgram),
		store.CodeNotReady:        unavailable(ratelimit.UnavailableNotReady),
		store.CodeClosed:          unavailable(ratelimit.UnavailableClosed),
		store.CodeCanceled:        unavailable(ratelimit.UnavailableCanceled),
		store.CodeDeadline:        unavailable(ratelimit.UnavailableDeadline),
		store.CodePoolExhausted:   unavailable(ratelimit.UnavailablePool),
		store.CodeQueueFull:       unavailable(ratelimit.UnavailableQueue),
		store.CodeConnect:         unavailable(ratelimit.UnavailableConnection),
		store.CodeTLS:             unavailable(ratelimit.UnavailableTLS),
		store.CodeHandshake:       unavailable(ratelimit.UnavailableHandshake),
		store.CodeAuthentication:  unavailable(ratelimit.UnavailableAuthentication),
		store.CodeServerVersion:   unavailable(ratelimit.UnavailableServerVersion),
		store.CodeConnectionLost:  unavailable(ratelimit.UnavailableConnection),
		store.CodeCapacity:        unavailable(ratelimit.UnavailableCapacity),
		store.CodeLoading:         unavailable(ratelimit.UnavailableLoading),
		store.CodeReadOnly:        unavailable(ratelimit.UnavailableReadOnly),
		store.CodeMasterDown:      unavailable(ratelimit.UnavailableMasterDown),
		store.CodeClusterDown:     unavailable(ratelimit.UnavailableCluster),
		store.CodeMoved:           unavailable(ratelimit.UnavailableCluster),
		store.CodePermission:      unavailable(ratelimit.UnavailablePermission),
		store.CodeOutOfMemory:     unavailable(ratelimit.UnavailableOutOfMemory),
		store.CodePersistence:     unavailable(ratelimit.UnavailablePersistence),
		store.CodeReplicas:        unavailable(ratelimit.UnavailableReplicas),
		store.CodeBusy:            unavailable(ratelimit.UnavailableBusy),
		// These say that the call itself was wrong, or that the store says what it may not.
		store.CodeNotInteger:    incompatible(ratelimit.IncompatibleProgram),
		store.CodeOutOfRange:    incompatible(ratelimit.IncompatibleProgram),
		store.CodeInvalid:       incompatible(ratelimit.IncompatibleProgram),
		store.CodeProgramFailed: incompatible(ratelimit.IncompatibleProgram),
		store.CodeWrongType:     incompatible(ratelimit.IncompatibleProgram),
		store.CodeReply:         incompatible(ratelimit.IncompatibleProgram),
	}
	codes := 0
	for code := store.Code(0); code == store.CodeInvalid || code.String() != "invalid"; code++ {
		codes++
		for _, row := range []struct {
			certainty store.Certainty
			want      ratelimit.Outcome
		}{
			{store.NotSent, want[code]},
			{store.Refused, want[code]},
			{store.Uncertain, indeterminate},
			{store.CertaintyInvalid, indeterminate},
			{store.Certainty(99), indeterminate},
			{store.Mismatched, map[bool]ratelimit.Outcome{
				true: incompatible(ratelimit.IncompatibleState), false: incompatible(ratelimit.IncompatibleReply),
			}[code == store.CodeWrongType]},
		} {
			// The reply beside an error counts for nothing.
			failure := fmt.Errorf("wrapped: %w", &store.Error{Op: "x", Certainty: row.certainty, Code: code})
			outcome := evaluate(t, limiterFor(t, storeAnswers(firstAllowed.reply(), failure)))
			if diff := cmp.Diff(row.want, outcome); diff != "" {
				t.Errorf("%v (%v), outcome (-want +got):\n%s", code, row.certainty, diff)
			}
		}
	}
	if codes != len(want) {
		t.Errorf("%d codes, this test knows %d", codes, len(want))
	}
}

// TestForeignErrors: an error that no store should give leaves everything open.
func TestForeignErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{io.EOF, context.Canceled, context.DeadlineExceeded, errors.New("x"), &store.Error{}} {
		if diff := cmp.Diff(indeterminate, evaluate(t, limiterFor(t, storeAnswers(firstAllowed.reply(), err)))); diff != "" {
			t.Errorf("%v: outcome (-want +got):\n%s", err, diff)
		}
	}
}

// TestOnlyAllowedAllows: whatever a store answers, only an ALLOWED that fits the policy opens the door.
func TestOnlyAllowedAllows(t *testing.T) {
	t.Parallel()
	if outcome := evaluate(t, limiterFor(t, storeAnswers(firstAllowed.reply(), nil))); !ratelimit.Allows(outcome) {
		t.Errorf("the control: %v", outcome)
	}
	replies := []store.Reply{{}}
	for _, status := range []string{"ALLOWED", "DENIED", "CLOCK_UNSAFE", "STATE_INCOMPATIBLE", "INVALID", "", "allowed"} {
		for _, n := range [][6]int64{
			{},
			{fakeNow, fakeNow, 10, 4, 7, fakeNow + 7},
			{fakeNow, fakeNow, 10, 0, 7, fakeNow + 7},
			{fakeNow, fakeNow, 0, 0, 0, 0},
			{-1, -1, -1, -1, -1, -1},
		} {
			replies = append(replies, decisionRow{status, n}.reply())
		}
		one, err := store.NewReply(store.Text(status))
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, one)
	}
	for _, reply := range replies {
		if outcome := evaluate(t, limiterFor(t, storeAnswers(reply, nil))); ratelimit.Allows(outcome) {
			t.Errorf("%v gives %v", values(reply), outcome)
		}
	}
}

// TestDecisionCarries the policy, its revision, the store's source and the algorithm's certainty.
func TestDecisionCarries(t *testing.T) {
	t.Parallel()
	for source, want := range map[store.Source]ratelimit.Source{
		store.SourceGlobalRedis: ratelimit.SourceGlobalRedis, store.SourceLocalMemory: ratelimit.SourceLocalMemory,
	} {
		f := storeAnswers(firstAllowed.reply(), nil)
		f.source = source
		got := evaluate(t, limiterFor(t, f))
		if diff := cmp.Diff(ratelimit.Outcome(ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{
			Allowed: true, Limit: 10, Remaining: 9, ResetAt: time.UnixMilli(fakeNow + 1000).UTC(), PolicyID: "login", PolicyRevision: 1,
			Source: want, Certainty: ratelimit.CertaintyCertain,
		}}), got); diff != "" {
			t.Errorf("outcome (-want +got):\n%s", diff)
		}
	}
}

// TestArguments: what the programs are called with is what their descriptors say, for each algorithm.
func TestArguments(t *testing.T) {
	t.Parallel()
	set, err := ratelimit.NewPolicySet(
		policy(t),
		policy(t, func(c *ratelimit.RateLimitPolicyConfig) {
			c.ID, c.Revision, c.Algorithm = "sliding", 2147483647, ratelimit.AlgorithmSlidingWindowCounter
			c.Parameters = ratelimit.SlidingWindowCounterParameters{Limit: 9_007_199_254, Window: 3_155_760_000 * time.Second}
			c.MaxCost, c.CleanupGrace, c.MaxClockRegression = 9_007_199_254, 3_155_760_000*time.Second, 24*time.Hour
		}),
		policy(t, func(c *ratelimit.RateLimitPolicyConfig) {
			c.ID, c.Revision, c.Algorithm = "bucket", 7, ratelimit.AlgorithmTokenBucket
			c.Parameters = ratelimit.TokenBucketParameters{Capacity: 100, RefillTokens: 50, RefillPeriod: time.Second}
		}),
		policy(t, func(c *ratelimit.RateLimitPolicyConfig) {
			c.ID, c.Revision, c.Algorithm = "spaced", 8, ratelimit.AlgorithmGCRA
			c.Parameters = ratelimit.GCRAParameters{Limit: 50, Period: time.Second, Burst: 100}
		}),
		policy(t, func(c *ratelimit.RateLimitPolicyConfig) {
			c.ID, c.Revision, c.Algorithm = "log", 9, ratelimit.AlgorithmSlidingWindowLog
			c.Parameters = ratelimit.SlidingWindowLogParameters{Limit: 10_000, Window: time.Hour}
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		policy  ratelimit.PolicyID
		program *store.Program
		cost    int64
		numbers []int64 // all but the identity
	}{
		{"login", store.RateFixedWindowV1, 5, []int64{10, 1000, 60_000, 2000, 5, 0}},
		{"sliding", store.RateSlidingCounterV1, 9_007_199_254, []int64{9_007_199_254, 3_155_760_000_000, 3_155_760_000_000, 86_400_000, 9_007_199_254, 0}},
		{"bucket", store.RateTokenBucketV1, 1, []int64{100, 1, 20, 60_000, 2000, 1, 0}},
		{"spaced", store.RateGCRAV1, 2, []int64{1, 20, 100, 60_000, 2000, 2, 0}},
		{"log", store.RateSlidingLogV1, 3, []int64{10_000, 3_600_000, 60_000, 2000, 3, 0}},
	} {
		f := storeAnswers(store.Reply{}, nil)
		l := limiterFor(t, f, func(c *LimiterConfig) { c.Policies = set })
		r := request(t)
		r.PolicyID, r.Cost = row.policy, row.cost
		if _, err := l.Evaluate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		call := f.asked()[0]
		if call.program != row.program || len(call.keys) != row.program.Keys || len(call.args) != len(row.program.Args) {
			t.Fatalf("%s: %s with %d keys and %d arguments", row.policy, call.program.ID(), len(call.keys), len(call.args))
		}
		if call.keys[0] != l.StateKey(row.policy, r.Subject) {
			t.Errorf("%s: key %s", row.policy, call.keys[0])
		}
		if call.left <= 0 || call.left > testTimeout {
			t.Errorf("%s: %v until the deadline, want at most the command timeout", row.policy, call.left)
		}
		var numbers []int64
		for i, field := range row.program.Args {
			text := fmt.Sprint(call.args[i])
			switch field.Kind {
			case store.FieldText:
				if n := int64(len(text)); n < field.Min || n > field.Max {
					t.Errorf("%s: %s is %q", row.policy, field.Name, text)
				}
			case store.FieldInteger:
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil || n < field.Min || n > field.Max {
					t.Errorf("%s: %s is %q, want %d..%d", row.policy, field.Name, text, field.Min, field.Max)
				}
				numbers = append(numbers, n)
			case store.FieldInvalid:
				t.Errorf("%s: a field without a kind", field.Name)
			}
		}
		if diff := cmp.Diff(row.numbers, numbers); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", row.policy, diff)
		}
		p := set.Get(row.policy)
		tag := map[ratelimit.PolicyID]string{"login": "fw", "sliding": "sc", "bucket": "tb", "spaced": "gc", "log": "sl"}[row.policy]
		if want := fmt.Sprintf("1:%s:%d:%s", tag, p.Revision(), p.Fingerprint()); call.args[0] != want {
			t.Errorf("%s: identity %v, want %s", row.policy, call.args[0], want)
		}
	}
	l := limiterFor(t, storeAnswers(store.Reply{}, nil))
	if l.StateKey("nobody", subject(t, "x")) != "" || l.StateKey("login", ratelimit.SubjectDigest{}) != "" {
		t.Error("a key of nothing")
	}
}

// TestCallersMistakes are errors, and nothing is asked.
func TestCallersMistakes(t *testing.T) {
	t.Parallel()
	for fault, change := range map[ratelimit.RequestFault]func(r *ratelimit.RateLimitRequest){
		ratelimit.FaultUnknownPolicy: func(r *ratelimit.RateLimitRequest) { r.PolicyID = "nobody" },
		ratelimit.FaultSubject:       func(r *ratelimit.RateLimitRequest) { r.Subject = ratelimit.SubjectDigest{} },
		ratelimit.FaultCost:          func(r *ratelimit.RateLimitRequest) { r.Cost = 6 },
		ratelimit.FaultEvaluationID:  func(r *ratelimit.RateLimitRequest) { r.EvaluationID = "x" },
		ratelimit.FaultDeadline:      func(r *ratelimit.RateLimitRequest) { r.Deadline = time.Time{} },
	} {
		f := storeAnswers(firstAllowed.reply(), nil)
		r := request(t)
		change(&r)
		outcome, err := limiterFor(t, f).Evaluate(t.Context(), r)
		var invalid *ratelimit.InvalidRequestError
		if !errors.As(err, &invalid) || invalid.Fault != fault || outcome != nil || len(f.asked()) != 0 {
			t.Errorf("%v: %v, %v after %d calls", fault, outcome, err, len(f.asked()))
		}
	}
}

// TestDeadlinePrecheck: with less than the command timeout left nothing is asked; the context's
// deadline counts as well as the request's.
func TestDeadlinePrecheck(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		request, ctx time.Duration
		asked        bool
	}{
		"both long":     {time.Hour, time.Hour, true},
		"request short": {testTimeout - time.Millisecond, time.Hour, false},
		"context short": {time.Hour, testTimeout - time.Millisecond, false},
		"request over":  {-time.Hour, time.Hour, false},
		"context over":  {time.Hour, -time.Hour, false},
	} {
		f := storeAnswers(firstAllowed.reply(), nil)
		ctx, cancel := context.WithTimeout(t.Context(), row.ctx)
		r := request(t)
		r.Deadline = time.Now().Add(row.request)
		outcome, err := limiterFor(t, f).Evaluate(ctx, r)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		want := unavailable(ratelimit.UnavailableDeadline)
		if row.asked != (len(f.asked()) == 1) || !row.asked && outcome != want {
			t.Errorf("%s: %v after %d calls", name, outcome, len(f.asked()))
		}
	}
}
