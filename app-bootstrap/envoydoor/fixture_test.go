package envoydoor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that has to happen.
const patience = 20 * time.Second

// eventually waits until check gives nil.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// logBuffer is a log that is read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// allowing are ports that allow everything, with the policy's limit as what is left, unless hold is set:
// then they wait until it is closed.
type allowing struct {
	hold atomic.Pointer[chan struct{}]
	held atomic.Int64 // calls that wait
}

func (a *allowing) WithPolicies(set *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	return portFunc(func(ctx context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		if hold := a.hold.Load(); hold != nil {
			a.held.Add(1)
			defer a.held.Add(-1)
			select {
			case <-*hold:
			case <-ctx.Done():
			}
		}
		p := set.Get(r.PolicyID)
		return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{
			Allowed: true, Limit: p.Limit(), Remaining: p.Limit() - 1, ResetAt: time.Now(), PolicyID: p.ID(), PolicyRevision: p.Revision(),
		}}, nil
	}), nil
}

// holds is nil once a call waits.
func (a *allowing) holds() error {
	if a.held.Load() == 0 {
		return errors.New("no call waits")
	}
	return nil
}

type portFunc func(ctx context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error)

func (f portFunc) Evaluate(ctx context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return f(ctx, r)
}

func ruleFile(limit int) []byte {
	return fmt.Appendf(nil, "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: minute, requests_per_unit: %d}}\n", limit)
}

// directory makes a directory with one file of rules.
func directory(t testing.TB, limit int) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), ruleFile(limit))
	return dir
}

func settings(dir string) config.EnvoyRLS {
	return config.EnvoyRLS{
		Enabled: true, RulesDir: dir, Address: "127.0.0.1:0", Failure: config.EnvoyFailureError, DefaultDeadline: time.Second,
		MaxDescriptors: 8, MaxMessageBytes: 64 << 10, MaxConcurrentStreams: 100, CleanupGrace: 5 * time.Second, MaxClockRegression: 2 * time.Second,
		Keepalive:  config.EnvoyKeepalive{Time: time.Minute, Timeout: 20 * time.Second, MinTime: time.Second, MaxConnectionAgeGrace: time.Second},
		Reflection: true, Rescan: time.Hour, ShutdownTimeout: patience,
	}
}

func parts(t testing.TB, log *logBuffer) envoydoor.Parts {
	t.Helper()
	digester, err := ratelimit.NewSubjectDigester(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	return envoydoor.Parts{
		Ports: &allowing{}, Digester: digester, Ready: func() error { return nil }, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// open starts a door, which closes with the test unless the test closes it.
func open(t testing.TB, cfg config.EnvoyRLS, p envoydoor.Parts) *envoydoor.Door {
	t.Helper()
	door, err := envoydoor.New(cfg, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := door.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if door.Stopping() {
			return
		}
		if err := door.Stop(context.Background()); err != nil { //nolint:usetesting // the test's own context is over
			t.Error(err)
		}
		if err, open := <-door.Failed(); open {
			t.Error(err)
		}
	})
	return door
}

func dial(t testing.TB, door *envoydoor.Door, by credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	if by == nil {
		by = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(door.Address().String(), grpc.WithTransportCredentials(by))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func question(value string) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "d", Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "a", Value: value}}},
	}}
}

func ask(ctx context.Context, conn *grpc.ClientConn) (*ratelimitv3.RateLimitResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, question("x"))
}

// limitIs waits until the door decides by a limit.
func limitIs(t testing.TB, conn *grpc.ClientConn, want uint32) {
	t.Helper()
	eventually(t, fmt.Sprintf("limit %d", want), func() error {
		response, err := ask(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if got := response.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit(); got != want {
			return fmt.Errorf("the limit is %d", got)
		}
		return nil
	})
}

// problemHolds waits until the door's problem says all of some words.
func problemHolds(t testing.TB, door *envoydoor.Door, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("problem %q", words), func() error {
		err := door.Problem()
		for _, w := range words {
			if err == nil || !bytes.Contains([]byte(err.Error()), []byte(w)) {
				return fmt.Errorf("it is %w", errors.Join(err, errors.New("without "+w)))
			}
		}
		return nil
	})
}

func noProblem(t testing.TB, door *envoydoor.Door) {
	t.Helper()
	eventually(t, "no problem", door.Problem)
}
