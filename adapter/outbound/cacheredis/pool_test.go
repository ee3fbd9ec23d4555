package cacheredis

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// TestGreetings: servers that speak only RESP2, TLS, credentials, Valkey by its own version, a database.
func TestGreetings(t *testing.T) {
	t.Parallel()
	serverTLS, trusted := testCertificate(t)
	noHello := replies("-ERR unknown command 'HELLO', with args beginning with: '2'\r\n")
	for name, row := range map[string]struct {
		config  func(c *StoreConfig)
		arrange func(s *fakeServer)
		server  string
	}{
		"redis":      {server: "redis 7.4.1"},
		"RESP2 only": {arrange: func(s *fakeServer) { s.on("HELLO", noHello) }, server: "redis 7.4.1"},
		"user":       {config: func(c *StoreConfig) { c.Username, c.Password = "limiter", "right" }, server: "redis 7.4.1"},
		"password":   {config: func(c *StoreConfig) { c.Password = "right" }, server: "redis 7.4.1"},
		"RESP2 and user": {
			config:  func(c *StoreConfig) { c.Username, c.Password = "limiter", "right" },
			arrange: func(s *fakeServer) { s.on("HELLO", noHello) }, server: "redis 7.4.1",
		},
		"RESP2 and password": {
			config:  func(c *StoreConfig) { c.Password = "right" },
			arrange: func(s *fakeServer) { s.on("HELLO", noHello) }, server: "redis 7.4.1",
		},
		"database": {config: func(c *StoreConfig) { c.Database = 7 }, server: "redis 7.4.1"},
		"TLS":      {config: func(c *StoreConfig) { c.TLS = trusted }, server: "redis 7.4.1"},
		"valkey": {arrange: func(s *fakeServer) {
			s.set(func(s *fakeServer) { s.info = "redis_version:7.2.4\r\nvalkey_version:8.0.2\r\n" })
		}, server: "valkey 8.0.2"},
		"lower version on request": {
			config: func(c *StoreConfig) { c.LowestVersion = "6.2" }, server: "redis 6.2.14",
			arrange: func(s *fakeServer) { s.set(func(s *fakeServer) { s.info = "redis_version:6.2.14\r\n" }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startFake(t)
			if name == "TLS" {
				server = startFakeAt(t, "127.0.0.1:0", serverTLS)
			}
			if row.arrange != nil {
				row.arrange(server)
			}
			var change []func(c *StoreConfig)
			if row.config != nil {
				change = append(change, row.config)
			}
			s := storeFor(t, server.address(), change...)
			if s.Server() != "" {
				t.Error("a server before any connection")
			}
			for range 3 {
				if failure := evalOnce(t, s, 20*testTimeout); failure != nil {
					t.Fatal(failure)
				}
			}
			if got := s.Server(); got != row.server {
				t.Errorf("server is %q, want %q", got, row.server)
			}
			if _, accepted := server.connections(); accepted != 1 {
				t.Errorf("%d connections for three calls one after the other", accepted)
			}
			if name == "database" && (len(server.received("SELECT")) != 2 || server.received("SELECT")[1] != "7") {
				t.Errorf("SELECT was %q", server.received("SELECT"))
			}
		})
	}
}

// TestExactSourceOnce: NOSCRIPT is answered with the exact source, once, and the next call goes by
// digest again.
func TestExactSourceOnce(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	server.set(func(s *fakeServer) { clear(s.known) })
	s := storeFor(t, server.address())
	for range 2 {
		if failure := evalOnce(t, s, 20*testTimeout); failure != nil {
			t.Fatal(failure)
		}
	}
	if sha, source := server.count("EVALSHA"), server.count("EVAL"); sha != 2 || source != 1 {
		t.Errorf("%d EVALSHA and %d EVAL, want 2 and 1", sha, source)
	}
	bySHA, bySource := server.received("EVALSHA"), server.received("EVAL")
	if got, want := strings.Join(bySource[2:], " "), strings.Join(bySHA[2:], " "); got != want {
		t.Errorf("EVAL had the arguments %q, EVALSHA %q", got, want)
	}
	if want := "1 key 1:fw:1:test 10 1000 0 0 1 0"; strings.Join(bySHA[2:], " ") != want {
		t.Errorf("EVALSHA had the arguments %q, want %q", bySHA[2:], want)
	}
}

// TestLateReply: the reply that comes after the caller gave up reaches nobody.
func TestLateReply(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2} {
		server := startFake(t)
		s := storeFor(t, server.address(), func(c *StoreConfig) { c.PoolSize = size })
		release := make(chan struct{})
		answered := make(chan struct{})
		server.on("EVALSHA", times(1, func(c *fakeConn, _ []string) bool {
			defer close(answered)
			<-release
			c.send(seven("DENIED", fakeNow, fakeNow, 10, 0, 1000, fakeNow+1000))
			return true
		}))
		wantFailure(t, evalOnce(t, s, testTimeout), store.Uncertain, store.CodeDeadline)
		close(release)
		<-answered
		wantSane(t, server, s, 0)
	}
}

