package cacheredis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// TestNotSent: the connection failed before a command was written to it.
func TestNotSent(t *testing.T) {
	t.Parallel()
	credentials := func(c *StoreConfig) { c.Username, c.Password = "limiter", "right" }
	handshake := func(name string, arrange func(s *fakeServer)) failureRow {
		return failureRow{name: name, arrange: arrange, code: store.CodeHandshake, outcome: unavailable(ratelimit.UnavailableHandshake)}
	}
	info := func(text string) func(s *fakeServer) {
		return func(s *fakeServer) { s.set(func(s *fakeServer) { s.info = text }) }
	}
	rows := []failureRow{
		handshake("HELLO black hole", func(s *fakeServer) { s.on("HELLO", swallows) }),
		handshake("HELLO dropped", func(s *fakeServer) { s.on("HELLO", drops("")) }),
		handshake("HELLO reset", func(s *fakeServer) { s.on("HELLO", resets) }),
		handshake("HELLO half answered", func(s *fakeServer) { s.on("HELLO", drops("*14\r\n$6\r\nser")) }),
		handshake("HELLO is no RESP", func(s *fakeServer) { s.on("HELLO", replies("HTTP/1.1 400 Bad Request\r\n")) }),
		handshake("HELLO without end", func(s *fakeServer) { s.on("HELLO", replies("*14\r\n$9223372036854775807\r\n")) }),
		handshake("INFO of a huge length", func(s *fakeServer) { s.on("INFO", replies("$9223372036854775807\r\n")) }),
		handshake("INFO without end", func(s *fakeServer) { s.on("INFO", replies("$4000000000\r\n")) }),
		handshake("INFO black hole", func(s *fakeServer) { s.on("INFO", swallows) }),
		handshake("INFO dropped", func(s *fakeServer) { s.on("INFO", drops("")) }),
		handshake("INFO nil", func(s *fakeServer) { s.on("INFO", replies("*0\r\n")) }),
		handshake("ACL unknown", func(s *fakeServer) { s.on("ACL", replies("-ERR unknown command 'ACL'\r\n")) }),
		handshake("closed on accept", func(s *fakeServer) { s.onAccept(func(*fakeConn) bool { return false }) }),
		handshake("maxclients", func(s *fakeServer) {
			s.onAccept(func(c *fakeConn) bool { c.send("-ERR max number of clients reached\r\n"); return false })
		}),
		handshake("never reads", func(s *fakeServer) {
			s.onAccept(hold)
		}),
		{
			name: "NOAUTH", arrange: func(s *fakeServer) {
				s.on("HELLO", replies("-NOAUTH HELLO must be called with the client already authenticated\r\n"))
				s.on("INFO", replies("-NOAUTH Authentication required.\r\n"))
			},
			code: store.CodeAuthentication, outcome: unavailable(ratelimit.UnavailableAuthentication),
		},
		{
			name: "WRONGPASS", config: credentials, arrange: func(s *fakeServer) {
				s.on("HELLO", replies("-WRONGPASS invalid username-password pair or user is disabled.\r\n"))
				s.on("AUTH", replies("-WRONGPASS invalid username-password pair or user is disabled.\r\n"))
			},
			code: store.CodeAuthentication, outcome: unavailable(ratelimit.UnavailableAuthentication),
		},
		{
			name: "AUTH black hole", config: credentials, arrange: func(s *fakeServer) {
				s.on("HELLO", replies("-ERR unknown command 'HELLO'\r\n"))
				s.on("AUTH", swallows)
			},
			code: store.CodeHandshake, outcome: unavailable(ratelimit.UnavailableHandshake),
		},
		{
			name: "another user", config: credentials, arrange: func(s *fakeServer) { s.on("ACL", replies(bulk("default"))) },
			code: store.CodeAuthentication, outcome: unavailable(ratelimit.UnavailableAuthentication),
		},
		{
			name: "INFO forbidden", arrange: func(s *fakeServer) { s.on("INFO", replies("-NOPERM User x has no permissions\r\n")) },
			code: store.CodePermission, outcome: unavailable(ratelimit.UnavailablePermission),
		},
		{
			name: "loading in the greeting", arrange: func(s *fakeServer) { s.on("INFO", replies("-LOADING x\r\n")) },
			code: store.CodeLoading, outcome: unavailable(ratelimit.UnavailableLoading),
		},
		{
			name: "SELECT refused", config: func(c *StoreConfig) { c.Database = 3 },
			arrange: func(s *fakeServer) { s.on("SELECT", replies("-ERR DB index is out of range\r\n")) },
			code:    store.CodeHandshake, outcome: unavailable(ratelimit.UnavailableHandshake),
		},
		{
			name: "old redis", arrange: info("redis_version:6.2.14\r\n"),
			code: store.CodeServerVersion, outcome: unavailable(ratelimit.UnavailableServerVersion),
		},
		{
			name: "old valkey", arrange: info("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:7.2.8\r\n"),
			code: store.CodeServerVersion, outcome: unavailable(ratelimit.UnavailableServerVersion),
		},
		{
			name: "no version", arrange: info("# Server\r\n"),
			code: store.CodeServerVersion, outcome: unavailable(ratelimit.UnavailableServerVersion),
		},
	}
	for _, row := range rows {
		row.certainty = store.NotSent
		t.Run(row.name, func(t *testing.T) { runFailureRow(t, row) })
	}
}

