package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpapi"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// limiterFunc is a port made of a function.
type limiterFunc func(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error)

func (f limiterFunc) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return f(ctx, request)
}

var (
	errNotReady = errors.New("the store has not been reached yet")
	resetAt     = time.UnixMilli(1_800_000_000_123).UTC()
)

func allowed(_ context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{
		Allowed: true, Limit: 5, Remaining: 5 - r.Cost, ResetAt: resetAt, PolicyID: r.PolicyID, PolicyRevision: 3,
		Source: ratelimit.SourceGlobalRedis, Certainty: ratelimit.CertaintyCertain,
	}}, nil
}

func policySet(t testing.TB) *ratelimit.PolicySet {
	t.Helper()
	var policies []*ratelimit.RateLimitPolicy
	for _, c := range []ratelimit.RateLimitPolicyConfig{
		{
			ID: "login", Revision: 3, Algorithm: ratelimit.AlgorithmFixedWindow, MaxCost: 2,
			Parameters: ratelimit.FixedWindowParameters{Limit: 5, Window: time.Minute},
		},
		{
			ID: "api-default", Revision: 1, Algorithm: ratelimit.AlgorithmTokenBucket, MaxCost: 10,
			Parameters: ratelimit.TokenBucketParameters{Capacity: 100, RefillTokens: 50, RefillPeriod: time.Second},
		},
		{
			ID: "search", Revision: 2, Algorithm: ratelimit.AlgorithmSlidingWindowCounter, MaxCost: 1,
			Parameters: ratelimit.SlidingWindowCounterParameters{Limit: 30, Window: 10 * time.Second},
		},
		{
			ID: "uploads", Revision: 4, Algorithm: ratelimit.AlgorithmGCRA, MaxCost: 3,
			Parameters: ratelimit.GCRAParameters{Limit: 10, Period: time.Minute, Burst: 4},
		},
		{
			ID: "payments", Revision: 5, Algorithm: ratelimit.AlgorithmSlidingWindowLog, MaxCost: 1,
			Parameters: ratelimit.SlidingWindowLogParameters{Limit: 100, Window: time.Hour},
		},
	} {
		c.CleanupGrace, c.MaxClockRegression, c.FailurePolicy = time.Minute, 2*time.Second, ratelimit.FailClosed
		p, err := ratelimit.NewRateLimitPolicy(c)
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

func config(t testing.TB, limiter limiterFunc) httpapi.Config {
	t.Helper()
	digester, err := ratelimit.NewSubjectDigester(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	return httpapi.Config{
		Limiter: limiter, Policies: policySet(t), DefaultPolicy: "api-default", Digester: digester,
		Ready: func() error { return nil }, MaxBodyBytes: 4096,
		DefaultDeadline: 250 * time.Millisecond, MaxDeadline: 5 * time.Second,
	}
}

func handler(t testing.TB, c httpapi.Config) http.Handler {
	t.Helper()
	h, err := httpapi.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, httpapi.PathEvaluate, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

type problemBody struct {
	Type, Title, Detail, Code, Field string
	Status                           int
}

func readProblem(t *testing.T, w *httptest.ResponseRecorder) problemBody {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type is %q", got)
	}
	var p problemBody
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if p.Status != w.Code || p.Type != "about:blank" || p.Title != http.StatusText(w.Code) || p.Detail == "" || p.Code == "" {
		t.Errorf("problem %+v for status %d", p, w.Code)
	}
	return p
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	denied := ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{
		Limit: 5, RetryAfter: 1500 * time.Millisecond, ResetAt: resetAt, PolicyID: "login", PolicyRevision: 3,
		Source: ratelimit.SourceLocalMemory, Certainty: ratelimit.CertaintyApproximateAlgorithm,
	}}
	for _, c := range []struct {
		name       string
		outcome    ratelimit.Outcome
		err        error
		status     int
		body       string
		retryAfter string
		field      string
	}{
		{
			name: "denied is 200", outcome: denied, status: 200,
			body: `{"outcome":"EVALUATED","decision":{"allowed":false,"limit":5,"remaining":0,"retryAfterMillis":1500,"resetAtMillis":1800000000123,"policyId":"login","policyRevision":3,"source":"LOCAL_MEMORY","certainty":"APPROXIMATE_ALGORITHM"}}`,
		},
		{
			name: "unavailable", outcome: ratelimit.Unavailable{PolicyID: "login", RetryAfter: 1001 * time.Millisecond, Category: ratelimit.UnavailableConnection}, status: 503,
			body: `{"outcome":"UNAVAILABLE","policyId":"login","category":"CONNECTION","retryAfterMillis":1001}`, retryAfter: "2",
		},
		{
			name: "unavailable for 1 ms", outcome: ratelimit.Unavailable{PolicyID: "login", RetryAfter: time.Millisecond, Category: ratelimit.UnavailableClockUnsafe}, status: 503,
			body: `{"outcome":"UNAVAILABLE","policyId":"login","category":"CLOCK_UNSAFE","retryAfterMillis":1}`, retryAfter: "1",
		},
		{
			name: "indeterminate", outcome: ratelimit.Indeterminate{PolicyID: "login", RetryAfter: time.Second}, status: 503,
			body: `{"outcome":"INDETERMINATE","policyId":"login","retryAfterMillis":1000}`, retryAfter: "1",
		},
		{
			name: "incompatible", outcome: ratelimit.Incompatible{PolicyID: "login", Category: ratelimit.IncompatibleState}, status: 500,
			body: `{"outcome":"INCOMPATIBLE","policyId":"login","category":"STATE"}`,
		},
		{name: "no outcome", status: 500},
		{name: "a pointer is no outcome", outcome: &denied, status: 500},
		{name: "an error of its own", err: errors.New("user:42 is not here"), status: 500},
		{name: "unknown policy", err: &ratelimit.InvalidRequestError{Fault: ratelimit.FaultUnknownPolicy, Reason: "r"}, status: 404, field: "policyId"},
		{name: "cost", err: &ratelimit.InvalidRequestError{Fault: ratelimit.FaultCost, Reason: "r"}, status: 422, field: "cost"},
		{name: "subject", err: &ratelimit.InvalidRequestError{Fault: ratelimit.FaultSubject, Reason: "r"}, status: 422, field: "subject"},
		{name: "evaluation ID", err: &ratelimit.InvalidRequestError{Fault: ratelimit.FaultEvaluationID, Reason: "r"}, status: 422, field: "evaluationId"},
		{name: "deadline", err: &ratelimit.InvalidRequestError{Fault: ratelimit.FaultDeadline, Reason: "r"}, status: 422, field: "deadlineMillis"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := post(handler(t, config(t, func(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
				return c.outcome, c.err
			})), `{"policyId":"login","subject":"user:42"}`)
			if w.Code != c.status {
				t.Fatalf("status %d, want %d: %s", w.Code, c.status, w.Body)
			}
			if got := w.Header().Get("Retry-After"); got != c.retryAfter {
				t.Errorf("Retry-After %q, want %q", got, c.retryAfter)
			}
			if got := w.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control %q", got)
			}
			if c.body == "" {
				if p := readProblem(t, w); p.Field != c.field {
					t.Errorf("field %q, want %q", p.Field, c.field)
				}
				return
			}
			if got := w.Body.String(); got != c.body+"\n" {
				t.Errorf("body\n%s want\n%s", got, c.body)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}

func TestRequestReachesThePort(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct {
		name, body string
		policy     ratelimit.PolicyID
		cost       int64
		wait       time.Duration
	}{
		{"all defaults", `{"subject":"a"}`, "api-default", 1, 250 * time.Millisecond},
		{"empty policy", `{"subject":"a","policyId":""}`, "api-default", 1, 250 * time.Millisecond},
		{"everything", ` {"policyId":"login","subject":"a","cost":2,"deadlineMillis":5000} `, "login", 2, 5 * time.Second},
		{"digest", `{"subjectDigest":"` + digest + `","deadlineMillis":1}`, "api-default", 1, time.Millisecond},
		{"pair of surrogates", `{"subject":"\ud83d\ude00\\ud800"}`, "api-default", 1, 250 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			type key struct{}
			before := time.Now()
			h := handler(t, config(t, func(ctx context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
				if r.PolicyID != c.policy || r.Cost != c.cost || r.EvaluationID != "" || r.Subject.IsZero() {
					t.Errorf("request %+v", r)
				}
				if strings.Contains(c.body, digest) && r.Subject.String() != digest {
					t.Errorf("digest %v", r.Subject)
				}
				if r.Deadline.Before(before.Add(c.wait)) || r.Deadline.After(time.Now().Add(c.wait)) {
					t.Errorf("deadline %v", r.Deadline.Sub(before))
				}
				if ctx.Value(key{}) != "caller" {
					t.Error("the context is not the request's")
				}
				return allowed(ctx, r)
			}))
			r := httptest.NewRequest(http.MethodPost, httpapi.PathEvaluate, strings.NewReader(c.body))
			r.Header.Set("Content-Type", "application/json; charset=UTF-8")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(context.WithValue(t.Context(), key{}, "caller")))
			if w.Code != 200 {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	h := handler(t, config(t, func(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		t.Error("a bad request reached the port")
		return nil, nil
	}))
	digest := strings.Repeat("a", 64)
	for _, c := range []struct {
		name, body string
		status     int
		code       string
		field      string
	}{
		{"empty", ``, 400, "malformed-body", ""},
		{"not JSON", `subject=a`, 400, "malformed-body", ""},
		{"an array", `[{"subject":"a"}]`, 400, "malformed-body", ""},
		{"a string", `"a"`, 400, "malformed-body", ""},
		{"null", `null`, 400, "malformed-body", ""},
		{"cut", `{"subject":"a"`, 400, "malformed-body", ""},
		{"cut in a value", `{"subject":"a`, 400, "malformed-body", ""},
		{"no colon", `{"subject" "a"}`, 400, "malformed-body", ""},
		{"trailing comma", `{"subject":"a",}`, 400, "malformed-body", ""},
		{"trailing data", `{"subject":"a"} {}`, 400, "malformed-body", ""},
		{"trailing text", `{"subject":"a"}x`, 400, "malformed-body", ""},
		{"byte order mark", "\xef\xbb\xbf" + `{"subject":"a"}`, 400, "malformed-body", ""},
		{"not UTF-8", "{\"subject\":\"a\xff\"}", 400, "malformed-body", ""},
		{"lone high surrogate", `{"subject":"\ud800"}`, 400, "wrong-type", "subject"},
		{"lone low surrogate", `{"subject":"x\udc00"}`, 400, "wrong-type", "subject"},
		{"two high surrogates", `{"subject":"\ud83d\ud83d"}`, 400, "wrong-type", "subject"},
		{"lone surrogate in a name", `{"\ud800":"a"}`, 400, "malformed-body", ""},
		{"unknown field", `{"subject":"a","burst":1}`, 400, "unknown-field", "burst"},
		{"unknown field that is no name", `{"user:42":1}`, 400, "unknown-field", ""},
		{"field in another case", `{"Subject":"a"}`, 400, "unknown-field", "Subject"},
		{"field twice", `{"subject":"a","subject":"b"}`, 400, "repeated-field", "subject"},
		{"field twice by escape", `{"cost":1,"co\u0073t":2,"subject":"a"}`, 400, "repeated-field", "cost"},
		{"null subject", `{"subject":null}`, 400, "wrong-type", "subject"},
		{"numeric subject", `{"subject":42}`, 400, "wrong-type", "subject"},
		{"nested subject", `{"subject":{"a":1}}`, 400, "wrong-type", "subject"},
		{"list as policy", `{"subject":"a","policyId":["login"]}`, 400, "wrong-type", "policyId"},
		{"cost as text", `{"subject":"a","cost":"1"}`, 400, "wrong-type", "cost"},
		{"cost with fraction", `{"subject":"a","cost":1.0}`, 400, "wrong-type", "cost"},
		{"cost with exponent", `{"subject":"a","cost":1e0}`, 400, "wrong-type", "cost"},
		{"null cost", `{"subject":"a","cost":null}`, 400, "wrong-type", "cost"},
		{"boolean cost", `{"subject":"a","cost":true}`, 400, "wrong-type", "cost"},
		{"cost of 2^53", `{"subject":"a","cost":9007199254740992}`, 422, "out-of-range", "cost"},
		{"cost beyond 64 bits", `{"subject":"a","cost":99999999999999999999}`, 422, "out-of-range", "cost"},
		{"cost 0", `{"subject":"a","cost":0}`, 422, "out-of-range", "cost"},
		{"negative cost", `{"subject":"a","cost":-1}`, 422, "out-of-range", "cost"},
		{"cost above the maximum", `{"subject":"a","cost":11}`, 422, "out-of-range", "cost"},
		{"deadline 0", `{"subject":"a","deadlineMillis":0}`, 422, "out-of-range", "deadlineMillis"},
		{"deadline above the maximum", `{"subject":"a","deadlineMillis":5001}`, 422, "out-of-range", "deadlineMillis"},
		{"deadline with fraction", `{"subject":"a","deadlineMillis":1.5}`, 400, "wrong-type", "deadlineMillis"},
		{"empty subject", `{"subject":""}`, 422, "out-of-range", "subject"},
		{"no subject", `{}`, 422, "missing", "subject"},
		{"both subjects", `{"subject":"a","subjectDigest":"` + digest + `"}`, 422, "conflicting-fields", "subjectDigest"},
		{"short digest", `{"subjectDigest":"` + digest[1:] + `"}`, 422, "out-of-range", "subjectDigest"},
		{"upper-case digest", `{"subjectDigest":"` + strings.ToUpper(digest) + `"}`, 422, "out-of-range", "subjectDigest"},
		{"digest of other letters", `{"subjectDigest":"` + strings.Repeat("g", 64) + `"}`, 422, "out-of-range", "subjectDigest"},
		{"evaluation ID", `{"subject":"a","evaluationId":"e1"}`, 422, "unsupported", "evaluationId"},
		{"empty evaluation ID", `{"subject":"a","evaluationId":""}`, 422, "unsupported", "evaluationId"},
		{"policy that cannot be", `{"subject":"a","policyId":"a b"}`, 422, "out-of-range", "policyId"},
		{"unknown policy", `{"subject":"a","policyId":"logout"}`, 404, "unknown-policy", "policyId"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := post(h, c.body)
			p := readProblem(t, w)
			if w.Code != c.status || p.Code != c.code || p.Field != c.field {
				t.Errorf("%d %s %q, want %d %s %q: %s", w.Code, p.Code, p.Field, c.status, c.code, c.field, w.Body)
			}
		})
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	h := handler(t, config(t, allowed))
	for _, c := range []struct {
		header http.Header
		status int
	}{
		{http.Header{"Content-Type": {"application/json"}}, 200},
		{http.Header{"Content-Type": {"Application/JSON;charset=utf-8"}}, 200},
		{http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity"}}, 200},
		{http.Header{}, 415},
		{http.Header{"Content-Type": {"text/json"}}, 415},
		{http.Header{"Content-Type": {"application/json; charset=latin1"}}, 415},
		{http.Header{"Content-Type": {"application/json", "application/json"}}, 415},
		{http.Header{"Content-Type": {"application/json;;;"}}, 415},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 415},
		{http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, 415},
	} {
		r := httptest.NewRequest(http.MethodPost, httpapi.PathEvaluate, strings.NewReader(`{"subject":"a"}`))
		r.Header = c.header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%v: status %d, want %d", c.header, w.Code, c.status)
		}
		if w.Code == 415 {
			readProblem(t, w)
		}
	}
}

// chunked hides the length of a body.
type chunked struct{ io.Reader }

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	h := handler(t, config(t, allowed))
	exact := `{"subject":"` + strings.Repeat("a", 4096-len(`{"subject":""}`)) + `"}`
	for _, c := range []struct {
		name   string
		body   io.Reader
		length int64
		status int
	}{
		{"at the bound", strings.NewReader(exact), 4096, 200},
		{"one more", strings.NewReader(exact + " "), 4097, 413},
		{"one more of unknown length", chunked{strings.NewReader(exact + " ")}, -1, 413},
		{"one more than it claims", strings.NewReader(exact + " "), 10, 413},
		{"claims too much", strings.NewReader(exact), 1 << 40, 413},
		{"breaks off", io.MultiReader(strings.NewReader(`{"sub`), broken{io.ErrUnexpectedEOF}), 100, 400},
	} {
		r := httptest.NewRequest(http.MethodPost, httpapi.PathEvaluate, c.body)
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = c.length
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, w.Code, c.status, w.Body)
		}
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestRoutes(t *testing.T) {
	t.Parallel()
	c := config(t, allowed)
	ready := false
	c.Ready = func() error {
		if ready {
			return nil
		}
		return errNotReady
	}
	h := handler(t, c)
	get := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	if w := get("GET", "/livez"); w.Code != 200 || w.Body.String() != "{\"status\":\"alive\"}\n" {
		t.Errorf("livez %d %s", w.Code, w.Body)
	}
	if w := get("GET", "/readyz"); w.Code != 503 || w.Body.String() != `{"status":"not-ready","reason":"the store has not been reached yet"}`+"\n" {
		t.Errorf("readyz %d %s", w.Code, w.Body)
	}
	ready = true
	if w := get("HEAD", "/readyz"); w.Code != 200 {
		t.Errorf("readyz %d", w.Code)
	}
	for _, r := range [][3]string{
		{"GET", "/v1/rate-limit/evaluate", "POST"},
		{"PUT", "/v1/rate-limit/evaluate", "POST"},
		{"HEAD", "/v1/rate-limit/evaluate", "POST"},
		{"POST", "/livez", "GET, HEAD"},
		{"DELETE", "/v1/policies", "GET, HEAD"},
		{"POST", "/readyz", "GET, HEAD"},
	} {
		w := get(r[0], r[1])
		if w.Code != 405 || w.Header().Get("Allow") != r[2] {
			t.Errorf("%v: %d, Allow %q", r, w.Code, w.Header().Get("Allow"))
		}
		readProblem(t, w)
	}
	for _, path := range []string{"/", "/livez/", "/v1/rate-limit/evaluate/", "//livez", "/v1"} {
		w := get("GET", path)
		if w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
		readProblem(t, w)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	handler(t, config(t, allowed)).ServeHTTP(w, httptest.NewRequest("GET", "/v1/policies", nil))
	const rest = `"cleanupGraceMillis":60000,"maxClockRegressionMillis":2000,"failurePolicy":"FAIL_CLOSED","certainty":`
	want := `{"defaultPolicyId":"api-default","policies":[` +
		`{"id":"api-default","revision":1,"algorithm":"token-bucket","parameters":{"capacity":100,"refillTokens":50,"refillPeriodMillis":1000},"maxCost":10,` + rest + `"CERTAIN","default":true},` +
		`{"id":"login","revision":3,"algorithm":"fixed-window","parameters":{"limit":5,"windowMillis":60000},"maxCost":2,` + rest + `"CERTAIN","default":false},` +
		`{"id":"payments","revision":5,"algorithm":"sliding-window-log","parameters":{"limit":100,"windowMillis":3600000},"maxCost":1,` + rest + `"CERTAIN","default":false},` +
		`{"id":"search","revision":2,"algorithm":"sliding-window-counter","parameters":{"limit":30,"windowMillis":10000},"maxCost":1,` + rest + `"APPROXIMATE_ALGORITHM","default":false},` +
		`{"id":"uploads","revision":4,"algorithm":"gcra","parameters":{"limit":10,"periodMillis":60000,"burst":4},"maxCost":3,` + rest + `"CERTAIN","default":false}]}` + "\n"
	if w.Code != 200 || w.Body.String() != want {
		t.Errorf("%d\n%s want\n%s", w.Code, w.Body, want)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	t.Parallel()
	_, err := httpapi.New(httpapi.Config{})
	if err == nil {
		t.Fatal("an empty configuration was taken")
	}
	for _, name := range []string{"Limiter", "Policies", "Digester", "Ready", "MaxBodyBytes", "MaxDeadline", "DefaultDeadline"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("no word of %s in: %v", name, err)
		}
	}
	c := config(t, allowed)
	c.DefaultPolicy = "other"
	if _, err := httpapi.New(c); err == nil || !strings.Contains(err.Error(), "DefaultPolicy") {
		t.Errorf("unknown default policy: %v", err)
	}
}

// TestOverTheWire holds the answers through a real server, where net/http has its own say.
func TestOverTheWire(t *testing.T) {
	t.Parallel()
	asked, gone := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(handler(t, config(t, func(ctx context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		if r.Cost == 10 {
			close(asked)
			<-ctx.Done() // the caller goes away
			close(gone)
			return ratelimit.Indeterminate{PolicyID: r.PolicyID, RetryAfter: time.Second}, nil
		}
		return allowed(ctx, r)
	})))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+httpapi.PathEvaluate, strings.NewReader(`{"subject":"a","cost":10}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	go func() {
		<-asked
		cancel()
	}()
	if response, err := server.Client().Do(r); err == nil {
		_ = response.Body.Close()
		t.Error("an answer although the caller went away")
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the port was not told that the caller went away")
	}
	response, err := server.Client().Post(server.URL+httpapi.PathEvaluate, "application/json", strings.NewReader(`{"subject":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 || !bytes.HasPrefix(body, []byte(`{"outcome":"EVALUATED","decision":{"allowed":true,`)) {
		t.Errorf("%v %d %s", err, response.StatusCode, body)
	}
}
