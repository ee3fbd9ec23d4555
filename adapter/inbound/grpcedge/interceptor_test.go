package grpcedge_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/edgelimit/edgelimit/adapter/inbound/grpcedge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The methods of the service behind the door.
const (
	unary  = "/grpc.health.v1.Health/Check"
	stream = "/grpc.health.v1.Health/Watch"
)

// port counts by policy and subject, or answers one outcome where it has no policies.
type port struct {
	policies *ratelimit.PolicySet
	always   ratelimit.Outcome
	err      error

	mu     sync.Mutex
	counts map[string]int64
}

func (p *port) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	d := ratelimit.RateLimitDecision{Limit: policy.Limit(), PolicyID: policy.ID(), ResetAt: time.Now().Add(30 * time.Second)}
	if d.Allowed = p.counts[key]+request.Cost <= d.Limit; d.Allowed {
		p.counts[key] += request.Cost
	} else {
		d.RetryAfter = 7500 * time.Millisecond
	}
	d.Remaining = d.Limit - p.counts[key]
	return ratelimit.Evaluated{Decision: d}, nil
}

func policies(t *testing.T) *ratelimit.PolicySet {
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

func key(t *testing.T) grpcedge.SubjectFunc {
	t.Helper()
	subject, err := grpcedge.APIKey("x-api-key")
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

func usual(t *testing.T) grpcedge.Config {
	t.Helper()
	set := policies(t)
	digester, err := ratelimit.NewSubjectDigester([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return grpcedge.Config{
		Limiter: &port{policies: set}, Policies: set, Digester: digester, Policy: grpcedge.OnePolicy("two"), Subject: key(t),
		Deadline: time.Second, Headers: grpcedge.DefaultHeaders(), Mode: grpcedge.ModeEnforce,
	}
}

// serve starts a real server with a health service behind the interceptors and gives a client of it.
func serve(t *testing.T, config grpcedge.Config) healthpb.HealthClient {
	t.Helper()
	limit, err := grpcedge.New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(limit.Unary()), grpc.ChainStreamInterceptor(limit.Stream()))
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return healthpb.NewHealthClient(client)
}

// as is a call's context with metadata.
func as(t *testing.T, pairs ...string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), pairs...), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, client healthpb.HealthClient, pairs ...string) (metadata.MD, error) {
	t.Helper()
	var header metadata.MD
	_, err := client.Check(as(t, pairs...), &healthpb.HealthCheckRequest{}, grpc.Header(&header))
	return header, err
}

// watch opens a stream and reads its first message.
func watch(t *testing.T, client healthpb.HealthClient, pairs ...string) (metadata.MD, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(as(t, pairs...))
	defer cancel()
	s, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return nil, err
	}
	_, failure := s.Recv()
	header, err := s.Header()
	if err != nil {
		return nil, errors.Join(failure, err)
	}
	return header, failure
}

// retryDelay reads RetryInfo, 0 where there is none.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

func TestLimitHolds(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*testing.T, healthpb.HealthClient, ...string) (metadata.MD, error){"unary": check, "stream": watch} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := serve(t, usual(t))
			for _, want := range []string{`"two";a=1;w=30;r=1;t=30`, `"two";a=0;w=30;r=0;t=30`} {
				header, err := call(t, client, "x-api-key", "k")
				if err != nil || !cmp.Equal(header.Get("ratelimit"), []string{want}) || !cmp.Equal(header.Get("ratelimit-policy"), []string{`"two";q=2;w=60`}) {
					t.Errorf("%v %v", err, header)
				}
			}
			header, err := call(t, client, "x-api-key", "k")
			if status.Code(err) != codes.ResourceExhausted || retryDelay(err) != 7500*time.Millisecond {
				t.Errorf("%v %v", err, retryDelay(err))
			}
			if !cmp.Equal(header.Get("retry-after"), []string{"8"}) || !cmp.Equal(header.Get("ratelimit"), []string{`"two";a=0;w=8;r=0;t=8`}) {
				t.Errorf("%v", header)
			}
			if _, err := call(t, client, "x-api-key", "l"); err != nil {
				t.Errorf("another client: %v", err)
			}
		})
	}
}

