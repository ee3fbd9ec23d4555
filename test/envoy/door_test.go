package envoy

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// patience bounds what only a machine under load can delay.
const patience = 60 * time.Second

var namespaces atomic.Int64

// limiterConfig is that of a limiter of this test alone. An empty address is memory.
func limiterConfig(t testing.TB, address string) config.RateLimit {
	t.Helper()
	text := "app:\n  service: {default-deadline: 10s}\n  rate-limit:\n    enabled: true\n    default-policy: p\n    policies: {p: {revision: 1, algorithm: fixed-window, limit: 1, window: 1s}}\n"
	if address == "" {
		text += "    provider: memory\n"
	} else {
		text += fmt.Sprintf(`    provider: redis
    redis: {address: %q, command-timeout: 5s, pool-size: 8}
    key: {namespace: envoy-%d-%d, hmac-secret: secret-of-this-test-of-32-bytes-or-more}
`, address, os.Getpid(), namespaces.Add(1))
	}
	file := filepath.Join(t.TempDir(), "edgelimit.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.RateLimit
}

// backend is what a door decides by.
type backend struct {
	ports    envoyrls.Ports
	digester *ratelimit.SubjectDigester
	ready    func() error
}

// composed is the whole limiter, as a program has it, over memory or a Redis.
func composed(t testing.TB, address string) backend {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	limiter, err := composition.NewLimiter(ctx, limiterConfig(t, address), composition.Telemetry{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := limiter.Close(context.Background()); err != nil { //nolint:usetesting // the test's own context is over
			t.Error(err)
		}
	})
	return backend{ports: limiter, digester: limiter.Digester(), ready: limiter.Ready}
}

// memoryPorts are ports over a memory whose clock stands still.
type memoryPorts struct{ limiter *memory.EdgeRateLimiter }

func (p memoryPorts) WithPolicies(set *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	return p.limiter.WithPolicies(set)
}

func stillMemory(t testing.TB, now time.Time) backend {
	t.Helper()
	limiter, err := memory.NewEdgeRateLimiter(memory.Config{
		Policies: limiterConfig(t, "").Policies, Clock: func() time.Time { return now }, MaxKeys: 1000, UnavailableRetryAfter: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	digester, err := ratelimit.NewSubjectDigester(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	return backend{ports: memoryPorts{limiter}, digester: digester, ready: func() error { return nil }}
}

// settings are those of a door on a free port with one file of rules.
func settings(t testing.TB, rules string) config.EnvoyRLS {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.EnvoyRLS{
		Enabled: true, RulesDir: dir, Address: "127.0.0.1:0", Failure: config.EnvoyFailureError, DefaultDeadline: patience,
		MaxDescriptors: 32, MaxMessageBytes: 256 << 10, MaxConcurrentStreams: 1000, CleanupGrace: 5 * time.Second, MaxClockRegression: 2 * time.Second,
		Keepalive:  config.EnvoyKeepalive{Time: time.Minute, Timeout: 20 * time.Second, MinTime: time.Second, MaxConnectionAgeGrace: time.Second},
		Reflection: true, Rescan: time.Hour, ShutdownTimeout: patience,
	}
}

// open starts a door and gives it with a client of it. Both end with the test.
func open(t testing.TB, cfg config.EnvoyRLS, b backend, log *logBuffer) (*envoydoor.Door, ratelimitv3.RateLimitServiceClient) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	if log != nil {
		logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	door, err := envoydoor.New(cfg, envoydoor.Parts{Ports: b.ports, Digester: b.digester, Ready: b.ready, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	if err := door.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := door.Stop(context.Background()); err != nil { //nolint:usetesting // the test's own context is over
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(door.Address().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return door, ratelimitv3.NewRateLimitServiceClient(conn)
}

// call asks once, within the test's patience.
func call(ctx context.Context, client ratelimitv3.RateLimitServiceClient, r *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.ShouldRateLimit(ctx, r)
}

// brief writes a response as examples.yaml does.
func brief(r *ratelimitv3.RateLimitResponse) []string {
	lines := []string{r.GetOverallCode().String()}
	for _, s := range r.GetStatuses() {
		line := s.GetCode().String()
		switch l := s.GetCurrentLimit(); {
		case l != nil:
			name := l.GetName()
			if name != "" {
				name += ":"
			}
			line += fmt.Sprintf(" %s%d/%v %d", name, l.GetRequestsPerUnit(), l.GetUnit(), s.GetLimitRemaining())
		case s.GetLimitRemaining() != 0:
			line += fmt.Sprintf(" - %d", s.GetLimitRemaining())
		}
		lines = append(lines, line)
	}
	return lines
}

func domainOf(t testing.TB, rules string) string {
	t.Helper()
	first, _, _ := strings.Cut(rules, "\n")
	domain, ok := strings.CutPrefix(first, "domain: ")
	if !ok {
		t.Fatalf("no domain in %q", first)
	}
	return domain
}
