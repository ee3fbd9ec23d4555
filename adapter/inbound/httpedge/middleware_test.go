package httpedge_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestMiddlewareHoldsTheLimit(t *testing.T) {
	t.Parallel()
	h := middleware(t, usual(t))(welcome)
	for left, want := range []string{1: `"two";a=0;w=30;r=0;t=30`, 0: `"two";a=1;w=30;r=1;t=30`} {
		w := do(h, "GET", "/")
		if w.Code != http.StatusTeapot || w.Header().Get("RateLimit") != want || w.Header().Get("RateLimit-Policy") != `"two";q=2;w=60` {
			t.Errorf("%d: %d %v", left, w.Code, w.Header())
		}
		if w.Header().Get("Retry-After") != "" {
			t.Errorf("%v", w.Header())
		}
	}
	w := do(h, "GET", "/")
	if w.Code != http.StatusTooManyRequests || code(t, w) != "rate-limited" || w.Header().Get("Retry-After") != "8" || w.Header().Get("RateLimit") != `"two";a=0;w=8;r=0;t=8` {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := do(h, "GET", "/", "peer", "192.0.2.2:4711"); w.Code != http.StatusTeapot {
		t.Errorf("another client: %d", w.Code)
	}
}

func TestEveryOutcomeHasItsStatus(t *testing.T) {
	t.Parallel()
	evaluated := func(allowed bool) ratelimit.Outcome {
		return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: allowed, PolicyID: "two", RetryAfter: time.Millisecond}}
	}
	for name, test := range map[string]struct {
		outcome ratelimit.Outcome
		err     error
		status  int
		code    string
		retry   string
	}{
		"allowed":       {evaluated(true), nil, http.StatusTeapot, "", ""},
		"denied":        {evaluated(false), nil, http.StatusTooManyRequests, "rate-limited", "1"},
		"unavailable":   {ratelimit.Unavailable{RetryAfter: 2 * time.Second}, nil, http.StatusServiceUnavailable, "limiter-unavailable", "2"},
		"indeterminate": {ratelimit.Indeterminate{RetryAfter: time.Millisecond}, nil, http.StatusServiceUnavailable, "limiter-indeterminate", "1"},
		"incompatible":  {ratelimit.Incompatible{}, nil, http.StatusInternalServerError, "limiter-incompatible", ""},
		"none":          {nil, nil, http.StatusInternalServerError, "internal", ""},
		"error":         {evaluated(true), errors.New("alice"), http.StatusInternalServerError, "internal", ""},
		"no deadline":   {nil, &ratelimit.InvalidRequestError{Fault: ratelimit.FaultDeadline}, http.StatusInternalServerError, "internal", ""},
		"cost":          {nil, &ratelimit.InvalidRequestError{Fault: ratelimit.FaultCost, Reason: "cost is 3"}, http.StatusBadRequest, "cost-out-of-range", ""},
		"policy":        {nil, &ratelimit.InvalidRequestError{Fault: ratelimit.FaultUnknownPolicy, Reason: "none"}, http.StatusInternalServerError, "unknown-policy", ""},
	} {
		for _, shadow := range []bool{false, true} {
			config := usual(t)
			p := &counting{always: test.outcome, err: test.err}
			config.Limiter = p
			var reports []httpedge.Report
			config.Observe = func(_ *http.Request, r httpedge.Report) { reports = append(reports, r) }
			if shadow {
				config.Mode = httpedge.ModeShadow
			}
			w := do(middleware(t, config)(welcome), "GET", "/")
			if len(reports) != 1 || reports[0].Shadow != shadow || reports[0].Policy != "two" || p.asked != 1 {
				t.Errorf("%s: %+v, asked %d times", name, reports, p.asked)
			}
			if shadow {
				if w.Code != http.StatusTeapot || w.Header().Get("RateLimit")+w.Header().Get("Retry-After") != "" {
					t.Errorf("%s in shadow: %d %v", name, w.Code, w.Header())
				}
				if got := w.Header().Get(httpedge.ShadowHeader); !strings.HasPrefix(got, reports[0].Verdict.String()+`;policy="two"`) {
					t.Errorf("%s in shadow: %q", name, got)
				}
				continue
			}
			if w.Code != test.status || code(t, w) != test.code || w.Header().Get("Retry-After") != test.retry {
				t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
			}
			if strings.Contains(w.Body.String(), "alice") {
				t.Errorf("%s: the answer repeats an error: %s", name, w.Body)
			}
		}
	}
}

