package isolation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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

	"github.com/edgelimit/edgelimit/app-bootstrap/caching"
	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/test/lanes"
)

func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }

// gateway accepts connections, counts them and the bytes that come, and leads them to a server; without
// one it answers nothing.
type gateway struct {
	address string
	dialed  atomic.Int64
	bytes   atomic.Int64
}

func startGateway(t *testing.T, server string) *gateway {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{address: l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range open {
					_ = c.Close()
				}
				return
			}
			g.dialed.Add(1)
			open = append(open, c)
			all.Go(func() { g.lead(t, c, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return g
}

// lead copies both ways until either side ends.
func (g *gateway) lead(t *testing.T, c net.Conn, server string) {
	defer func() { _ = c.Close() }()
	up := net.Conn(nil)
	if server != "" {
		var err error
		if up, err = net.Dial("tcp", server); err != nil {
			t.Errorf("the gateway's own server: %v", err)
			return
		}
		defer func() { _ = up.Close() }()
		go func() {
			_, _ = io.Copy(c, up)
			_ = c.Close()
		}()
	}
	buffer := make([]byte, 1<<16)
	for {
		n, err := c.Read(buffer)
		g.bytes.Add(int64(n))
		if err != nil {
			return
		}
		if up != nil {
			if _, err := up.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}

// hostWith is a host's configuration with a limiter and a cache, each at its own address.
func hostWith(t *testing.T, limiter, cached string) *koanf.Koanf {
	t.Helper()
	return parse(t, fmt.Sprintf(`
app:
  rate-limit:
    enabled: true
    provider: redis
    default-policy: p
    redis: {address: "%s", command-timeout: 2s, pool-size: 4}
    key: {namespace: isolation-%d, hmac-secret: "limiter-secret-of-32-bytes-or-more"}
    policies:
      p: {revision: 1, algorithm: fixed-window, limit: 1000000, window: 1h}
  cache:
    redis:
      enabled: true
      address: "%s"
      command-timeout: 2s
      key: {namespace: isolation-%d, hmac-secret: "the-cache-secret-of-32-bytes-or-more"}
`, limiter, time.Now().UnixNano(), cached, time.Now().UnixNano()))
}

func parse(t *testing.T, text string) *koanf.Koanf {
	t.Helper()
	k := koanf.New(".")
	if err := k.Load(rawbytes.Provider([]byte(text)), yaml.Parser()); err != nil {
		t.Fatal(err)
	}
	return k
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// evaluate asks the limiter often, and requires a decision each time.
func evaluate(t *testing.T, port ratelimit.EdgeRateLimitPort, digester *ratelimit.SubjectDigester) {
	t.Helper()
	ctx := bounded(t)
	for i := range 200 {
		subject, err := digester.Digest(fmt.Sprint(t.Name(), i))
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := port.Evaluate(ctx, ratelimit.RateLimitRequest{PolicyID: "p", Subject: subject, Cost: 1})
		if err != nil || !ratelimit.Allows(outcome) {
			t.Fatalf("evaluation %d: %+v, %v", i, outcome, err)
		}
	}
}

// ready waits until the limiter can decide.
func ready(t *testing.T, r composition.Readiness) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); r.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(r.Ready())
		}
	}
}

// TestEvaluationsDialTheirOwn: a limiter beside a configured cache dials its own Redis alone, and
// evaluations send the cache's nothing, whether or not somebody uses the cache.
func TestEvaluationsDialTheirOwn(t *testing.T) {
	t.Parallel()
	server := lanes.Default(t).Addr
	limits, cached := startGateway(t, server), startGateway(t, "")
	k := hostWith(t, limits.address, cached.address)
	var port ratelimit.EdgeRateLimitPort
	var digester *ratelimit.SubjectDigester
	var readiness composition.Readiness
	app := fxtest.New(t, fx.NopLogger, composition.FromHost(k), caching.FromHost(k), fx.Populate(&port, &digester, &readiness))
	app.RequireStart()
	ready(t, readiness)
	evaluate(t, port, digester)
	if limits.dialed.Load() == 0 || limits.bytes.Load() == 0 {
		t.Error("the evaluations did not go through the limiter's own address")
	}
	if n := cached.dialed.Load(); n != 0 {
		t.Errorf("%d connections to the cache's Redis", n)
	}
	app.RequireStop()
}

// TestCacheInUse: with the cache in use on another Redis that answers nothing, it is unavailable and
// evaluations are decided all the same; with one that answers, both go on side by side.
func TestCacheInUse(t *testing.T) {
	t.Parallel()
	server := lanes.Default(t).Addr
	for name, behind := range map[string]string{"silent": "", "answering": server} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits, cached := startGateway(t, server), startGateway(t, behind)
			k := hostWith(t, limits.address, cached.address)
			var port ratelimit.EdgeRateLimitPort
			var digester *ratelimit.SubjectDigester
			var readiness composition.Readiness
			var entries cache.CachePort
			app := fxtest.New(t, fx.NopLogger, composition.FromHost(k), caching.FromHost(k), fx.Populate(&port, &digester, &readiness, &entries))
			app.RequireStart()
			ready(t, readiness)
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
				written, err := entries.PutIfAbsent(bounded(t), "k", "v", time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				if behind == "" && written.Effect == cache.EffectSkipped && cached.dialed.Load() > 0 || written.Effect == cache.EffectApplied {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("the cache is %+v", written)
				}
			}
			before := limits.bytes.Load()
			if _, err := entries.Get(bounded(t), "k"); (err == nil) != (behind != "") {
				t.Errorf("get: %v", err)
			}
			evaluate(t, port, digester)
			// What an evaluation sends to its own Redis: at the least a digest, a key and eight arguments.
			if sent := limits.bytes.Load() - before; sent < 200*150 {
				t.Errorf("%d bytes were sent to the limiter's Redis by 200 evaluations", sent)
			}
			app.RequireStop()
		})
	}
}

