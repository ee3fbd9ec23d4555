package composition

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// consumer takes everything that the module gives, each as optional.
type consumer struct {
	fx.In

	Port      ratelimit.EdgeRateLimitPort `optional:"true"`
	Policies  *ratelimit.PolicySet        `optional:"true"`
	Digester  *ratelimit.SubjectDigester  `optional:"true"`
	Readiness Readiness                   `optional:"true"`
	Limiter   *Limiter                    `optional:"true"` // private: never there
}

func TestGraphValidates(t *testing.T) {
	t.Parallel()
	take := fx.Invoke(func(consumer) {})
	for name, options := range map[string][]fx.Option{
		"disabled":          {Module(config.RateLimit{}), take},
		"memory":            {Module(configure(t, memoryText)), take},
		"redis":             {Module(configure(t, redisAt("127.0.0.1:6379"))), take},
		"from host":         {FromHost(hostKoanf(t, memoryText)), take},
		"host without it":   {FromHost(hostKoanf(t, "app: {name: x}")), take},
		"required, enabled": {Module(configure(t, memoryText)), fx.Invoke(func(ratelimit.EdgeRateLimitPort, Readiness) {})},
		"host's telemetry": {
			Module(configure(t, memoryText)), take,
			fx.Provide(func() *slog.Logger { return nil }, func() metric.MeterProvider { return nil }, func() trace.TracerProvider { return nil }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := fx.ValidateApp(append(options, fx.NopLogger)...); err != nil {
				t.Error(err)
			}
		})
	}
	if fx.ValidateApp(Module(config.RateLimit{}), fx.NopLogger, fx.Invoke(func(ratelimit.EdgeRateLimitPort) {})) == nil {
		t.Error("a disabled limiter provides the port")
	}
	for _, internal := range []any{func(*Limiter) {}, func(config.RateLimit) {}} {
		if fx.ValidateApp(Module(configure(t, memoryText)), fx.NopLogger, fx.Invoke(internal)) == nil {
			t.Errorf("%T can be taken from outside", internal)
		}
	}
}

func TestFaultyConfigurationStopsTheApplication(t *testing.T) {
	t.Parallel()
	ran := false
	app := fx.New(fx.NopLogger, FromHost(hostKoanf(t, "app: {rate-limit: {enabled: true, provider: redus}}")), fx.Invoke(func() { ran = true }))
	var report *config.Error
	if err := app.Err(); !errors.As(err, &report) || len(report.Faults) != 3 {
		t.Errorf("got %v", err)
	}
	if ran {
		t.Error("something ran")
	}
}

func TestMemoryEndToEnd(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var c consumer
	app := fxtest.New(t, fx.NopLogger, FromHost(hostKoanf(t, memoryText)),
		fx.Provide(func() *slog.Logger { return slog.New(slog.NewTextHandler(&log, nil)) }),
		fx.Populate(&c.Port, &c.Policies, &c.Digester, &c.Readiness))
	app.RequireStart()
	ctx := within(t, 10*time.Second)
	r := request(t, c.Digester, "p")
	for i, want := range []bool{true, true, false} {
		outcome, err := c.Port.Evaluate(ctx, r)
		if err != nil || ratelimit.Allows(outcome) != want {
			t.Errorf("evaluation %d: %+v, %v", i, outcome, err)
		}
	}
	if c.Policies.Get("p") == nil || c.Readiness.Ready() != nil {
		t.Errorf("policies %v, ready %v", c.Policies, c.Readiness.Ready())
	}
	app.RequireStop()
	outcome, err := c.Port.Evaluate(ctx, r)
	want := ratelimit.Unavailable{PolicyID: "p", RetryAfter: time.Second, Category: ratelimit.UnavailableClosed}
	if err != nil || outcome != want {
		t.Errorf("after stop: %+v, %v", outcome, err)
	}
	if c.Readiness.Ready() == nil {
		t.Error("ready after stop")
	}
	if n := strings.Count(log.String(), "random"); n != 1 {
		t.Errorf("the random secret was told %d times:\n%s", n, &log)
	}
}

// counter is a listener that counts who comes and answers nobody.
type counter struct {
	net.Listener
	accepted atomic.Int64
}

func listen(t *testing.T) *counter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{Listener: l}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, conn := range open {
					_ = conn.Close()
				}
				return
			}
			c.accepted.Add(1)
			open = append(open, conn)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return c
}

func TestDisabledDialsNothing(t *testing.T) {
	t.Parallel()
	l := listen(t)
	text := strings.Replace(redisAt(l.Addr().String()), "enabled: true", "enabled: false", 1)
	var got consumer
	app := fxtest.New(t, fx.NopLogger, FromHost(hostKoanf(t, text)), fx.Invoke(func(c consumer) { got = c }))
	app.RequireStart()
	time.Sleep(20 * time.Millisecond) // Nothing to wait for: a dial would come at once.
	app.RequireStop()
	if got.Port != nil || got.Policies != nil || got.Digester != nil || got.Readiness != nil {
		t.Errorf("a disabled limiter provides %+v", got)
	}
	if n := l.accepted.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
	// TestMain finds goroutines that were left.
}

func TestConstructionDialsNothing(t *testing.T) {
	t.Parallel()
	l := listen(t)
	var c consumer
	app := fx.New(fx.NopLogger, Module(configure(t, redisAt(l.Addr().String()))), fx.Populate(&c.Port))
	if app.Err() != nil {
		t.Fatal(app.Err())
	}
	time.Sleep(20 * time.Millisecond)
	if n := l.accepted.Load(); n != 0 {
		t.Errorf("%d connections before OnStart", n)
	}
}

func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestWithoutRedis starts with a Redis that refuses connections and with one that never answers.
func TestWithoutRedis(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"refuses": deadAddress(t), "black hole": listen(t).Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c consumer
			app := fxtest.New(t, fx.NopLogger, Module(configure(t, redisAt(address))), fx.Populate(&c.Port, &c.Digester, &c.Readiness))
			began := time.Now()
			app.RequireStart()
			if took := time.Since(began); took > time.Second {
				t.Errorf("start took %v", took)
			}
			ctx := within(t, 10*time.Second)
			r := request(t, c.Digester, "p")
			outcome, err := c.Port.Evaluate(ctx, r)
			want := ratelimit.Unavailable{PolicyID: "p", RetryAfter: 3 * time.Second, Category: ratelimit.UnavailableNotReady}
			if err != nil || outcome != want {
				t.Errorf("got %+v, %v", outcome, err)
			}
			if err := c.Readiness.Ready(); err == nil || err.Error() == "" {
				t.Errorf("Ready gives %v", err)
			}
			app.RequireStop()
			outcome, err = c.Port.Evaluate(ctx, r)
			want.Category = ratelimit.UnavailableClosed
			if err != nil || outcome != want {
				t.Errorf("after stop: %+v, %v", outcome, err)
			}
		})
	}
}
