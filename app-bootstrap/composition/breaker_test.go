package composition

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

const breakerMemoryText = `
app:
  circuit-breaker:
    enabled: true
    provider: memory
    policies:
      p: {revision: 1, trip: consecutive-failures, threshold: 1, open-timeout: 1h, probe-lease: 1s}
`

const breakerRedisText = `
app:
  circuit-breaker:
    enabled: true
    provider: redis
    unavailable-retry-after: 3s
    redis: {address: "ADDRESS", command-timeout: 50ms}
    key: {hmac-secret: "0123456789abcdef0123456789abcdef"}
    policies:
      p: {revision: 1, trip: consecutive-failures, threshold: 1, open-timeout: 1h, probe-lease: 1s}
`

// breakerConsumer takes everything that the module gives, each as optional.
type breakerConsumer struct {
	fx.In

	Port     breaker.CircuitBreakerPort `optional:"true"`
	Policies *breaker.PolicySet         `optional:"true"`
	Digester *breaker.ResourceDigester  `optional:"true"`
	Internal *circuitBreaker            `optional:"true"` // private: never there
}

func TestBreakerGraphValidates(t *testing.T) {
	t.Parallel()
	take := fx.Invoke(func(breakerConsumer) {})
	for name, options := range map[string][]fx.Option{
		"disabled":        {CircuitBreakerModule(config.CircuitBreaker{}), take},
		"memory":          {CircuitBreakerFromHost(hostKoanf(t, breakerMemoryText)), take},
		"redis":           {CircuitBreakerFromHost(hostKoanf(t, strings.Replace(breakerRedisText, "ADDRESS", "127.0.0.1:6379", 1))), take},
		"host without it": {CircuitBreakerFromHost(hostKoanf(t, "app: {name: x}")), take},
		"with a limiter":  {Module(configure(t, memoryText)), CircuitBreakerFromHost(hostKoanf(t, breakerMemoryText)), take},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := fx.ValidateApp(append(options, fx.NopLogger)...); err != nil {
				t.Error(err)
			}
		})
	}
	if fx.ValidateApp(CircuitBreakerModule(config.CircuitBreaker{}), fx.NopLogger, fx.Invoke(func(breaker.CircuitBreakerPort) {})) == nil {
		t.Error("a disabled circuit breaker provides the port")
	}
	if fx.ValidateApp(CircuitBreakerFromHost(hostKoanf(t, breakerMemoryText)), fx.NopLogger, fx.Invoke(func(*circuitBreaker) {})) == nil {
		t.Error("what is internal can be taken from outside")
	}
	app := fx.New(fx.NopLogger, CircuitBreakerFromHost(hostKoanf(t, "app: {circuit-breaker: {enabled: true}}")))
	var report *config.Error
	if !errors.As(app.Err(), &report) || len(report.Faults) != 2 {
		t.Errorf("a faulty configuration gives %v", app.Err())
	}
}

func TestBreakerMemoryEndToEnd(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var c breakerConsumer
	app := fxtest.New(t, fx.NopLogger, CircuitBreakerFromHost(hostKoanf(t, breakerMemoryText)),
		fx.Provide(func() *slog.Logger { return slog.New(slog.NewTextHandler(&log, nil)) }),
		fx.Populate(&c.Port, &c.Policies, &c.Digester))
	app.RequireStart()
	ctx := within(t, 10*time.Second)
	resource, err := c.Digester.Digest("payments")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	request := breaker.AcquireRequest{PolicyID: "p", Resource: resource}
	if _, err := breaker.Do(ctx, c.Port, request, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	var rejected *breaker.RejectedError
	_, err = breaker.Do(ctx, c.Port, request, func(context.Context) error { t.Error("ran"); return nil })
	if !errors.As(err, &rejected) || rejected.Rejected.State != breaker.StateOpen {
		t.Errorf("got %v", err)
	}
	seen, err := c.Port.Read(ctx, breaker.ReadRequest{PolicyID: "p", Resource: resource})
	if o, ok := seen.(breaker.Observed); err != nil || !ok || o.State != breaker.StateOpen || o.Source != ratelimit.SourceLocalMemory {
		t.Errorf("%+v, %v", seen, err)
	}
	app.RequireStop()
	text := log.String()
	if strings.Count(text, "random") != 1 || strings.Count(text, "policy=p before=closed after=open") != 1 || strings.Contains(text, resource.String()) {
		t.Errorf("the log says:\n%s", text)
	}
}

func TestBreakerDisabledDialsNothing(t *testing.T) {
	t.Parallel()
	l := listen(t)
	text := strings.Replace(breakerRedisText, "ADDRESS", l.Addr().String(), 1)
	var got breakerConsumer
	for _, off := range []string{strings.Replace(text, "enabled: true", "enabled: false", 1), "app: {}"} {
		app := fxtest.New(t, fx.NopLogger, CircuitBreakerFromHost(hostKoanf(t, off)), fx.Invoke(func(c breakerConsumer) { got = c }))
		app.RequireStart()
		time.Sleep(20 * time.Millisecond) // Nothing to wait for: a dial would come at once.
		app.RequireStop()
		if got.Port != nil || got.Policies != nil || got.Digester != nil {
			t.Errorf("a disabled circuit breaker provides %+v", got)
		}
	}
	// Enabled, but not started, it dials nothing either.
	app := fx.New(fx.NopLogger, CircuitBreakerFromHost(hostKoanf(t, text)), fx.Populate(&got.Port))
	if app.Err() != nil {
		t.Fatal(app.Err())
	}
	time.Sleep(20 * time.Millisecond)
	if n := l.accepted.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// TestBreakerWithoutRedis: the function runs, the outcome says so, and the log tells once.
func TestBreakerWithoutRedis(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var c breakerConsumer
	text := strings.Replace(breakerRedisText, "ADDRESS", deadAddress(t), 1)
	app := fxtest.New(t, fx.NopLogger, CircuitBreakerFromHost(hostKoanf(t, text)),
		fx.Provide(func() *slog.Logger { return slog.New(slog.NewTextHandler(&log, nil)) }),
		fx.Populate(&c.Port, &c.Digester))
	app.RequireStart()
	ctx := within(t, 10*time.Second)
	resource, err := c.Digester.Digest("payments")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	do := func() (breaker.DoOutcome, error) {
		return breaker.Do(ctx, c.Port, breaker.AcquireRequest{PolicyID: "p", Resource: resource}, func(context.Context) error { ran++; return nil })
	}
	want := breaker.Unavailable{PolicyID: "p", RetryAfter: 3 * time.Second, Category: ratelimit.UnavailableNotReady}
	for range 5 {
		if outcome, err := do(); err != nil || outcome != (breaker.Unprotected{Reason: want}) {
			t.Errorf("%+v, %v", outcome, err)
		}
	}
	app.RequireStop()
	want.Category = ratelimit.UnavailableClosed
	if outcome, err := do(); err != nil || outcome != (breaker.Unprotected{Reason: want}) {
		t.Errorf("after stop: %+v, %v", outcome, err)
	}
	if ran != 6 {
		t.Errorf("ran %d times, want 6", ran)
	}
	if n := strings.Count(log.String(), "calls are made without it"); n != 2 { // NOT_READY once, CLOSED once.
		t.Errorf("the log tells %d times:\n%s", n, &log)
	}
}
