package caching

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/internal/quiet"
	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/cache/failopen"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const text = `
app:
  name: the host's own
  cache:
    local: {size: 5}
    redis:
      enabled: true
      address: "ADDRESS"
      command-timeout: 50ms
      key: {hmac-secret: "0123456789abcdef0123456789abcdef"}
`

func hostAt(t *testing.T, address string, change ...string) *koanf.Koanf {
	t.Helper()
	k := koanf.New(".")
	yamlText := strings.NewReplacer(append([]string{"ADDRESS", address}, change...)...).Replace(text)
	if err := k.Load(rawbytes.Provider([]byte(yamlText)), yaml.Parser()); err != nil {
		t.Fatal(err)
	}
	return k
}

type consumer struct {
	fx.In

	Port cache.CachePort `optional:"true"`
}

func TestGraph(t *testing.T) {
	t.Parallel()
	cfg, err := config.CacheFromKoanf(hostAt(t, "127.0.0.1:6379"))
	if err != nil {
		t.Fatal(err)
	}
	required := fx.Invoke(func(cache.CachePort) {})
	if err := fx.ValidateApp(fx.NopLogger, Module(cfg), required); err != nil {
		t.Error(err)
	}
	if err := fx.ValidateApp(fx.NopLogger, Module(config.CacheRedis{}), fx.Invoke(func(consumer) {})); err != nil {
		t.Error(err)
	}
	if fx.ValidateApp(fx.NopLogger, Module(config.CacheRedis{}), required) == nil {
		t.Error("a disabled cache provides the port")
	}
	if fx.ValidateApp(fx.NopLogger, Module(cfg), fx.Invoke(func(config.CacheRedis) {})) == nil {
		t.Error("the settings can be taken from outside")
	}
}

func TestFaultyConfigurationStopsTheApplication(t *testing.T) {
	t.Parallel()
	ran := false
	app := fx.New(fx.NopLogger, FromHost(hostAt(t, "no port", "50ms", "50")), fx.Invoke(func() { ran = true }))
	var report *config.Error
	if err := app.Err(); !errors.As(err, &report) || len(report.Faults) != 2 || ran {
		t.Errorf("got %v, ran %v", err, ran)
	}
}

// listen counts who comes and answers nobody.
func listen(t *testing.T) (address string, accepted *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted = &atomic.Int64{}
	var serving sync.WaitGroup
	serving.Go(func() {
		var open []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, conn := range open {
					_ = conn.Close()
				}
				return
			}
			accepted.Add(1)
			open = append(open, conn)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String(), accepted
}

// TestDialsNothing: neither disabled, nor enabled where nobody takes the port, nor before the start.
func TestDialsNothing(t *testing.T) {
	t.Parallel()
	address, accepted := listen(t)
	var got consumer
	disabled := fxtest.New(t, fx.NopLogger, FromHost(hostAt(t, address, "enabled: true", "enabled: false")), fx.Invoke(func(c consumer) { got = c }))
	disabled.RequireStart()
	unused := fxtest.New(t, fx.NopLogger, FromHost(hostAt(t, address)))
	unused.RequireStart()
	var port cache.CachePort
	unstarted := fx.New(fx.NopLogger, FromHost(hostAt(t, address)), fx.Populate(&port))
	if unstarted.Err() != nil {
		t.Fatal(unstarted.Err())
	}
	time.Sleep(20 * time.Millisecond) // Nothing to wait for: a dial would come at once.
	unused.RequireStop()
	disabled.RequireStop()
	if got.Port != nil {
		t.Errorf("a disabled cache provides %v", got.Port)
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// TestUnavailable starts with a Redis that never answers: with fail-open the cache is empty and the log
// tells; without, failures come back.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	address, _ := listen(t)
	for name, open := range map[string]bool{"open": true, "closed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			var guard sync.Mutex
			logger := slog.New(slog.NewTextHandler(lockedWriter{&guard, &log}, nil))
			change := []string{}
			if !open {
				change = []string{"enabled: true", "enabled: true\n      fail-open: false"}
			}
			var port cache.CachePort
			app := fxtest.New(t, fx.NopLogger, FromHost(hostAt(t, address, change...)), fx.Supply(logger), fx.Populate(&port))
			began := time.Now()
			app.RequireStart()
			if took := time.Since(began); took > time.Second {
				t.Errorf("start took %v", took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for range 3 {
				_, err := port.Get(ctx, "k")
				written, putErr := port.PutIfAbsent(ctx, "k", "v", cache.DefaultTTL)
				if open {
					if !errors.Is(err, cache.ErrNotFound) || putErr != nil || written.Effect != cache.EffectSkipped {
						t.Errorf("get %v, put %+v, %v", err, written, putErr)
					}
				} else {
					for _, err := range []error{err, putErr} {
						var failure *store.Error
						if !errors.As(err, &failure) || failure.Code != store.CodeNotReady {
							t.Errorf("failed with %v", err)
						}
					}
				}
			}
			app.RequireStop()
			_, err := port.Get(ctx, "k")
			if errors.Is(err, cache.ErrNotFound) != open {
				t.Errorf("after stop: %v", err)
			}
			guard.Lock()
			defer guard.Unlock()
			want := 0
			if open {
				want = 3 // get and put, not ready; get, closed
			}
			if n := strings.Count(log.String(), "taken as empty"); n != want {
				t.Errorf("told %d times, want %d:\n%s", n, want, &log)
			}
		})
	}
}

type lockedWriter struct {
	guard *sync.Mutex
	to    *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.guard.Lock()
	defer w.guard.Unlock()
	return w.to.Write(p)
}

func TestFailureLogIsQuiet(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := newFailureLog(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	note := func(operation failopen.Operation, code store.Code) {
		f.note(failopen.Failure{Operation: operation, Certainty: store.NotSent, Code: code})
	}
	for range 5 {
		note(failopen.OperationGet, store.CodeConnect)
		note(failopen.OperationGet, store.CodeTLS)
		note(failopen.OperationPut, store.CodeConnect)
	}
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("%d lines, want 3:\n%s", n, &log)
	}
	now = now.Add(quiet.For)
	note(failopen.OperationGet, store.CodeConnect)
	if !strings.Contains(log.String(), "operation=get certainty=not-sent code=connect suppressed=4") {
		t.Errorf("what was suppressed is not told:\n%s", &log)
	}
}
