package service_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func settings() config.Service {
	return config.Service{HTTPAddress: "127.0.0.1:0", MaxDeadline: time.Second, DefaultDeadline: 100 * time.Millisecond, MaxBodyBytes: 1024, ShutdownTimeout: 10 * time.Second}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, cfg config.Service, handler http.Handler) (*service.Server, *lockedBuffer) {
	t.Helper()
	logs := &lockedBuffer{}
	server, err := service.NewServer(cfg, handler, slog.New(slog.NewTextHandler(logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server, logs
}

func get(t *testing.T, server *service.Server) (string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + server.Address().String() + "/")
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestStopLetsRequestsInFlightEnd(t *testing.T) {
	t.Parallel()
	inside, release := make(chan struct{}), make(chan struct{})
	server, logs := start(t, settings(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-release
		if r.Context().Err() != nil {
			t.Error("the request in flight was cancelled")
		}
		_, _ = io.WriteString(w, "done")
	}))
	answered := make(chan string, 1)
	go func() {
		body, err := get(t, server)
		if err != nil {
			body = err.Error()
		}
		answered <- body
	}()
	<-inside
	stopped := make(chan error, 1)
	go func() { stopped <- server.Stop(t.Context()) }()
	// The listener is closed before the request ends.
	for deadline := time.Now().Add(10 * time.Second); ; {
		connection, err := net.Dial("tcp", server.Address().String())
		if err != nil {
			break
		}
		_ = connection.Close()
		if time.Now().After(deadline) {
			t.Fatal("the listener is still open")
		}
	}
	if !server.Stopping() {
		t.Error("not stopping")
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped before the request had ended: %v", err)
	default:
	}
	close(release)
	if body := <-answered; body != "done" {
		t.Errorf("the request in flight got %q", body)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err, failed := <-server.Failed(); failed {
		t.Error(err)
	}
	for _, want := range []string{"listening address=" + server.Address().String(), "msg=stopping", "msg=stopped"} {
		if !strings.Contains(logs.String(), want) {
			t.Errorf("no %q in the log: %s", want, logs)
		}
	}
}

func TestStopCutsOffAfterTheTimeout(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.ShutdownTimeout = 20 * time.Millisecond
	inside := make(chan struct{})
	server, _ := start(t, cfg, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
	}))
	answered := make(chan error, 1)
	go func() {
		_, err := get(t, server)
		answered <- err
	}()
	<-inside
	if err := server.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "in flight") {
		t.Errorf("error %v", err)
	}
	if err := <-answered; err == nil {
		t.Error("the request got an answer")
	}
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.DiscardHandler)
	open := settings()
	open.HTTPAddress = "0.0.0.0:0"
	if _, err := service.NewServer(open, http.NotFoundHandler(), logger); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("open address without TLS: %v", err)
	}
	open.AllowPlaintext = true
	if _, err := service.NewServer(open, http.NotFoundHandler(), logger); err != nil {
		t.Errorf("open address with the explicit word: %v", err)
	}
	if _, err := service.NewServer(settings(), nil, logger); err == nil {
		t.Error("no handler was taken")
	}
	if _, err := service.NewServer(config.Service{}, http.NotFoundHandler(), logger); err == nil {
		t.Error("an empty configuration was taken")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	busy := settings()
	busy.HTTPAddress = taken.Addr().String()
	server, err := service.NewServer(busy, http.NotFoundHandler(), logger)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err == nil {
		t.Error("two listeners on one address")
	}
}

// TestLogHasNoAddress sends what is no HTTP, of which net/http would log the sender.
func TestLogHasNoAddress(t *testing.T) {
	t.Parallel()
	server, logs := start(t, settings(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	if _, err := get(t, server); err == nil {
		t.Error("a panic gave an answer")
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(logs.String(), "http server") || strings.Contains(strings.ReplaceAll(logs.String(), server.Address().String(), ""), "127.0.0.1:") {
		t.Errorf("log: %s", logs)
	}
}