func TestNobodyToLimit(t *testing.T) {
	t.Parallel()
	config := usual(t)
	config.Subject = apiKey(t)
	h := middleware(t, config)(welcome)
	for name, test := range map[string]struct {
		headers []string
		status  int
		code    string
	}{
		"a key":   {[]string{"X-API-Key", "k"}, http.StatusTeapot, ""},
		"none":    {nil, http.StatusBadRequest, "missing-subject"},
		"empty":   {[]string{"X-API-Key", ""}, http.StatusBadRequest, "missing-subject"},
		"twice":   {[]string{"X-API-Key", "k", "X-API-Key", "l"}, http.StatusBadRequest, "malformed-subject"},
		"longest": {[]string{"X-API-Key", strings.Repeat("k", httpedge.MaxSubjectBytes)}, http.StatusTeapot, ""},
		"longer":  {[]string{"X-API-Key", strings.Repeat("k", httpedge.MaxSubjectBytes+1)}, http.StatusBadRequest, "malformed-subject"},
	} {
		if w := do(h, "GET", "/", test.headers...); w.Code != test.status || code(t, w) != test.code {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	config.Subject = func(*http.Request) (httpedge.Subject, error) { return httpedge.Subject{}, errors.New("alice") }
	if w := do(middleware(t, config)(welcome), "GET", "/"); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "alice") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, bad := range []string{"", "a b", "a:b", strings.Repeat("a", 129)} {
		if _, err := httpedge.APIKey(bad); err == nil {
			t.Errorf("%q is the name of a header", bad)
		}
	}
}

func TestSubjectsTogether(t *testing.T) {
	t.Parallel()
	config := usual(t)
	p := &counting{policies: config.Policies}
	config.Limiter = p
	config.Subject = httpedge.FirstOf(apiKey(t), address(t))
	h := middleware(t, config)(welcome)
	do(h, "GET", "/", "X-API-Key", "a")
	do(h, "GET", "/", "X-API-Key", "b")
	do(h, "GET", "/")
	do(h, "GET", "/")
	if len(p.counts) != 3 {
		t.Errorf("%d subjects, want 3", len(p.counts))
	}
	if w := do(h, "GET", "/", "X-API-Key", "a", "X-API-Key", "b"); w.Code != http.StatusBadRequest {
		t.Errorf("a malformed key is passed over: %d", w.Code)
	}
	config.Subject = httpedge.Each(apiKey(t), httpedge.Route(func(r *http.Request) string { return r.URL.Path }))
	p = &counting{policies: config.Policies}
	config.Limiter = p
	h = middleware(t, config)(welcome)
	do(h, "GET", "/x", "X-API-Key", "a")
	do(h, "GET", "/y", "X-API-Key", "a")
	do(h, "GET", "/x", "X-API-Key", "b")
	do(h, "GET", "/x", "X-API-Key", "a")
	if len(p.counts) != 3 {
		t.Errorf("%d subjects, want 3", len(p.counts))
	}
	if w := do(h, "GET", "/x"); w.Code != http.StatusBadRequest || code(t, w) != "missing-subject" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestForgedAddress(t *testing.T) {
	t.Parallel()
	config := usual(t)
	config.Subject = address(t, "10.0.0.0/8")
	h := middleware(t, config)(welcome)
	var got []int
	for _, forged := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"} {
		got = append(got, do(h, "GET", "/", "X-Forwarded-For", forged).Code)
	}
	for _, forged := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"} {
		got = append(got, do(h, "GET", "/", "peer", "10.0.0.1:1", "X-Forwarded-For", forged+", 198.51.100.1").Code)
	}
	if want := []int{418, 418, 429, 418, 418, 429}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCostSkipAndDenyStatus(t *testing.T) {
	t.Parallel()
	config := usual(t)
	config.DenyStatus = http.StatusForbidden
	config.Cost = func(r *http.Request) int64 { return int64(len(r.URL.Query().Get("batch"))) }
	config.Skip = func(r *http.Request) bool { return r.URL.Path == "/healthz" }
	config.Observe = func(r *http.Request, _ httpedge.Report) {
		if r.URL.Path == "/healthz" {
			t.Error("a skipped request is reported")
		}
	}
	h := middleware(t, config)(welcome)
	for _, test := range []struct {
		target string
		want   int
	}{{"/?batch=xxx", 400}, {"/?batch=", 400}, {"/?batch=xx", 418}, {"/?batch=x", 403}, {"/healthz", 418}} {
		if w := do(h, "GET", test.target); w.Code != test.want {
			t.Errorf("%s: %d %s, want %d", test.target, w.Code, w.Body, test.want)
		}
	}
}

// TestTwoLimitsInARow holds that a client sees both.
func TestTwoLimitsInARow(t *testing.T) {
	t.Parallel()
	outer, inner := usual(t), usual(t)
	outer.Policy = httpedge.OnePolicy("ten")
	w := do(middleware(t, outer)(middleware(t, inner)(welcome)), "GET", "/")
	if got := w.Header().Values("RateLimit-Policy"); !cmp.Equal(got, []string{`"ten";q=10;w=60`, `"two";q=2;w=60`}) {
		t.Errorf("%q", got)
	}
	if got := len(w.Header().Values("RateLimit")); got != 2 {
		t.Errorf("%q", w.Header())
	}
}

func TestStandardMux(t *testing.T) {
	t.Parallel()
	table := map[string]ratelimit.PolicyID{"POST /login": "two", "GET /items/{id}": "ten"}
	inside, around := usual(t), usual(t)
	inside.Policy = httpedge.PolicyByRoute(httpedge.MatchedPattern, table, "ten")
	inside.Subject = httpedge.Route(httpedge.MatchedPattern)
	limit := middleware(t, inside)
	mux := http.NewServeMux()
	mux.Handle("POST /login", limit(welcome))
	mux.Handle("GET /items/{id}", limit(welcome))
	plain := http.NewServeMux()
	plain.Handle("POST /login", welcome)
	plain.Handle("GET /items/{id}", welcome)
	around.Policy = httpedge.PolicyByRoute(httpedge.MuxPattern(plain), table, "ten")
	around.Subject = httpedge.Route(httpedge.MuxPattern(plain))
	for name, h := range map[string]http.Handler{"inside": mux, "around": middleware(t, around)(plain)} {
		if w := do(h, "POST", "/login"); w.Header().Get("RateLimit-Policy") != `"two";q=2;w=60` {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		do(h, "GET", "/items/1")
		if w := do(h, "GET", "/items/2"); !strings.HasPrefix(w.Header().Get("RateLimit"), `"ten";a=8;`) {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	if w := do(middleware(t, around)(plain), "GET", "/nowhere"); w.Code != http.StatusBadRequest {
		t.Errorf("a request without a route: %d", w.Code)
	}
}

func TestChi(t *testing.T) {
	t.Parallel()
	pattern := func(r *http.Request) string { return r.Method + " " + chi.RouteContext(r.Context()).RoutePattern() }
	config := usual(t)
	config.Policy = httpedge.PolicyByRoute(pattern, map[string]ratelimit.PolicyID{"GET /items/{id}": "two"}, "ten")
	limit := middleware(t, config)
	router := chi.NewRouter()
	router.With(limit).Get("/items/{id}", welcome)
	router.Group(func(r chi.Router) {
		r.Use(limit)
		r.Get("/other", welcome)
	})
	for _, test := range []struct {
		target string
		status int
		policy string
	}{{"/items/1", 418, "two"}, {"/items/2", 418, "two"}, {"/items/3", 429, "two"}, {"/other", 418, "ten"}} {
		if w := do(router, "GET", test.target); w.Code != test.status || !strings.HasPrefix(w.Header().Get("RateLimit"), `"`+test.policy+`";`) {
			t.Errorf("%s: %d %v", test.target, w.Code, w.Header())
		}
	}
}

// TestNothingIsWrapped holds the ResponseWriter of a handler to be the server's own.
func TestNothingIsWrapped(t *testing.T) {
	t.Parallel()
	var got http.ResponseWriter
	w := httptest.NewRecorder()
	middleware(t, usual(t))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })).
		ServeHTTP(w, httptest.NewRequest("GET", "/", http.NoBody))
	if got != w {
		t.Errorf("the handler got a %T", got)
	}
}

func TestConfigurationIsJudged(t *testing.T) {
	t.Parallel()
	_, err := httpedge.NewMiddleware(httpedge.Config{DenyStatus: 500})
	if err == nil {
		t.Fatal("nothing is accepted")
	}
	for _, want := range []string{"Limiter", "Policies", "Digester", "Policy is", "Subject", "Deadline", "Mode", "DenyStatus"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %v", want, err)
		}
	}
	config := usual(t)
	config.Headers = []httpedge.HeaderStyle{httpedge.HeadersInvalid}
	if _, err := httpedge.NewMiddleware(config); err == nil {
		t.Error("an invalid style is accepted")
	}
	if _, err := httpedge.ClientAddress(httpedge.AddressConfig{}); err == nil {
		t.Error("no configuration of addresses is accepted")
	}
}
