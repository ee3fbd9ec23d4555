package envoyrls_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls"
	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var options = rules.Options{CleanupGrace: 5 * time.Second, MaxClockRegression: 2 * time.Second}

func parse(t testing.TB, content string) *rules.Rules {
	t.Helper()
	loaded, err := rules.Parse([]rules.File{{Name: "rules.yaml", Content: []byte(content)}}, options)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// clock is a time that a test sets. It begins at a full hour of the past: deadlines are of the real time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1_699_999_200_000)} }

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// memoryPorts are ports over one memory.
type memoryPorts struct{ limiter *memory.EdgeRateLimiter }

func newMemoryPorts(t testing.TB, now func() time.Time) memoryPorts {
	t.Helper()
	first, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID: "first", Revision: 1, Algorithm: ratelimit.AlgorithmFixedWindow, MaxCost: 1, FailurePolicy: ratelimit.FailClosed,
		Parameters: ratelimit.FixedWindowParameters{Limit: 1, Window: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := ratelimit.NewPolicySet(first)
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := memory.NewEdgeRateLimiter(memory.Config{
		Policies: set, Clock: now, MaxKeys: 100_000, UnavailableRetryAfter: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return memoryPorts{limiter}
}

func (p memoryPorts) WithPolicies(set *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	return p.limiter.WithPolicies(set)
}

// portFunc is a port made of a function, and the ports that all give it.
type portFunc func(ctx context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error)

func (f portFunc) Evaluate(ctx context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return f(ctx, r)
}

func (f portFunc) WithPolicies(*ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	return f, nil
}

func config(t testing.TB, content string, ports envoyrls.Ports) envoyrls.Config {
	t.Helper()
	digester, err := ratelimit.NewSubjectDigester(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	return envoyrls.Config{
		Rules: parse(t, content), Ports: ports, Digester: digester, Failure: envoyrls.FailureError, Enforce: envoyrls.Enforce,
		DefaultDeadline: time.Second, MaxDescriptors: 16, CleanupGrace: options.CleanupGrace, MaxClockRegression: options.MaxClockRegression,
	}
}

func service(t testing.TB, c envoyrls.Config) *envoyrls.Service {
	t.Helper()
	s, err := envoyrls.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// overMemory is a service whose memory and own clock are both the test's.
func overMemory(t testing.TB, content string, change func(*envoyrls.Config)) (*envoyrls.Service, *clock) {
	t.Helper()
	c := newClock()
	cfg := config(t, content, newMemoryPorts(t, c.read))
	cfg.Clock = c.read
	if change != nil {
		change(&cfg)
	}
	return service(t, cfg), c
}

// of makes a descriptor of keys and values.
func of(pairs ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for pair := range slices.Chunk(pairs, 2) {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pair[0], Value: pair[1]})
	}
	return d
}

func withHits(d *commonv3.RateLimitDescriptor, hits uint64) *commonv3.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(hits)
	return d
}

func request(domain string, descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: descriptors}
}

func ask(t testing.TB, s *envoyrls.Service, r *ratelimitv3.RateLimitRequest) *ratelimitv3.RateLimitResponse {
	t.Helper()
	response, err := s.ShouldRateLimit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.GetStatuses()) != len(r.GetDescriptors()) {
		t.Fatalf("%d statuses of %d descriptors", len(response.GetStatuses()), len(r.GetDescriptors()))
	}
	return response
}
