package cacheredis

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// lockedBuffer is a log that two goroutines may use.
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

func waitReady(t testing.TB, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatalf("not ready: %v", err)
	}
}

// waitReason polls until Ready gives an error with all the words.
func waitReason(t testing.TB, s *Store, words ...string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("the last reason: %s", last)
		}
	}()
	eventually(t, "not ready because of "+strings.Join(words, ", "), func() bool {
		err := s.Ready()
		if err == nil {
			return false
		}
		last = err.Error()
		for _, word := range words {
			if !strings.Contains(last, word) {
				return false
			}
		}
		return true
	})
}

// TestBeforeStart: nothing is dialed and nothing is evaluated.
func TestBeforeStart(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := unreadyStore(t, server.address())
	wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeNotReady)
	if diff := cmp.Diff(unavailable(ratelimit.UnavailableNotReady), evaluate(t, limiterFor(t, s))); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	waitReason(t, s, "not started")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WaitReady(ctx); err == nil || err.Error() != "not started" {
		t.Errorf("WaitReady: %v", err)
	}
	if _, accepted := server.connections(); accepted != 0 {
		t.Errorf("%d connections were made", accepted)
	}
}

// TestBecomesReady: the service starts before its Redis, and becomes ready by itself. Each program
// was run once on a key of its own, and no key is left.
func TestBecomesReady(t *testing.T) {
	t.Parallel()
	address := reservedAddress(t)
	log := &lockedBuffer{}
	s := unreadyStore(t, address, func(c *StoreConfig) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	s.Start()
	s.Start()
	waitReason(t, s, "program ", "connect", "refused")
	wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeNotReady)

	server := startFakeAt(t, address, nil)
	var probed sync.Map
	server.set(func(s *fakeServer) { clear(s.known) })
	server.on("EVAL", func(c *fakeConn, args []string) bool { probed.Store(args[3], true); return healthy(c, args) })
	waitReady(t, s)
	if n := server.stored(); n != 0 {
		t.Errorf("%d scratch keys are left", n)
	}
	count := 0
	probed.Range(func(key, _ any) bool {
		count++
		text, _ := key.(string)
		parts := strings.Split(text, ":")
		if len(parts) != 6 || parts[0] != "edgelimit" || parts[1] != "test" || !strings.HasPrefix(parts[3], parts[2]+"-") || parts[4] != "probe" {
			t.Errorf("scratch key %q", key)
		}
		return true
	})
	if want := len(lua.Programs()); count != want || server.count("EVAL") != want {
		t.Errorf("%d scratch keys and %d programs, want %d each", count, server.count("EVAL"), want)
	}
	if failure := evalOnce(t, s, 20*testTimeout); failure != nil {
		t.Error(failure)
	}
	if s.readiness.noScript.Load() != int64(len(lua.Programs())) {
		t.Errorf("%d answers of NOSCRIPT were counted", s.readiness.noScript.Load())
	}
	if text := log.String(); !strings.Contains(text, "redis is ready") || !strings.Contains(text, "redis 7.4.1") ||
		strings.Count(text, "refused") != 1 {
		t.Errorf("log:\n%s", text)
	}
}

