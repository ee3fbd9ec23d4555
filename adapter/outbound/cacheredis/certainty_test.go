package cacheredis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

const testRetryAfter = 7 * time.Second

var testSecret = []byte("0123456789abcdef0123456789abcdef")

func policy(t testing.TB, change ...func(c *ratelimit.RateLimitPolicyConfig)) *ratelimit.RateLimitPolicy {
	t.Helper()
	config := ratelimit.RateLimitPolicyConfig{
		ID: "login", Revision: 1, Algorithm: ratelimit.AlgorithmFixedWindow,
		Parameters: ratelimit.FixedWindowParameters{Limit: 10, Window: time.Second},
		MaxCost:    5, CleanupGrace: time.Minute, MaxClockRegression: 2 * time.Second, FailurePolicy: ratelimit.FailClosed,
	}
	for _, f := range change {
		f(&config)
	}
	p, err := ratelimit.NewRateLimitPolicy(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func limiterFor(t testing.TB, s store.Store, change ...func(c *LimiterConfig)) *EdgeRateLimiter {
	t.Helper()
	set, err := ratelimit.NewPolicySet(policy(t))
	if err != nil {
		t.Fatal(err)
	}
	config := LimiterConfig{
		Policies: set, Namespace: "test", Secret: testSecret, MaxInFlight: 8, CommandTimeout: testTimeout,
		UnavailableRetryAfter: testRetryAfter,
	}
	for _, f := range change {
		f(&config)
	}
	l, err := NewEdgeRateLimiter(s, config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func subject(t testing.TB, identity string) ratelimit.SubjectDigest {
	t.Helper()
	digester, err := ratelimit.NewSubjectDigester(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := digester.Digest(identity)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func request(t testing.TB) ratelimit.RateLimitRequest {
	return ratelimit.RateLimitRequest{PolicyID: "login", Subject: subject(t, "someone"), Cost: 1, Deadline: time.Now().Add(time.Hour)}
}

func unavailable(category ratelimit.UnavailableCategory) ratelimit.Outcome {
	return ratelimit.Unavailable{PolicyID: "login", RetryAfter: testRetryAfter, Category: category}
}

var indeterminate ratelimit.Outcome = ratelimit.Indeterminate{PolicyID: "login", RetryAfter: testRetryAfter}

func incompatible(category ratelimit.IncompatibleCategory) ratelimit.Outcome {
	return ratelimit.Incompatible{PolicyID: "login", Category: category}
}

// failureRow is one way to fail: what the store and the limiter must say of it, and what reached the
// server of one evaluation.
type failureRow struct {
	name      string
	config    func(c *StoreConfig)
	arrange   func(s *fakeServer)
	certainty store.Certainty
	code      store.Code
	outcome   ratelimit.Outcome
	evalsha   int
	eval      int
}

// evalOnce calls the store with the fixed window and gives the failure.
func evalOnce(t testing.TB, s *Store, timeout time.Duration) *store.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	_, err := s.Eval(ctx, fixedWindow, []string{"key"}, fixedWindowArguments(1))
	return asFailure(t, err)
}

func asFailure(t testing.TB, err error) *store.Error {
	t.Helper()
	if err == nil {
		return nil
	}
	var failure *store.Error
	if !errors.As(err, &failure) {
		t.Fatalf("error is a %T: %v", err, err)
	}
	return failure
}

// wantFailure compares certainty and code.
func wantFailure(t testing.TB, failure *store.Error, certainty store.Certainty, code store.Code) {
	t.Helper()
	switch {
	case failure == nil:
		t.Errorf("no failure, want %v (%v)", code, certainty)
	case failure.Certainty != certainty || failure.Code != code:
		t.Errorf("failure is %v, want %v (%v)", failure, code, certainty)
	}
}

func evaluate(t testing.TB, l *EdgeRateLimiter) ratelimit.Outcome {
	t.Helper()
	outcome, err := l.Evaluate(t.Context(), request(t))
	if err != nil {
		t.Fatalf("Evaluate: %v", err)
	}
	return outcome
}

// wantSane holds the pool to working again at once, with replies of its own commands alone. late is how
// many commands on broken connections the server may read only now.
func wantSane(t testing.TB, server *fakeServer, s *Store, late int) {
	t.Helper()
	server.heal()
	for cost := int64(1); cost <= 3; cost++ {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		reply, err := s.Eval(ctx, fixedWindow, []string{"key"}, fixedWindowArguments(cost))
		cancel()
		if err != nil {
			t.Fatalf("the next healthy call: %v", err)
		}
		if got := reply.At(fieldRemaining); got != store.Integer(10-cost) {
			t.Fatalf("remaining %v after cost %d: the reply of another command", got, cost)
		}
	}
	if n := server.count("EVALSHA"); n < 3 || n > 3+late {
		t.Errorf("%d receipts of three healthy calls", n)
	}
}

func runFailureRow(t *testing.T, row failureRow) {
	t.Parallel()
	var change []func(c *StoreConfig)
	if row.config != nil {
		change = append(change, row.config)
	}
	check := func(t *testing.T, calls int, call func(t *testing.T, s *Store)) {
		server := startFake(t)
		s := storeFor(t, server.address(), change...)
		if row.arrange != nil {
			row.arrange(server)
		}
		call(t, s)
		// What travels together need not all have been read when the connection broke.
		if n := server.count("EVALSHA"); n < row.evalsha || n > calls*row.evalsha {
			t.Errorf("%d receipts of EVALSHA, want %d for a call", n, row.evalsha)
		}
		if n := server.count("EVAL"); n < row.eval || n > calls*row.eval {
			t.Errorf("%d receipts of EVAL, want %d for a call", n, row.eval)
		}
		if row.eval > 0 {
			program, _ := lua.Find(fixedWindow)
			if got := server.received("EVAL"); len(got) < 2 || got[1] != program.Source {
				t.Error("EVAL did not carry the exact source")
			}
		}
		wantSane(t, server, s, calls-1)
	}
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		check(t, 1, func(t *testing.T, s *Store) { wantFailure(t, evalOnce(t, s, testTimeout), row.certainty, row.code) })
	})
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		const calls = 2
		check(t, calls, func(t *testing.T, s *Store) {
			for _, failure := range together(t, s, calls) {
				wantFailure(t, failure, row.certainty, row.code)
			}
		})
	})
	t.Run("limiter", func(t *testing.T) {
		t.Parallel()
		check(t, 1, func(t *testing.T, s *Store) {
			if diff := cmp.Diff(row.outcome, evaluate(t, limiterFor(t, s))); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	})
}

// TestUncertain: something was sent, and what became of it is not known.
func TestUncertain(t *testing.T) {
	t.Parallel()
	noScript := func(then reaction) func(s *fakeServer) {
		return func(s *fakeServer) {
			s.set(func(s *fakeServer) { clear(s.known) })
			s.on("EVAL", then)
		}
	}
	rows := []failureRow{
		{name: "no reply", arrange: func(s *fakeServer) { s.on("EVALSHA", swallows) }, code: store.CodeDeadline},
		{name: "EOF after the command", arrange: func(s *fakeServer) { s.on("EVALSHA", drops("")) }, code: store.CodeConnectionLost},
		{name: "reset after the command", arrange: func(s *fakeServer) { s.on("EVALSHA", resets) }, code: store.CodeConnectionLost},
		{name: "half a reply and EOF", arrange: func(s *fakeServer) { s.on("EVALSHA", drops("*7\r\n$7\r\nALLO")) }, code: store.CodeConnectionLost},
		{name: "half a reply and silence", arrange: func(s *fakeServer) { s.on("EVALSHA", replies("*7\r\n$7\r\nALLOWED\r\n:1")) }, code: store.CodeDeadline},
		{name: "half a line and EOF", arrange: func(s *fakeServer) { s.on("EVALSHA", drops("-LOADING Redis is")) }, code: store.CodeConnectionLost},
		{name: "ERR", arrange: func(s *fakeServer) {
			s.on("EVALSHA", replies("-ERR ACL failure in script: No permissions to access a key script: x\r\n"))
		}, code: store.CodeProgramFailed},
		{name: "unknown word", arrange: func(s *fakeServer) { s.on("EVALSHA", replies("-UNKILLABLE x\r\n")) }, code: store.CodeProgramFailed},
		{name: "lower-case word", arrange: func(s *fakeServer) { s.on("EVALSHA", replies("-readonly x\r\n")) }, code: store.CodeProgramFailed},
		{name: "word with a tail", arrange: func(s *fakeServer) { s.on("EVALSHA", replies("-OOM: x\r\n")) }, code: store.CodeProgramFailed},
		{name: "long word", arrange: func(s *fakeServer) {
			s.on("EVALSHA", replies("-OOMOOMOOMOOMOOMOOMOOMOOMOOMOOMOOMOOM x\r\n"))
		}, code: store.CodeProgramFailed},
		{name: "empty error", arrange: func(s *fakeServer) { s.on("EVALSHA", replies("- \r\n")) }, code: store.CodeProgramFailed},
		{name: "second NOSCRIPT", arrange: noScript(replies("-NOSCRIPT No matching script.\r\n")), code: store.CodeProgramFailed, eval: 1},
		{name: "NOSCRIPT, then no reply", arrange: noScript(swallows), code: store.CodeDeadline, eval: 1},
		{name: "NOSCRIPT, then EOF", arrange: noScript(drops("")), code: store.CodeConnectionLost, eval: 1},
		{name: "NOSCRIPT, then ERR", arrange: noScript(replies("-ERR x\r\n")), code: store.CodeProgramFailed, eval: 1},
	}
	for _, row := range rows {
		row.certainty, row.outcome, row.evalsha = store.Uncertain, indeterminate, 1
		t.Run(row.name, func(t *testing.T) { runFailureRow(t, row) })
	}
}

// TestRefused: the server answered that it did not run the command.
func TestRefused(t *testing.T) {
	t.Parallel()
	want := map[string]ratelimit.UnavailableCategory{
		"LOADING": ratelimit.UnavailableLoading, "READONLY": ratelimit.UnavailableReadOnly,
		"MASTERDOWN": ratelimit.UnavailableMasterDown, "CLUSTERDOWN": ratelimit.UnavailableCluster,
		"TRYAGAIN": ratelimit.UnavailableCluster, "NOAUTH": ratelimit.UnavailableAuthentication,
		"WRONGPASS": ratelimit.UnavailableAuthentication, "NOPERM": ratelimit.UnavailablePermission,
		"OOM": ratelimit.UnavailableOutOfMemory, "MISCONF": ratelimit.UnavailablePersistence,
		"NOREPLICAS": ratelimit.UnavailableReplicas, "BUSY": ratelimit.UnavailableBusy,
		"MOVED": ratelimit.UnavailableCluster, "ASK": ratelimit.UnavailableCluster, "CROSSSLOT": ratelimit.UnavailableCluster,
	}
	if len(want) != len(refusals) {
		t.Fatalf("%d words are refusals, this test knows %d", len(refusals), len(want))
	}
	for word, category := range want {
		row := failureRow{
			name: word, arrange: func(s *fakeServer) { s.on("EVALSHA", replies("-"+word+" 1 127.0.0.1:1\r\n")) },
			certainty: store.Refused, code: refusals[word], outcome: unavailable(category), evalsha: 1,
		}
		t.Run(row.name, func(t *testing.T) { runFailureRow(t, row) })
		// The answer to EVAL is judged by itself: the first one was only NOSCRIPT.
		row.name, row.eval = "NOSCRIPT, then "+word, 1
		row.arrange = func(s *fakeServer) {
			s.set(func(s *fakeServer) { clear(s.known) })
			s.on("EVAL", replies("-"+word+"\r\n"))
		}
		t.Run(row.name, func(t *testing.T) { runFailureRow(t, row) })
	}
}

// TestMismatched: the server answered with what the program cannot say.
func TestMismatched(t *testing.T) {
	t.Parallel()
	reply, state := incompatible(ratelimit.IncompatibleReply), incompatible(ratelimit.IncompatibleState)
	for name, raw := range map[string]string{
		"six values":            seven("ALLOWED", 1, 1, 10, 9, 0),
		"eight values":          seven("ALLOWED", 1, 1, 10, 9, 0, 1000, 1),
		"nine values":           seven("ALLOWED", 1, 1, 10, 9, 0, 1000, 1, 1),
		"no value":              "*0\r\n",
		"a nil array":           "*-1\r\n",
		"a scalar":              ":1\r\n",
		"a nil":                 "$-1\r\n",
		"a status":              "+OK\r\n",
		"an error inside":       "*7\r\n$7\r\nALLOWED\r\n:1\r\n:1\r\n:10\r\n:9\r\n:0\r\n-ERR x\r\n",
		"an array inside":       "*7\r\n*0\r\n:1\r\n:1\r\n:10\r\n:9\r\n:0\r\n:1\r\n",
		"a double (RESP3)":      ",1.5\r\n",
		"a null (RESP3)":        "_\r\n",
		"a map (RESP3)":         "%1\r\n+a\r\n:1\r\n",
		"no RESP at all":        "HTTP/1.1 400 Bad Request\r\n",
		"an empty line":         "\r\n",
		"a line without CR":     "+OK\n",
		"no length":             "$x\r\n",
		"a huge length":         "$9223372036854775807\r\n",
		"a length of gigabytes": "$4000000000\r\n",
		"a huge count":          "*2147483647\r\n",
		"nested without end":    strings.Repeat("*1\r\n", maxReplyArrays+1),
		"a line without end":    "+" + strings.Repeat("x", maxReplyBytes),
		"leading zero":          "*7\r\n$7\r\nALLOWED\r\n:01\r\n:1\r\n:10\r\n:9\r\n:0\r\n:1\r\n",
		"a number out of range": "*7\r\n$7\r\nALLOWED\r\n:9223372036854775808\r\n:1\r\n:10\r\n:9\r\n:0\r\n:1\r\n",
	} {
		row := failureRow{
			name: name, arrange: func(s *fakeServer) { s.on("EVALSHA", replies(raw)) },
			certainty: store.Mismatched, code: store.CodeReply, outcome: reply, evalsha: 1,
		}
		t.Run(row.name, func(t *testing.T) { runFailureRow(t, row) })
	}
	row := failureRow{
		arrange:   func(s *fakeServer) { s.on("EVALSHA", replies("-WRONGTYPE Operation against a key\r\n")) },
		certainty: store.Mismatched, code: store.CodeWrongType, outcome: state, evalsha: 1,
	}
	t.Run("WRONGTYPE", func(t *testing.T) { runFailureRow(t, row) })
}

// TestProgramReplies: seven fields that are not a decision reach the limiter as a reply of the store.
func TestProgramReplies(t *testing.T) {
	t.Parallel()
	const now = fakeNow
	for _, row := range []struct {
		name, raw string
		want      ratelimit.Outcome
	}{
		{"STATE_INCOMPATIBLE", seven("STATE_INCOMPATIBLE", now, now, 0, 0, 0, 0), incompatible(ratelimit.IncompatibleState)},
		{"INVALID", seven("INVALID", now, now, 0, 0, 0, 0), incompatible(ratelimit.IncompatibleProgram)},
		{"CLOCK_UNSAFE", seven("CLOCK_UNSAFE", now, now, 10, 0, 42, now+42), ratelimit.Unavailable{
			PolicyID: "login", RetryAfter: 42 * time.Millisecond, Category: ratelimit.UnavailableClockUnsafe,
		}},
		{"unknown status", seven("MAYBE", now, now, 10, 9, 0, now+1), incompatible(ratelimit.IncompatibleReply)},
		{"lower-case status", seven("allowed", now, now, 10, 9, 0, now+1), incompatible(ratelimit.IncompatibleReply)},
		{"limit of another policy", seven("ALLOWED", now, now, 11, 9, 0, now+1), incompatible(ratelimit.IncompatibleReply)},
		{"negative", seven("ALLOWED", now, now, 10, -1, 0, now+1), incompatible(ratelimit.IncompatibleReply)},
		{"beyond 2^53-1", seven("ALLOWED", now, now, 10, 9, 0, 1<<53), incompatible(ratelimit.IncompatibleReply)},
		{"integer for status", "*7\r\n:1\r\n:1\r\n:1\r\n:10\r\n:9\r\n:0\r\n:2\r\n", incompatible(ratelimit.IncompatibleReply)},
		{"text for integer", "*7\r\n+ALLOWED\r\n$1\r\n1\r\n:1\r\n:10\r\n:9\r\n:0\r\n:2\r\n", incompatible(ratelimit.IncompatibleReply)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			server := startFake(t)
			s := storeFor(t, server.address())
			server.on("EVALSHA", replies(row.raw))
			if diff := cmp.Diff(row.want, evaluate(t, limiterFor(t, s))); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			wantSane(t, server, s, 0)
		})
	}
}
