package doors

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
)

// counting is a door that knows the rules of a run.
type counting struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	mu    sync.Mutex
	spent map[string]bool
}

// ShouldRateLimit answers by the key: user always passes, spent once for each value; anything else is
// an error or no code.
func (c *counting) ShouldRateLimit(_ context.Context, request *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := request.GetDescriptors()[0].GetEntries()[0]
	code := ratelimitv3.RateLimitResponse_UNKNOWN
	switch {
	case request.GetDomain() != domain:
		return nil, status.Error(codes.InvalidArgument, "another domain")
	case entry.GetKey() == allowKey:
		code = ratelimitv3.RateLimitResponse_OK
	case entry.GetKey() == denyKey && c.spent[entry.GetValue()]:
		code = ratelimitv3.RateLimitResponse_OVER_LIMIT
	case entry.GetKey() == denyKey && entry.GetValue() == "2":
	case entry.GetKey() == denyKey:
		code = ratelimitv3.RateLimitResponse_OK
		c.spent[entry.GetValue()] = true
	}
	return &ratelimitv3.RateLimitResponse{OverallCode: code}, nil
}

func TestClientReadsTheOverallCode(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(server, &counting{spent: make(map[string]bool)})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	door := &Door{Name: "a door", Address: listener.Addr().String()}
	for _, kind := range []contender.Kind{contender.Allow, contender.Deny} {
		decider, err := door.Contender().Open(t.Context(), contender.Setting{Kind: kind, Keys: 3})
		if err != nil {
			t.Fatal(err)
		}
		for key := range 2 {
			for again := range 2 {
				want := kind == contender.Allow || again == 0
				if allowed, err := decider.Decide(t.Context(), key); err != nil || allowed != want {
					t.Errorf("%s, key %d, call %d: %v, %v", kind, key, again+1, allowed, err)
				}
			}
		}
		if allowed, err := decider.Decide(t.Context(), 2); allowed != (kind == contender.Allow) || (err != nil) != (kind == contender.Deny) {
			t.Errorf("%s, no code: %v, %v", kind, allowed, err)
		}
		if err := decider.Close(); err != nil {
			t.Error(err)
		}
		if _, err := decider.Decide(t.Context(), 0); err == nil {
			t.Error("a closed client decides")
		}
	}
}

func TestAProgramThatIsNoDoorSaysSo(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"false", "/nowhere/at/all"} {
		doors, _, err := Start(t.Context(), Config{Own: program, Peer: program, Redis: "127.0.0.1:1", Dir: t.TempDir(), Pool: 1})
		if err == nil || doors != nil || (program == "false" && !strings.Contains(err.Error(), "ended")) {
			t.Errorf("%s: %v, %v", program, doors, err)
		}
	}
}