// hold keeps a connection open without reading until the server stops or the client goes.
func hold(c *fakeConn) bool {
	for {
		c.server.mu.Lock()
		closed := c.server.closed || c.server.accept == nil
		c.server.mu.Unlock()
		if closed {
			return false
		}
		time.Sleep(time.Millisecond)
	}
}

var reserved atomic.Int64

// reservedAddress is an address of this machine on which nothing listens, and no other test will.
func reservedAddress(t *testing.T) string {
	t.Helper()
	address := fmt.Sprintf("127.9.%d.%d:7379", reserved.Add(1)/250, reserved.Load()%250+1)
	probe, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("listen on %s: %v", address, err)
	}
	_ = probe.Close()
	return address
}

// TestDialRefused also recovers: after more refused dials than the pool has room for, the first call
// that finds a server succeeds.
func TestDialRefused(t *testing.T) {
	t.Parallel()
	address := reservedAddress(t)
	s := storeFor(t, address)
	l := limiterFor(t, s)
	for range 3 * 2 {
		wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeConnect)
		if diff := cmp.Diff(unavailable(ratelimit.UnavailableConnection), evaluate(t, l)); diff != "" {
			t.Errorf("outcome (-want +got):\n%s", diff)
		}
	}
	server := startFakeAt(t, address, nil)
	wantSane(t, server, s, 0)
}

