//go:build doors

package doors

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// available reads what RateLimit says is available, and holds it and RateLimit-Policy to be structured
// fields of one item about a policy.
func available(t *testing.T, header http.Header, policy string) int64 {
	t.Helper()
	if quota := item(t, header, "RateLimit-Policy", policy); quota["q"] == nil || quota["w"] == nil {
		t.Errorf("RateLimit-Policy is %q", header.Values("RateLimit-Policy"))
	}
	limit := item(t, header, "RateLimit", policy)
	count, ok := limit["a"].(int64)
	if !ok || limit["r"] != limit["a"] || limit["w"] == nil || limit["t"] != limit["w"] {
		t.Fatalf("RateLimit is %q", header.Values("RateLimit"))
	}
	return count
}

// item gives the parameters of a field's only item.
func item(t *testing.T, header http.Header, name, policy string) map[string]any {
	t.Helper()
	list, err := httpsfv.UnmarshalList(header.Values(name))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s is %q: %v", name, header.Values(name), err)
	}
	only, ok := list[0].(httpsfv.Item)
	if !ok || only.Value != policy {
		t.Fatalf("%s is %q, want an item of %q", name, header.Values(name), policy)
	}
	parameters := make(map[string]any)
	for _, key := range only.Params.Names() {
		parameters[key], _ = only.Params.Get(key)
	}
	return parameters
}

// problemOf reads the code of a problem.
func problemOf(t *testing.T, a answer) string {
	t.Helper()
	var problem struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil {
		t.Fatalf("%d %v %s: %v", a.status, a.header, a.body, err)
	}
	if problem.Status != a.status || problem.Type != "about:blank" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	return problem.Code
}

// retryAfter reads Retry-After, which must be a number of seconds of 1 or more, once.
func retryAfter(t *testing.T, a answer) int64 {
	t.Helper()
	values := a.header.Values("Retry-After")
	if len(values) != 1 {
		t.Fatalf("Retry-After is %q: %d %s", values, a.status, a.body)
	}
	seconds, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || seconds < 1 {
		t.Fatalf("Retry-After is %q", values)
	}
	return seconds
}

func TestLimitHoldsAndHeadersArrive(t *testing.T) {
	t.Parallel()
	everyProxy(t, func(t *testing.T, p proxy, variables []string) {
		s := open(t, p, variables...)
		for left := int64(4); left >= 0; left-- {
			a := s.get("127.0.0.1", "/login")
			if a.status != http.StatusOK || a.body != "welcome" {
				t.Fatalf("%d left: %d %s\n%s", left, a.status, a.body, s.limiter.log())
			}
			if got := available(t, a.header, "login"); got != left {
				t.Errorf("%d are available, want %d", got, left)
			}
			if a.header.Get("Retry-After") != "" {
				t.Errorf("Retry-After %q where nothing is to be waited for", a.header.Get("Retry-After"))
			}
		}
		if got := len(s.reached()); got != 5 {
			t.Errorf("the application got %d requests, want 5", got)
		}
		denied := s.get("127.0.0.1", "/login")
		if denied.status != http.StatusTooManyRequests || problemOf(t, denied) != "rate-limited" {
			t.Fatalf("%d %v %s", denied.status, denied.header, denied.body)
		}
		if got := available(t, denied.header, "login"); got != 0 {
			t.Errorf("%d are available to whom is denied", got)
		}
		if retryAfter(t, denied) < 3600 {
			t.Errorf("Retry-After %q is before the end of the window", denied.header.Get("Retry-After"))
		}
		// Another client and another policy have quotas of their own.
		if a := s.get("127.0.0.2", "/login"); a.status != http.StatusOK || available(t, a.header, "login") != 4 {
			t.Errorf("another client: %d %v", a.status, a.header)
		}
		if a := s.get("127.0.0.1", "/catalogue"); a.status != http.StatusOK || available(t, a.header, "api-default") != 99 {
			t.Errorf("another policy: %d %v", a.status, a.header)
		}
		if got := len(s.reached()); got != 2 {
			t.Errorf("the application got %d requests, want 2", got)
		}
	})
}

func TestBurstOfManyCallers(t *testing.T) {
	t.Parallel()
	everyProxy(t, func(t *testing.T, p proxy, variables []string) {
		s := open(t, p, variables...)
		const callers, each = 8, 5
		statuses := make(chan string, callers*each)
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for range each {
					a, err := s.try("127.0.0.1", "/login")
					statuses <- fmt.Sprint(a.status, err)
				}
			})
		}
		group.Wait()
		close(statuses)
		counts := make(map[string]int)
		for status := range statuses {
			counts[status]++
		}
		if counts["200 <nil>"] != 5 || counts["429 <nil>"] != callers*each-5 {
			t.Errorf("%v, want 5 of 200 and %d of 429", counts, callers*each-5)
		}
		if got := len(s.reached()); got != 5 {
			t.Errorf("the application got %d requests, want 5", got)
		}
	})
}