// TestCallerGoneAfterDispatch: going away does not make a sent command unsent.
func TestCallerGoneAfterDispatch(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	server.on("EVALSHA", swallows)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := s.Eval(ctx, fixedWindow, []string{"key"}, fixedWindowArguments(1))
		result <- err
	}()
	eventually(t, "the command is received", func() bool { return server.count("EVALSHA") == 1 })
	cancel()
	wantFailure(t, asFailure(t, <-result), store.Uncertain, store.CodeDeadline)
	wantSane(t, server, s, 0)
}

// TestClosedWhileIdle: connections that the server closed, or on which it spoke unasked, while nobody
// used them fail no call.
func TestClosedWhileIdle(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(c *fakeConn){
		"closed":            func(c *fakeConn) { _ = c.Close() },
		"spoke":             func(c *fakeConn) { c.send(":42\r\n") },
		"spoke and closed":  func(c *fakeConn) { c.send("-ERR bye\r\n"); _ = c.Close() },
		"a reply too early": func(c *fakeConn) { c.send(seven("DENIED", fakeNow, fakeNow, 10, 0, 1000, fakeNow+1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startFake(t)
			s := storeFor(t, server.address())
			wantSane(t, server, s, 0)
			server.each(disturb)
			// The client's kernel has it: a peek at the socket sees it, as the pool does.
			eventually(t, "the disturbance arrives", func() bool {
				open, accepted := server.connections()
				return accepted == 1 && (open == 0 || !strings.Contains(name, "closed"))
			})
			wantSane(t, server, s, 0)
		})
	}
}

// TestTwoReplies: what follows a reply is never the next one's.
func TestTwoReplies(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	server.on("EVALSHA", func(c *fakeConn, args []string) bool {
		return c.send(allowed(args) + seven("ALLOWED", fakeNow, fakeNow, 10, 0, 0, fakeNow+1000))
	})
	if failure := evalOnce(t, s, testTimeout); failure != nil {
		t.Fatal(failure)
	}
	wantSane(t, server, s, 0)
	if _, accepted := server.connections(); accepted != 2 {
		t.Errorf("%d connections, want a second one", accepted)
	}
}

// TestReadOnlyRetires: READONLY ends every connection made before it, idle ones too.
func TestReadOnlyRetires(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address(), func(c *StoreConfig) { c.PoolSize, c.Coalesce = 3, false })
	// Three calls at once leave three idle connections.
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	server.on("EVALSHA", func(c *fakeConn, args []string) bool { <-gate; return healthy(c, args) })
	results := make(chan *store.Error, 3)
	for range 3 {
		go func() { results <- evalOnce(t, s, 50*testTimeout) }()
	}
	eventually(t, "three calls are sent", func() bool { return server.count("EVALSHA") == 3 })
	open()
	for range 3 {
		if failure := <-results; failure != nil {
			t.Fatal(failure)
		}
	}
	server.on("EVALSHA", replies("-READONLY You can't write against a read only replica.\r\n"))
	wantFailure(t, evalOnce(t, s, testTimeout), store.Refused, store.CodeReadOnly)
	wantSane(t, server, s, 0)
	eventually(t, "the old connections are closed", func() bool {
		alive, accepted := server.connections()
		return accepted == 4 && alive == 1
	})
}

