package httpedge_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// counting is a port with a count for each policy and subject, or one outcome for all.
type counting struct {
	policies *ratelimit.PolicySet // nil answers always and err
	always   ratelimit.Outcome
	err      error

	mu     sync.Mutex
	counts map[string]int64
	asked  int
}

func (p *counting) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.policies == nil {
		return p.always, p.err
	}
	policy, _, err := p.policies.Admit(ctx, request)
	if err != nil {
		return nil, err
	}
	if p.counts == nil {
		p.counts = make(map[string]int64)
	}
	key := string(request.PolicyID) + request.Subject.String()
	d := ratelimit.RateLimitDecision{
		Limit: policy.Limit(), PolicyID: policy.ID(), PolicyRevision: policy.Revision(), Source: ratelimit.SourceLocalMemory,
		Certainty: policy.Certainty(), ResetAt: time.Now().Add(30 * time.Second),
	}
	if d.Allowed = p.counts[key]+request.Cost <= d.Limit; d.Allowed {
		p.counts[key] += request.Cost
	} else {
		d.RetryAfter = 7500 * time.Millisecond
	}
	d.Remaining = d.Limit - p.counts[key]
	return ratelimit.Evaluated{Decision: d}, nil
}

func policySet(t testing.TB) *ratelimit.PolicySet {
	t.Helper()
	var all []*ratelimit.RateLimitPolicy
	for id, limit := range map[ratelimit.PolicyID]int64{"two": 2, "ten": 10} {
		p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
			ID: id, Revision: 1, Algorithm: ratelimit.AlgorithmFixedWindow,
			Parameters: ratelimit.FixedWindowParameters{Limit: limit, Window: time.Minute}, MaxCost: limit,
			CleanupGrace: time.Minute, FailurePolicy: ratelimit.FailClosed,
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	set, err := ratelimit.NewPolicySet(all...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func newDigester(t testing.TB) *ratelimit.SubjectDigester {
	t.Helper()
	d, err := ratelimit.NewSubjectDigester([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func address(t testing.TB, proxies ...string) httpedge.SubjectFunc {
	t.Helper()
	trusted, err := httpedge.ParseTrustedProxies(proxies)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := httpedge.ClientAddress(httpedge.AddressConfig{Proxies: trusted, Header: httpedge.AddressHeaderForwardedFor, IPv6Prefix: 64})
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

func apiKey(t testing.TB) httpedge.SubjectFunc {
	t.Helper()
	subject, err := httpedge.APIKey("X-API-Key")
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

// usual is a configuration with the policy two, by client address.
func usual(t testing.TB) httpedge.Config {
	t.Helper()
	set := policySet(t)
	return httpedge.Config{
		Limiter: &counting{policies: set}, Policies: set, Digester: newDigester(t),
		Policy: httpedge.OnePolicy("two"), Subject: address(t), Deadline: time.Second,
		Headers: httpedge.DefaultHeaders(), Mode: httpedge.ModeEnforce,
	}
}

func middleware(t testing.TB, config httpedge.Config) func(http.Handler) http.Handler {
	t.Helper()
	m, err := httpedge.NewMiddleware(config)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// welcome is what stands behind the door.
var welcome = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusTeapot)
})

// do serves one request from 192.0.2.1; headers are pairs.
func do(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, http.NoBody)
	r.RemoteAddr = "192.0.2.1:4711"
	for pair := range slices.Chunk(headers, 2) {
		if pair[0] == "peer" {
			r.RemoteAddr = pair[1]
			continue
		}
		r.Header.Add(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// code reads the code of a problem, "" where the answer is none.
func code(t testing.TB, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Header().Get("Content-Type") != "application/problem+json" {
		return ""
	}
	var p struct {
		Type, Title, Detail, Code, Field string
		Status                           int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Type != "about:blank" || p.Title != http.StatusText(w.Code) || p.Detail == "" {
		t.Errorf("%d %s: %v", w.Code, w.Body, err)
	}
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a cache may keep %s", w.Body)
	}
	return p.Code
}