// TestNoFallback: a limiter without a Redis of its own beside a cache that has one is a wrong
// configuration, and so is the reverse. Nothing starts and nothing is dialed.
func TestNoFallback(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "")
	limiter := `
  rate-limit:
    enabled: true
    provider: redis
    default-policy: p
    %s
    policies:
      p: {revision: 1, algorithm: fixed-window, limit: 5, window: 1s}
`
	settings := `redis: {address: "` + g.address + `"}
    key: {hmac-secret: "limiter-secret-of-32-bytes-or-more"}`
	cached := `
  cache:
    redis: {enabled: true%s}
`
	cacheSettings := `, address: "` + g.address + `", key: {hmac-secret: "the-cache-secret-of-32-bytes-or-more"}`
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"limiter without": {"app:" + fmt.Sprintf(limiter, "") + fmt.Sprintf(cached, cacheSettings), []string{
			"app.rate-limit.key.hmac-secret", "app.rate-limit.redis.address",
		}},
		"cache without": {"app:" + fmt.Sprintf(limiter, settings) + fmt.Sprintf(cached, ""), []string{
			"app.cache.redis.address", "app.cache.redis.key.hmac-secret",
		}},
	} {
		ran := false
		k := parse(t, c.text)
		app := fx.New(fx.NopLogger, composition.FromHost(k), caching.FromHost(k), fx.Invoke(func() { ran = true }))
		var report *config.Error
		if !errors.As(app.Err(), &report) || ran {
			t.Errorf("%s: %v, ran %v", name, app.Err(), ran)
			continue
		}
		var paths []string
		for _, fault := range report.Faults {
			paths = append(paths, fault.Path)
		}
		if strings.Join(paths, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: faults at %v, want %v", name, paths, c.want)
		}
	}
	if n := g.dialed.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}