// TestBadCalls: what does not fit the program is refused before anything is sent.
func TestBadCalls(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := func(change func(a []any)) []any {
		a := fixedWindowArguments(1)
		change(a)
		return a
	}
	for name, row := range map[string]struct {
		program *store.Program
		keys    []string
		args    []any
		code    store.Code
	}{
		"no program":        {nil, []string{"key"}, fixedWindowArguments(1), store.CodeUnknownProgram},
		"foreign program":   {&store.Program{Name: "x", Version: 1}, nil, nil, store.CodeUnknownProgram},
		"copy of a program": {func() *store.Program { c := *fixedWindow; return &c }(), []string{"key"}, fixedWindowArguments(1), store.CodeUnknownProgram},
		"no key":            {fixedWindow, nil, fixedWindowArguments(1), store.CodeInvalidArgument},
		"two keys":          {fixedWindow, []string{"a", "b"}, fixedWindowArguments(1), store.CodeInvalidArgument},
		"too few":           {fixedWindow, []string{"key"}, fixedWindowArguments(1)[1:], store.CodeInvalidArgument},
		"an int":            {fixedWindow, []string{"key"}, args(func(a []any) { a[1] = 10 }), store.CodeInvalidArgument},
		"a nil":             {fixedWindow, []string{"key"}, args(func(a []any) { a[1] = nil }), store.CodeInvalidArgument},
		"a float":           {fixedWindow, []string{"key"}, args(func(a []any) { a[5] = 1.0 }), store.CodeInvalidArgument},
	} {
		_, err := s.Eval(ctx, row.program, row.keys, row.args)
		t.Run(name, func(t *testing.T) { wantFailure(t, asFailure(t, err), store.NotSent, row.code) })
	}
	_, err := s.Eval(context.Background(), fixedWindow, []string{"key"}, fixedWindowArguments(1)) //nolint:usetesting // Without a deadline.
	wantFailure(t, asFailure(t, err), store.NotSent, store.CodeInvalidArgument)
	if _, accepted := server.connections(); accepted != 0 {
		t.Errorf("%d connections were made", accepted)
	}
	if s.Source() != store.SourceGlobalRedis || s.Clock() != store.ClockServer {
		t.Errorf("source %v, clock %v", s.Source(), s.Clock())
	}
}

// TestCallerClock: the store fills in the clock argument, and sends nothing where it is out of range.
func TestCallerClock(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	var now int64
	s := storeFor(t, server.address(), func(c *StoreConfig) { c.CallerClock = func() int64 { return now } })
	if s.Clock() != store.ClockCaller {
		t.Errorf("clock is %v", s.Clock())
	}
	for _, out := range []int64{0, -1, 1<<42 + 1} {
		now = out
		wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeInvalidArgument)
	}
	now = 4398046511104
	if failure := evalOnce(t, s, 20*testTimeout); failure != nil {
		t.Fatal(failure)
	}
	if got := server.received("EVALSHA"); got[len(got)-1] != "4398046511104" {
		t.Errorf("clock argument is %q", got[len(got)-1])
	}
}

// TestScalar: a program of one reply field answers one value, and never an array.
func TestScalar(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address(), func(c *StoreConfig) { c.Programs = []*store.Program{store.StoreIncrByV1} })
	run := func(raw string) (store.Reply, *store.Error) {
		server.on("EVALSHA", replies(raw))
		ctx, cancel := context.WithTimeout(t.Context(), 20*testTimeout)
		defer cancel()
		reply, err := s.eval(ctx, store.StoreIncrByV1, []string{"counter"}, []any{int64(1), int64(1000)})
		return reply, asFailure(t, err)
	}
	if reply, failure := run(":42\r\n"); failure != nil || reply.Len() != 1 || reply.At(0) != store.Integer(42) {
		t.Errorf("%v, %v", values(reply), failure)
	}
	_, failure := run("*1\r\n:42\r\n")
	wantFailure(t, failure, store.Mismatched, store.CodeReply)
	_, failure = run("-OOM x\r\n")
	wantFailure(t, failure, store.Refused, store.CodeOutOfMemory)
}