func TestEveryOutcomeHasItsCode(t *testing.T) {
	t.Parallel()
	evaluated := ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: true, PolicyID: "two"}}
	for name, test := range map[string]struct {
		outcome ratelimit.Outcome
		err     error
		code    codes.Code
		delay   time.Duration
	}{
		"allowed":       {evaluated, nil, codes.OK, 0},
		"unavailable":   {ratelimit.Unavailable{RetryAfter: 1500 * time.Millisecond}, nil, codes.Unavailable, 1500 * time.Millisecond},
		"indeterminate": {ratelimit.Indeterminate{RetryAfter: time.Second}, nil, codes.Unavailable, time.Second},
		"incompatible":  {ratelimit.Incompatible{}, nil, codes.Internal, 0},
		"none":          {nil, nil, codes.Internal, 0},
		"error":         {evaluated, errors.New("alice"), codes.Internal, 0},
		"cost":          {nil, &ratelimit.InvalidRequestError{Fault: ratelimit.FaultCost}, codes.InvalidArgument, 0},
		"policy":        {nil, &ratelimit.InvalidRequestError{Fault: ratelimit.FaultUnknownPolicy}, codes.Internal, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := usual(t)
			config.Limiter = &port{always: test.outcome, err: test.err}
			var mu sync.Mutex
			var reports []grpcedge.Report
			config.Observe = func(_ context.Context, _ string, r grpcedge.Report) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, r)
			}
			client := serve(t, config)
			for _, call := range []func(*testing.T, healthpb.HealthClient, ...string) (metadata.MD, error){check, watch} {
				if _, err := call(t, client, "x-api-key", "k"); status.Code(err) != test.code || retryDelay(err) != test.delay || strings.Contains(status.Convert(err).Message(), "alice") {
					t.Errorf("%v, retry after %v", err, retryDelay(err))
				}
			}
			config.Mode = grpcedge.ModeShadow
			shadow := serve(t, config)
			for _, call := range []func(*testing.T, healthpb.HealthClient, ...string) (metadata.MD, error){check, watch} {
				header, err := call(t, shadow, "x-api-key", "k")
				if err != nil || len(header.Get("edgelimit-shadow")) != 1 || len(header.Get("ratelimit")) != 0 {
					t.Errorf("in shadow: %v %v", err, header)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(reports) != 4 || reports[0].Shadow || !reports[3].Shadow || reports[0].Verdict != reports[3].Verdict || reports[0].Policy != "two" {
				t.Errorf("%+v", reports)
			}
		})
	}
}

func TestWhoAndWhat(t *testing.T) {
	t.Parallel()
	config := usual(t)
	config.Policy = grpcedge.PolicyByMethod(map[string]ratelimit.PolicyID{stream: "ten", unary: "two"}, "none")
	config.Cost = func(_ context.Context, method string) int64 { return int64(len(method) - len(unary) + 2) }
	config.Skip = func(ctx context.Context, _ string) bool {
		return len(metadata.ValueFromIncomingContext(ctx, "x-probe")) > 0
	}
	client := serve(t, config)
	for name, test := range map[string]struct {
		pairs []string
		want  codes.Code
	}{
		"none":     {nil, codes.InvalidArgument},
		"empty":    {[]string{"x-api-key", ""}, codes.InvalidArgument},
		"twice":    {[]string{"x-api-key", "a", "x-api-key", "b"}, codes.InvalidArgument},
		"too long": {[]string{"x-api-key", strings.Repeat("k", grpcedge.MaxSubjectBytes+1)}, codes.InvalidArgument},
		"skipped":  {[]string{"x-probe", "1"}, codes.OK},
		"one":      {[]string{"x-api-key", "k"}, codes.OK},
	} {
		if _, err := check(t, client, test.pairs...); status.Code(err) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if header, err := watch(t, client, "x-api-key", "k"); err != nil || !strings.HasPrefix(strings.Join(header.Get("ratelimit"), ""), `"ten";a=8;`) {
		t.Errorf("%v %v", err, header)
	}
	for _, bad := range []string{"", "X-Api-Key", "a b", "grpc-x", "x-bin", strings.Repeat("a", 129)} {
		if _, err := grpcedge.APIKey(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestAddressAndMethod(t *testing.T) {
	t.Parallel()
	trusted, err := grpcedge.ParseTrustedProxies([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		proxies *grpcedge.TrustedProxies
		last    codes.Code // of a third client that only the metadata tells apart
	}{
		"believed":     {trusted, codes.OK},
		"not believed": {nil, codes.ResourceExhausted},
	} {
		config := usual(t)
		if config.Subject, err = grpcedge.ClientAddress(grpcedge.AddressConfig{Proxies: test.proxies, Header: grpcedge.AddressHeaderForwardedFor, IPv6Prefix: 64}); err != nil {
			t.Fatal(err)
		}
		client := serve(t, config)
		for i, address := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
			_, err := check(t, client, "x-forwarded-for", "203.0.113.9, "+address)
			if want := []codes.Code{codes.OK, codes.OK, test.last}[i]; status.Code(err) != want {
				t.Errorf("%s, %s: %v", name, address, err)
			}
		}
	}
	config := usual(t)
	config.Subject = grpcedge.Method
	client := serve(t, config)
	var got []codes.Code
	for range 3 {
		_, err := check(t, client)
		got = append(got, status.Code(err))
	}
	_, err = watch(t, client)
	if got = append(got, status.Code(err)); !cmp.Equal(got, []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted, codes.OK}) {
		t.Errorf("%v", got)
	}
	if _, err := grpcedge.ClientAddress(grpcedge.AddressConfig{}); err == nil {
		t.Error("no configuration of addresses is accepted")
	}
}

func TestConfigurationIsJudged(t *testing.T) {
	t.Parallel()
	_, err := grpcedge.New(grpcedge.Config{})
	if err == nil {
		t.Fatal("nothing is accepted")
	}
	for _, want := range []string{"Limiter", "Policies", "Digester", "Policy is", "Subject", "Deadline", "Mode"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %v", want, err)
		}
	}
}