// TestClientCannotChoose holds that nothing in a request buys another policy, another quota or a
// word to the application.
func TestClientCannotChoose(t *testing.T) {
	t.Parallel()
	everyProxy(t, func(t *testing.T, p proxy, variables []string) {
		s := open(t, p, variables...)
		for i := range 9 {
			a := s.get("127.0.0.1", fmt.Sprintf("/login?policy=api-default&subject=s%d&cost=1&deny-status=200", i),
				"X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i),
				"Forwarded", fmt.Sprintf("for=192.0.2.%d", i),
				"X-Real-Ip", fmt.Sprintf("192.0.2.%d", i),
				"Edgelimit-Subject", fmt.Sprintf("s%d", i),
				"Edgelimit-Policy", "api-default",
				"RateLimit", `"forged";a=9999`,
				"RateLimit-Policy", `"forged";q=9999`,
			)
			want := http.StatusOK
			if i >= 5 {
				want = http.StatusTooManyRequests
			}
			if a.status != want {
				t.Fatalf("request %d: %d %s, want %d", i, a.status, a.body, want)
			}
			if got := available(t, a.header, "login"); got != int64(max(0, 4-i)) {
				t.Errorf("request %d: %d are available", i, got)
			}
		}
	})
}

// TestAnswersOfTheApplicationStay holds that a 403 and a 500 of the application are its own.
func TestAnswersOfTheApplicationStay(t *testing.T) {
	t.Parallel()
	everyProxy(t, func(t *testing.T, p proxy, variables []string) {
		s := open(t, p, variables...)
		for path, want := range map[string]answer{
			"/forbidden": {status: http.StatusForbidden, body: "not yours\n"},
			"/broken":    {status: http.StatusInternalServerError, body: "my own fault\n"},
		} {
			if a := s.get("127.0.0.1", path); a.status != want.status || a.body != want.body {
				t.Errorf("%s: %d %q, want %d %q", path, a.status, a.body, want.status, want.body)
			}
		}
	})
}

// TestOutageOfRedis stops the Redis behind edgelimit and starts it again.
func TestOutageOfRedis(t *testing.T) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			store := lanes.StartProcess(t, lanes.Options{})
			s := open(t, p, variables(overRedis(store.Addr)...)...)
			if a := s.get("127.0.0.1", "/login"); a.status != http.StatusOK {
				t.Fatalf("%d %s", a.status, a.body)
			}
			s.reached()
			store.Stop()
			for range 3 {
				a := s.get("127.0.0.1", "/login")
				if a.status != http.StatusServiceUnavailable {
					t.Fatalf("%d %s, want 503", a.status, a.body)
				}
				if code := problemOf(t, a); code != "limiter-unavailable" && code != "limiter-indeterminate" {
					t.Errorf("the code is %s", code)
				}
				retryAfter(t, a)
			}
			if got := len(s.reached()); got != 0 {
				t.Errorf("%d requests reached the application during the outage", got)
			}
			store.Restart()
			eventually(t, "the door opens again", func() error {
				a, err := s.try("127.0.0.1", "/login")
				if err == nil && a.status != http.StatusOK {
					err = fmt.Errorf("%w: %d %s", errClosed, a.status, a.body)
				}
				return err
			})
		})
	}
}

// TestIncompatible puts something else where the state of a limit was.
func TestIncompatible(t *testing.T) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			store := lanes.StartProcess(t, lanes.Options{})
			s := open(t, p, variables(overRedis(store.Addr)...)...)
			if a := s.get("127.0.0.1", "/login"); a.status != http.StatusOK {
				t.Fatalf("%d %s", a.status, a.body)
			}
			client := redis.NewClient(&redis.Options{Addr: store.Addr})
			defer func() { _ = client.Close() }()
			keys, err := client.Keys(t.Context(), "*").Result()
			if err != nil || len(keys) == 0 {
				t.Fatalf("%v %v", keys, err)
			}
			for _, key := range keys {
				if err := client.Set(t.Context(), key, "something else", 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
			s.reached()
			a := s.get("127.0.0.1", "/login")
			if a.status != p.incompatible || len(s.reached()) != 0 {
				t.Errorf("%d %s, want %d", a.status, a.body, p.incompatible)
			}
			if problemOf(t, a); p.incompatible == http.StatusServiceUnavailable {
				retryAfter(t, a)
			}
		})
	}
}

// TestBodiesPass holds that a check takes nothing from a request that it precedes.
func TestBodiesPass(t *testing.T) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, p, variables()...)
			body := strings.Repeat("a body of some size ", 5000)
			response, err := http.Post(s.url+"/echo", "text/plain", strings.NewReader(body)) //nolint:noctx // loopback
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			back, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusOK || string(back) != body {
				t.Errorf("%s with %d bytes of %d: %v", response.Status, len(back), len(body), err)
			}
		})
	}
}

// TestNoLimiter ends edgelimit itself: the proxy has nobody to ask and stays closed.
func TestNoLimiter(t *testing.T) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, p, variables()...)
			s.limiter.end()
			for range 3 {
				a := s.get("127.0.0.1", "/login")
				if a.status != p.unreachable {
					t.Errorf("%d %s, want %d", a.status, a.body, p.unreachable)
				}
				if p.unreachable == http.StatusServiceUnavailable {
					problemOf(t, a)
					retryAfter(t, a)
				}
			}
			if got := len(s.reached()); got != 0 {
				t.Errorf("%d requests reached the application", got)
			}
		})
	}
}

// TestNoIdentityInLogs holds that no client's address is in what edgelimit wrote.
func TestNoIdentityInLogs(t *testing.T) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, p, variables("EDGELIMIT_APP__SERVICE__LOG_LEVEL=debug")...)
			for range 7 {
				s.get("127.0.0.77", "/login")
			}
			if log := s.limiter.log(); strings.Contains(log, "127.0.0.77") {
				t.Errorf("the log has a client's address: %s", log)
			}
		})
	}
}
