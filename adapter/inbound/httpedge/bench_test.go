package httpedge_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// ready is a limiter that costs nothing.
type ready struct{ outcome ratelimit.Outcome }

func (p ready) Evaluate(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return p.outcome, nil
}

// blank is a ResponseWriter that keeps its header.
type blank struct{ header http.Header }

func (w blank) Header() http.Header             { return w.header }
func (blank) WriteHeader(int)                   {}
func (blank) Write(body []byte) (int, error)    { return len(body), nil }
func (blank) WriteString(s string) (int, error) { return len(s), nil }

func outcomes() map[string]ratelimit.Outcome {
	reset := time.Now().Add(30 * time.Second)
	return map[string]ratelimit.Outcome{
		"allowed": ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: true, PolicyID: "two", Limit: 2, Remaining: 1, ResetAt: reset}},
		"denied":  ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{PolicyID: "two", Limit: 2, RetryAfter: time.Second, ResetAt: reset}},
	}
}

// serveOften gives a function that serves one request.
func serveOften(h http.Handler, r *http.Request) func() {
	w := blank{header: make(http.Header, 16)}
	return func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func request() *http.Request {
	r := httptest.NewRequest("GET", "/", http.NoBody)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", "203.0.113.7, 192.0.2.1, 10.0.0.2")
	r.Header.Set("X-API-Key", "key")
	return r
}

// BenchmarkMiddleware is what the door costs beside the limiter, of which the digest is the most.
func BenchmarkMiddleware(b *testing.B) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	digest, err := newDigester(b).Digest("someone")
	if err != nil {
		b.Fatal(err)
	}
	for _, subject := range []struct {
		name string
		f    httpedge.SubjectFunc
	}{
		{"address", address(b, "10.0.0.0/8")},
		{"key", apiKey(b)},
		{"digested", func(*http.Request) (httpedge.Subject, error) { return httpedge.DigestedSubject(digest), nil }},
	} {
		for _, name := range []string{"allowed", "denied"} {
			b.Run(subject.name+"/"+name, func(b *testing.B) {
				config := usual(b)
				config.Subject, config.Limiter = subject.f, ready{outcome: outcomes()[name]}
				serve := serveOften(middleware(b, config)(nothing), request())
				b.ReportAllocs()
				for b.Loop() {
					serve()
				}
			})
		}
	}
}

// TestMiddlewareAllocates holds what the door adds to what its answer needs: the strings and slices of
// header fields, and the identity where there is one. The digest is the contract's own.
func TestMiddlewareAllocates(t *testing.T) {
	digest, err := newDigester(t).Digest("someone")
	if err != nil {
		t.Fatal(err)
	}
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, most := range map[string]float64{"allowed": 2, "denied": 7} {
		config := usual(t)
		config.Limiter = ready{outcome: outcomes()[name]}
		config.Subject = func(*http.Request) (httpedge.Subject, error) { return httpedge.DigestedSubject(digest), nil }
		serve := serveOften(middleware(t, config)(nothing), request())
		if got := testing.AllocsPerRun(100, serve); got > most {
			t.Errorf("%s: %v allocations, want at most %v", name, got, most)
		}
	}
}
