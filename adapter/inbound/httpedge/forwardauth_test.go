package httpedge_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// checks is a configuration behind the proxy 10.0.0.1, with every header named.
func checks(t testing.TB) httpedge.ForwardAuthConfig {
	t.Helper()
	set := policySet(t)
	trusted, err := httpedge.ParseTrustedProxies([]string{"10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return httpedge.ForwardAuthConfig{
		Limiter: &counting{policies: set}, Policies: set, Digester: newDigester(t), DefaultPolicy: "ten", Deadline: time.Second,
		Headers: httpedge.DefaultHeaders(), DenyStatus: http.StatusTooManyRequests, Mode: httpedge.ModeEnforce,
		Address: httpedge.AddressConfig{Proxies: trusted, Header: httpedge.AddressHeaderForwardedFor, IPv6Prefix: 64},
		Names:   httpedge.HeaderNames{Policy: "Edgelimit-Policy", Subject: "edgelimit-subject", SubjectDigest: "Edgelimit-Subject-Digest", Cost: "Edgelimit-Cost"},
	}
}

func forwardAuth(t testing.TB, config httpedge.ForwardAuthConfig) http.Handler {
	t.Helper()
	h, err := httpedge.NewForwardAuth(config)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestCheck(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("0123456789abcdef", 4)
	client := []string{"peer", "10.0.0.1:1", "X-Forwarded-For", "192.0.2.1"}
	for name, test := range map[string]struct {
		target  string
		headers []string
		status  int
		code    string
		limit   string // the beginning of RateLimit
	}{
		"by address":                       {"/v1/check", client, 200, "", `"ten";a=9;`},
		"below the path":                   {"/v1/check/orders/7", client, 200, "", `"ten";a=9;`},
		"below it the query is not read":   {"/v1/check/orders?policy=two&x=%zz&subject=a&subject=b", client, 200, "", `"ten";a=9;`},
		"policy by query":                  {"/v1/check?policy=two", client, 200, "", `"two";a=1;`},
		"policy by header":                 {"/v1/check", append([]string{"Edgelimit-Policy", "two"}, client...), 200, "", `"two";a=1;`},
		"policy by header below the path":  {"/v1/check/x", append([]string{"Edgelimit-Policy", "two"}, client...), 200, "", `"two";a=1;`},
		"subject by query":                 {"/v1/check?subject=a%20%00b", nil, 200, "", `"ten";a=9;`},
		"subject by header":                {"/v1/check", []string{"Edgelimit-Subject", "a"}, 200, "", `"ten";a=9;`},
		"digest by query":                  {"/v1/check?subject-digest=" + digest, nil, 200, "", `"ten";a=9;`},
		"digest by header":                 {"/v1/check", []string{"Edgelimit-Subject-Digest", digest}, 200, "", `"ten";a=9;`},
		"cost by query":                    {"/v1/check?cost=4", client, 200, "", `"ten";a=6;`},
		"cost by header":                   {"/v1/check", append([]string{"Edgelimit-Cost", "10"}, client...), 200, "", `"ten";a=0;`},
		"an empty header is none":          {"/v1/check", append([]string{"Edgelimit-Subject", "", "Edgelimit-Policy", ""}, client...), 200, "", `"ten";a=9;`},
		"a peer that is no proxy":          {"/v1/check", nil, 400, "missing-subject", ""},
		"forged by a peer that is none":    {"/v1/check", []string{"X-Forwarded-For", "192.0.2.1"}, 400, "missing-subject", ""},
		"unknown policy":                   {"/v1/check?policy=three", client, 500, "unknown-policy", ""},
		"no policy's name":                 {"/v1/check?policy=%20", client, 400, "malformed-check", ""},
		"empty policy":                     {"/v1/check?policy=", client, 400, "malformed-check", ""},
		"policy twice":                     {"/v1/check?policy=two&policy=ten", client, 400, "conflicting-fields", ""},
		"policy by both":                   {"/v1/check?policy=two", append([]string{"Edgelimit-Policy", "two"}, client...), 400, "conflicting-fields", ""},
		"header twice":                     {"/v1/check", []string{"Edgelimit-Subject", "a", "Edgelimit-Subject", "b"}, 400, "conflicting-fields", ""},
		"subject and digest":               {"/v1/check?subject=a", []string{"Edgelimit-Subject-Digest", digest}, 400, "conflicting-fields", ""},
		"empty subject":                    {"/v1/check?subject=", nil, 400, "malformed-check", ""},
		"longest subject":                  {"/v1/check?subject=" + strings.Repeat("%41", httpedge.MaxSubjectBytes), nil, 200, "", `"ten";a=9;`},
		"longer subject":                   {"/v1/check?subject=" + strings.Repeat("a", httpedge.MaxSubjectBytes+1), nil, 400, "malformed-check", ""},
		"longer subject by header":         {"/v1/check", []string{"Edgelimit-Subject", strings.Repeat("a", httpedge.MaxSubjectBytes+1)}, 400, "malformed-check", ""},
		"no digest":                        {"/v1/check?subject-digest=" + strings.ToUpper(digest), nil, 400, "malformed-check", ""},
		"no cost":                          {"/v1/check?cost=0", client, 400, "malformed-check", ""},
		"signed cost":                      {"/v1/check?cost=%2B1", client, 400, "malformed-check", ""},
		"fractional cost":                  {"/v1/check?cost=1.0", client, 400, "malformed-check", ""},
		"long cost":                        {"/v1/check?cost=99999999999999999", client, 400, "malformed-check", ""},
		"cost above the maximum":           {"/v1/check?cost=11", client, 400, "cost-out-of-range", ""},
		"another deny-status":              {"/v1/check?deny-status=200", client, 400, "malformed-check", ""},
		"unknown parameter":                {"/v1/check?user=a", client, 400, "malformed-check", ""},
		"a query that is not well formed":  {"/v1/check?subject=%zz", client, 400, "malformed-check", ""},
		"a query with a semicolon":         {"/v1/check?subject=a;policy=two", client, 400, "malformed-check", ""},
		"a query that is too long":         {"/v1/check?" + strings.Repeat("&", 1<<15), client, 400, "malformed-check", ""},
		"deny-status where nothing denies": {"/v1/check?deny-status=403", client, 200, "", `"ten";a=9;`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := do(forwardAuth(t, checks(t)), "GET", test.target, test.headers...)
			if w.Code != test.status || code(t, w) != test.code || !strings.HasPrefix(w.Header().Get("RateLimit"), test.limit) {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			if w.Code == http.StatusOK && (w.Body.Len() != 0 || w.Header().Get("Cache-Control") != "no-store") {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
		})
	}
}

func TestCheckDenies(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST", "DELETE"} {
		h := forwardAuth(t, checks(t))
		target := "/v1/check?policy=two&subject=a"
		do(h, method, target)
		do(h, method, target)
		w := do(h, method, target)
		if w.Code != http.StatusTooManyRequests || code(t, w) != "rate-limited" || w.Header().Get("Retry-After") != "8" {
			t.Errorf("%s: %d %v %s", method, w.Code, w.Header(), w.Body)
		}
		w = do(h, method, target+"&deny-status=403")
		if w.Code != http.StatusForbidden || code(t, w) != "rate-limited" || w.Header().Get("Retry-After") != "8" || w.Header().Get("RateLimit") == "" {
			t.Errorf("%s: %d %v %s", method, w.Code, w.Header(), w.Body)
		}
	}
	config := checks(t)
	config.DenyStatus = http.StatusForbidden
	h := forwardAuth(t, config)
	do(h, "GET", "/v1/check?cost=10&subject=a")
	if w := do(h, "GET", "/v1/check?subject=a"); w.Code != http.StatusForbidden {
		t.Errorf("%d", w.Code)
	}
	if w := do(h, "GET", "/v1/check?subject=a&deny-status=429"); w.Code != http.StatusTooManyRequests {
		t.Errorf("%d", w.Code)
	}
}

func TestCheckOutages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		outcome ratelimit.Outcome
		status  int
		retry   string
	}{
		"unavailable":   {ratelimit.Unavailable{RetryAfter: 1500 * time.Millisecond}, http.StatusServiceUnavailable, "2"},
		"indeterminate": {ratelimit.Indeterminate{RetryAfter: time.Second}, http.StatusServiceUnavailable, "1"},
		"incompatible":  {ratelimit.Incompatible{}, http.StatusInternalServerError, ""},
		"none":          {nil, http.StatusInternalServerError, ""},
	} {
		config := checks(t)
		config.Limiter = &counting{always: test.outcome}
		if w := do(forwardAuth(t, config), "GET", "/v1/check?subject=a&deny-status=403"); w.Code != test.status || w.Header().Get("Retry-After") != test.retry {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		config.Mode = httpedge.ModeShadow
		if w := do(forwardAuth(t, config), "GET", "/v1/check?subject=a"); w.Code != http.StatusOK || w.Header().Get(httpedge.ShadowHeader) == "" {
			t.Errorf("%s in shadow: %d %v", name, w.Code, w.Header())
		}
	}
}

// TestUnnamedHeadersAreNotRead holds that a client cannot choose where the configuration names no header.
func TestUnnamedHeadersAreNotRead(t *testing.T) {
	t.Parallel()
	config := checks(t)
	config.Names = httpedge.HeaderNames{}
	p := &counting{policies: config.Policies}
	config.Limiter = p
	h := forwardAuth(t, config)
	for _, forged := range []string{"a", "b", "c"} {
		w := do(h, "GET", "/v1/check?policy=two", "peer", "10.0.0.1:1", "X-Forwarded-For", forged+", 192.0.2.1",
			"Edgelimit-Subject", forged, "Edgelimit-Policy", "ten", "Edgelimit-Cost", "1", "", "")
		if !strings.HasPrefix(w.Header().Get("RateLimit"), `"two"`) {
			t.Errorf("%v", w.Header())
		}
	}
	if len(p.counts) != 1 {
		t.Errorf("%d subjects, want 1", len(p.counts))
	}
}

// panicking is a limiter that breaks.
type panicking struct{ value any }

func (p panicking) Evaluate(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	panic(p.value)
}

// TestNothingOfARequestIsShown asks in every way that fails, and looks for what was asked in the
// answers and in the log.
func TestNothingOfARequestIsShown(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	config := checks(t)
	config.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	config.Observe = func(_ *http.Request, r httpedge.Report) { config.Logger.Info("report", "report", r) }
	const secret = "alice@example.org"
	var shown strings.Builder
	ask := func(config httpedge.ForwardAuthConfig, target string, headers ...string) {
		w := do(forwardAuth(t, config), "GET", target, headers...)
		shown.WriteString(w.Body.String())
		for name, values := range w.Header() {
			shown.WriteString(name + strings.Join(values, ""))
		}
	}
	q := url.QueryEscape(secret)
	for _, target := range []string{
		"/v1/check?subject=" + q, "/v1/check?policy=" + q, "/v1/check?policy=two&cost=" + q, "/v1/check?" + q, "/v1/check?subject-digest=" + q,
		"/v1/check?deny-status=" + q, "/v1/check?subject=" + q + "&cost=99", "/v1/check?subject=" + q + "&subject=" + q, "/v1/check?subject=" + q + "&policy=x", "/v1/check/" + q,
	} {
		ask(config, target)
		ask(config, target, "peer", "10.0.0.1:1", "X-Forwarded-For", secret+", 198.51.100.77")
	}
	ask(config, "/v1/check", "Edgelimit-Subject", secret)
	broken := config
	broken.Limiter = panicking{value: secret}
	ask(broken, "/v1/check?subject="+q)
	broken.Limiter = &counting{err: &ratelimit.InvalidRequestError{Fault: ratelimit.FaultSubject, Reason: secret}}
	ask(broken, "/v1/check?subject="+q)
	for _, text := range []string{secret, q, "198.51.100.77"} {
		if strings.Contains(shown.String(), text) || strings.Contains(log.String(), text) {
			t.Errorf("%s is shown: %s\n%s", text, shown.String(), log.String())
		}
	}
	if !strings.Contains(log.String(), "panic while checking") {
		t.Errorf("the log is silent: %s", log.String())
	}
}

func TestBrokenLimiterIsClosed(t *testing.T) {
	t.Parallel()
	config := checks(t)
	config.Limiter = panicking{value: "x"}
	w := httptest.NewRecorder()
	forwardAuth(t, config).ServeHTTP(w, httptest.NewRequest("GET", "/v1/check?subject=a", http.NoBody))
	if w.Code != http.StatusInternalServerError || code(t, w) != "internal" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestIsCheck(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"/v1/check": true, "/v1/check/": true, "/v1/check/a/b": true, "/v1/checks": false, "/v1/chec": false, "/": false} {
		if got := httpedge.IsCheck(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestForwardAuthConfigurationIsJudged(t *testing.T) {
	t.Parallel()
	set := policySet(t)
	_, err := httpedge.NewForwardAuth(httpedge.ForwardAuthConfig{
		Policies: set, DefaultPolicy: "three",
		Names: httpedge.HeaderNames{Policy: "A", Subject: "a", Cost: "no name"},
	})
	if err == nil {
		t.Fatal("nothing is accepted")
	}
	for _, want := range []string{"Limiter", "Digester", "Deadline", "Mode", "DenyStatus", "Address: field Header", "IPv6Prefix", `DefaultPolicy "three"`, "Names.Subject is A", "Names.Cost is not"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %v", want, err)
		}
	}
}

// FuzzCheck holds every check to an answer of the documented ones, and everything but an evaluated
// admission to be no 2xx.
func FuzzCheck(f *testing.F) {
	f.Add("policy=two&subject=a", "", "", true)
	f.Add("subject=%00&cost=1&deny-status=403", "a", "9", false)
	f.Add("%", "", "0", true)
	set := policySet(f)
	config := checks(f)
	f.Fuzz(func(t *testing.T, query, subject, cost string, open bool) {
		config := config
		decision := ratelimit.RateLimitDecision{Allowed: open, PolicyID: "two", RetryAfter: time.Second}
		p := &counting{always: ratelimit.Evaluated{Decision: decision}}
		config.Limiter, config.Policies = p, set
		h, err := httpedge.NewForwardAuth(config)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/v1/check", http.NoBody)
		r.URL.RawQuery = query
		r.Header["Edgelimit-Subject"], r.Header["Edgelimit-Cost"] = []string{subject}, []string{cost}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if passed := w.Code == http.StatusOK; passed != (open && p.asked == 1) {
			t.Errorf("%q %q %q: %d, asked %d times", query, subject, cost, w.Code, p.asked)
		}
		switch w.Code {
		case 200, 400, 403, 429, 500:
		default:
			t.Errorf("%q: %d", query, w.Code)
		}
	})
}
