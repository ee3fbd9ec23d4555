package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func handler(t *testing.T) http.Handler {
	t.Helper()
	// A window that does not end while the test runs.
	k := koanf.New(".")
	text := strings.ReplaceAll(string(settings), "window: 1m", "window: 876000h")
	if err := k.Load(rawbytes.Provider([]byte(text)), yaml.Parser()); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.RateLimitFromKoanf(k)
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := composition.NewLimiter(t.Context(), cfg, composition.Telemetry{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := limiter.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	h, err := routes(limiter, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, method, target, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, http.NoBody)
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	h := handler(t)
	for _, want := range []int{200, 200, 200, 429, 429} {
		if w := ask(h, "POST", "/login", ""); w.Code != want || (want == 429) == (w.Header().Get("Retry-After") == "") {
			t.Errorf("login: %d %v, want %d", w.Code, w.Header(), want)
		}
	}
	if w := ask(h, "GET", "/api/items?count=20", "a"); w.Code != 200 || !strings.HasPrefix(w.Header().Get("RateLimit"), `"api";a=0;`) {
		t.Errorf("items: %d %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/api/items?count=20", "a"); w.Code != 429 {
		t.Errorf("items again: %d", w.Code)
	}
	if w := ask(h, "GET", "/api/items?count=21", "b"); w.Code != 400 {
		t.Errorf("more items than there can be: %d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/api/items", ""); w.Code != 200 {
		t.Errorf("items by address: %d", w.Code)
	}
	var last string
	for range 3 {
		w := ask(h, "GET", "/search", "")
		if w.Code != 200 || w.Header().Get("RateLimit") != "" {
			t.Errorf("search: %d %v", w.Code, w.Header())
		}
		last = w.Header().Get("Edgelimit-Shadow")
	}
	if !strings.HasPrefix(last, `deny;policy="search";retry-after=`) {
		t.Errorf("search in shadow: %q", last)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run(ctx, address) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for deadline := time.Now().Add(30 * time.Second); ; {
		response, err := client.Get("http://" + address + "/search")
		if err == nil {
			if response.StatusCode != http.StatusOK {
				t.Errorf("%s", response.Status)
			}
			_ = response.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	transport.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