// TestDialBlackHole dials a listener whose queue of connections is full: nothing answers.
func TestDialBlackHole(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	raw, err := listener.(*net.TCPListener).SyscallConn() //nolint:forcetypeassert // Listen "tcp" gives nothing else.
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	full := false
	for range 16 {
		c, err := net.DialTimeout("tcp", listener.Addr().String(), testTimeout)
		if err != nil {
			full = true
			break
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	if !full {
		t.Fatal("a listener with a queue of one takes any number of connections")
	}
	// The dial ends a tenth before the command: long enough a tenth for a machine under load.
	s := storeFor(t, listener.Addr().String(), func(c *StoreConfig) { c.CommandTimeout = 10 * testTimeout })
	// The caller's time is over first here; either may be named.
	failure := evalOnce(t, s, testTimeout)
	if failure == nil || failure.Certainty != store.NotSent || failure.Code != store.CodeConnect && failure.Code != store.CodeDeadline {
		t.Errorf("failure is %v, want NotSent", failure)
	}
	wantFailure(t, evalOnce(t, s, 20*testTimeout), store.NotSent, store.CodeConnect)
	l := limiterFor(t, s, func(c *LimiterConfig) { c.CommandTimeout = 20 * testTimeout })
	if diff := cmp.Diff(unavailable(ratelimit.UnavailableConnection), evaluate(t, l)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// TestTLSFails: a server that does not speak TLS, one that never answers the handshake, and one whose
// certificate nobody vouches for.
func TestTLSFails(t *testing.T) {
	t.Parallel()
	serverTLS, trusted := testCertificate(t)
	for name, row := range map[string]struct {
		server *tls.Config
		client *tls.Config
		accept func(c *fakeConn) bool
	}{
		"plaintext server":    {client: trusted},
		"black hole":          {client: trusted, accept: hold},
		"unknown certificate": {server: serverTLS, client: &tls.Config{MinVersion: tls.VersionTLS12}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startFakeAt(t, "127.0.0.1:0", row.server)
			server.onAccept(row.accept)
			// The dial ends a tenth of the timeout before the call does: enough for a loaded machine.
			s := storeFor(t, server.address(), func(c *StoreConfig) { c.TLS, c.CommandTimeout = row.client, 10*testTimeout })
			wantFailure(t, evalOnce(t, s, 20*testTimeout), store.NotSent, store.CodeTLS)
			l := limiterFor(t, s, func(c *LimiterConfig) { c.CommandTimeout = 20 * testTimeout })
			if diff := cmp.Diff(unavailable(ratelimit.UnavailableTLS), evaluate(t, l)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if n := server.count("EVALSHA"); n != 0 {
				t.Errorf("%d programs were sent", n)
			}
		})
	}
}

// TestPoolExhausted: the one connection is taken.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address(), func(c *StoreConfig) { c.PoolSize = 1 })
	taken := s.client.Conn()
	defer func() { _ = taken.Close() }()
	if err := taken.Ping(deadlined(t)).Err(); err != nil {
		t.Fatal(err)
	}

	// The wait for a connection is the store's command timeout, less than this caller's.
	wantFailure(t, evalOnce(t, s, 5*testTimeout), store.NotSent, store.CodePoolExhausted)
	l := limiterFor(t, s, func(c *LimiterConfig) { c.CommandTimeout = 5 * testTimeout })
	if diff := cmp.Diff(unavailable(ratelimit.UnavailablePool), evaluate(t, l)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	// A caller that goes while it waits.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	waiting := make(chan error, 1)
	before := s.client.PoolStats().PendingRequests
	go func() {
		_, err := s.Eval(ctx, fixedWindow, []string{"key"}, fixedWindowArguments(1))
		waiting <- err
	}()
	eventually(t, "the caller waits", func() bool { return s.client.PoolStats().PendingRequests > before || len(waiting) > 0 })
	cancel()
	if failure := asFailure(t, <-waiting); failure.Certainty != store.NotSent ||
		failure.Code != store.CodeCanceled && failure.Code != store.CodePoolExhausted {
		t.Errorf("failure is %v, want canceled (not-sent)", failure)
	}
	if n := server.count("EVALSHA"); n != 0 {
		t.Errorf("%d programs were sent", n)
	}
	if err := taken.Close(); err != nil {
		t.Error(err)
	}
	wantSane(t, server, s, 0)
}

// TestNothingIsSent for calls that end before they begin.
func TestNothingIsSent(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	l := limiterFor(t, s)

	canceled, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	late, cancelLate := context.WithTimeout(t.Context(), -time.Second)
	defer cancelLate()
	for _, row := range []struct {
		name     string
		ctx      context.Context //nolint:containedctx // A table of contexts.
		code     store.Code
		category ratelimit.UnavailableCategory
	}{
		{"canceled", canceled, store.CodeCanceled, ratelimit.UnavailableCanceled},
		{"deadline over", late, store.CodeDeadline, ratelimit.UnavailableDeadline},
	} {
		_, err := s.Eval(row.ctx, fixedWindow, []string{"key"}, fixedWindowArguments(1))
		wantFailure(t, asFailure(t, err), store.NotSent, row.code)
		outcome, err := l.Evaluate(row.ctx, request(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(unavailable(row.category), outcome); diff != "" {
			t.Errorf("%s: outcome (-want +got):\n%s", row.name, diff)
		}
	}
	short := request(t)
	short.Deadline = time.Now().Add(testTimeout - time.Millisecond)
	outcome, err := l.Evaluate(t.Context(), short)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unavailable(ratelimit.UnavailableDeadline), outcome); diff != "" {
		t.Errorf("less than the command timeout left (-want +got):\n%s", diff)
	}
	wantFailure(t, asFailure(t, s.Ping(canceled)), store.NotSent, store.CodeCanceled)
	wantFailure(t, asFailure(t, s.Ping(context.Background())), store.NotSent, store.CodeInvalidArgument) //nolint:usetesting // Without a deadline.
	if _, accepted := server.connections(); accepted != 0 {
		t.Errorf("%d connections were made", accepted)
	}
}