// TestReasons: why a server is not usable stands in the reason, and goes with the cause.
func TestReasons(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config  func(c *StoreConfig)
		arrange func(s *fakeServer)
		words   []string
	}{
		"version": {
			arrange: func(s *fakeServer) { s.set(func(s *fakeServer) { s.info = "redis_version:6.2.14\r\n" }) },
			words:   []string{"server-version", "redis 6.2.14", lua.LowestRedis},
		},
		"valkey version": {
			arrange: func(s *fakeServer) {
				s.set(func(s *fakeServer) { s.info = "redis_version:7.2.4\r\nvalkey_version:7.2.8\r\n" })
			},
			words: []string{"server-version", "valkey 7.2.8", LowestValkey},
		},
		"user": {
			config:  func(c *StoreConfig) { c.Username, c.Password = "limiter", "right" },
			arrange: func(s *fakeServer) { s.on("ACL", replies(bulk("default"))) },
			words:   []string{"authentication", "another user"},
		},
		"permission to greet": {
			arrange: func(s *fakeServer) { s.on("ACL", replies("-NOPERM x\r\n")) }, words: []string{"permission", "NOPERM"},
		},
		"permission to run": {
			arrange: func(s *fakeServer) { s.on("EVALSHA", replies("-NOPERM x\r\n")) }, words: []string{"permission", "program rate-fixed-window-v1"},
		},
		"replica": {
			arrange: func(s *fakeServer) { s.on("EVALSHA", replies("-READONLY x\r\n")) }, words: []string{"read-only"},
		},
		"no lifetime": {
			arrange: func(s *fakeServer) { s.on("PTTL", replies(":-1\r\n")) }, words: []string{"without a finite lifetime"},
		},
		"no key": {
			arrange: func(s *fakeServer) { s.on("PTTL", replies(":-2\r\n")) }, words: []string{"without a finite lifetime"},
		},
		"key that should be gone": {
			config:  func(c *StoreConfig) { c.Programs = []*store.Program{store.CacheDeleteV1} },
			arrange: func(s *fakeServer) { s.on("PTTL", replies(":5\r\n")) }, words: []string{"cache-delete-v1", "should have removed"},
		},
		"scratch key cannot be made": {
			config:  func(c *StoreConfig) { c.Programs = store.CachePrograms() },
			arrange: func(s *fakeServer) { s.on("SET", replies("-NOPERM x\r\n")) }, words: []string{"program cache-delete-v1", "set", "permission"},
		},
		"lifetime cannot be read": {
			arrange: func(s *fakeServer) { s.on("PTTL", replies("-NOPERM x\r\n")) }, words: []string{"pttl", "permission"},
		},
		"scratch key cannot be removed": {
			arrange: func(s *fakeServer) { s.on("DEL", replies("-NOPERM x\r\n")) }, words: []string{"del", "permission"},
		},
		"program fails": {
			arrange: func(s *fakeServer) { s.on("EVALSHA", replies("-ERR ACL failure in script\r\n")) }, words: []string{"program-failed", "ERR"},
		},
		"program denies": {
			arrange: func(s *fakeServer) { s.on("EVALSHA", replies(seven("DENIED", 1, 1, 1, 0, 1, 2))) }, words: []string{"replied", "DENIED", "ALLOWED"},
		},
		"garbage": {
			arrange: func(s *fakeServer) { s.on("HELLO", replies("HTTP/1.1 400 Bad Request\r\n")) }, words: []string{"handshake", "reply out of protocol"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startFake(t)
			row.arrange(server)
			change := []func(c *StoreConfig){func(c *StoreConfig) { c.Programs = store.RatePrograms() }}
			if row.config != nil {
				change = append(change, row.config)
			}
			s := unreadyStore(t, server.address(), change...)
			s.Start()
			waitReason(t, s, row.words...)
			wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeNotReady)
			server.heal()
			waitReady(t, s)
		})
	}
}

// TestLosesAndRegains: a server that is lost after it was found usable makes Ready say so, and an
// evaluation meanwhile has an outcome of its own.
func TestLosesAndRegains(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := unreadyStore(t, server.address())
	s.Start()
	waitReady(t, s)
	server.onAccept(func(*fakeConn) bool { return false })
	server.each(func(c *fakeConn) { _ = c.Close() })
	waitReason(t, s, "ping", "handshake")
	wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeHandshake)
	server.heal()
	waitReady(t, s)
	server.on("PING", replies(bulk("what")))
	waitReason(t, s, "ping", "reply (mismatched)")
	server.heal()
	waitReady(t, s)
}

// TestClose ends the goroutine and every connection; what is asked later is refused as closed.
func TestClose(t *testing.T) { //nolint:paralleltest // It counts goroutines.
	ignore := goleak.IgnoreCurrent()
	server := startFake(t)
	started, never, busy := unreadyStore(t, server.address()), unreadyStore(t, server.address()), storeFor(t, server.address())
	started.Start()
	waitReady(t, started)
	server.on("EVALSHA", swallows)
	result := make(chan *store.Error, 1)
	go func() { result <- evalOnce(t, busy, 100*testTimeout) }()
	eventually(t, "a command is under way", func() bool { return server.count("EVALSHA") > len(lua.Programs()) })
	for name, s := range map[string]*Store{"started": started, "never started": never, "busy": busy} {
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("%s: Close: %v", name, err)
			}
		}
		s.Start()
		wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeClosed)
		wantFailure(t, asFailure(t, s.Ping(t.Context())), store.NotSent, store.CodeClosed)
		if err := s.Ready(); err == nil || err.Error() != "closed" {
			t.Errorf("%s: Ready: %v", name, err)
		}
		if diff := cmp.Diff(unavailable(ratelimit.UnavailableClosed), evaluate(t, limiterFor(t, s))); diff != "" {
			t.Errorf("%s: outcome (-want +got):\n%s", name, diff)
		}
	}
	wantFailure(t, <-result, store.Uncertain, store.CodeConnectionLost)
	eventually(t, "no connection is left", func() bool { open, _ := server.connections(); return open == 0 })
	server.stop()
	goleak.VerifyNone(t, ignore)
}

// TestCloseRacesStart: whichever comes first, no goroutine is left (see TestMain).
func TestCloseRacesStart(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	for range 20 {
		s := unreadyStore(t, server.address())
		var both sync.WaitGroup
		both.Go(s.Start)
		both.Go(func() { _ = s.Close() })
		both.Wait()
	}
}
