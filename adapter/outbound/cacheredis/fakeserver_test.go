package cacheredis

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// fakeServer is a scripted RESP2 server on loopback. Without a script it answers what a healthy Redis
// answers to the commands of this package, takes any credentials, and allows every evaluation as the
// first of its policy.
type fakeServer struct {
	t        testing.TB
	listener net.Listener
	handlers sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	receipts map[string]int
	last     map[string][]string
	scripts  map[string]reaction
	accept   func(c *fakeConn) bool // false: the connection is done with
	conns    map[*fakeConn]struct{}
	accepted int
	known    map[string]bool // digests of programs that were seen
	info     string
	keys     map[string]bool
}

// reaction answers one command. It reports whether the connection goes on.
type reaction func(c *fakeConn, args []string) bool

type fakeConn struct {
	net.Conn
	server  *fakeServer
	ordinal int
	user    string
	input   *bufio.Reader
}

func (c *fakeConn) send(raw string) bool {
	_, err := io.WriteString(c.Conn, raw)
	return err == nil
}

// startFake serves on a free port. It knows the programs already, as a Redis does that ran them once.
func startFake(t testing.TB) *fakeServer { return startFakeAt(t, "127.0.0.1:0", nil) }

func startFakeAt(t testing.TB, address string, config *tls.Config) *fakeServer {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	s := &fakeServer{
		t: t, listener: listener, receipts: make(map[string]int), last: make(map[string][]string),
		scripts: make(map[string]reaction), conns: make(map[*fakeConn]struct{}), known: make(map[string]bool),
		info: "# Server\r\nredis_version:7.4.1\r\nredis_mode:standalone\r\n", keys: make(map[string]bool),
	}
	for _, p := range lua.Programs() {
		s.known[p.SHA1] = true
	}
	s.handlers.Go(s.serve)
	t.Cleanup(s.stop)
	return s
}

func (s *fakeServer) address() string { return s.listener.Addr().String() }

func (s *fakeServer) stop() {
	s.mu.Lock()
	s.closed = true
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	_ = s.listener.Close()
	for c := range conns {
		_ = c.Close()
	}
	s.handlers.Wait()
}

func (s *fakeServer) serve() {
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			_ = raw.Close()
			return
		}
		s.accepted++
		c := &fakeConn{Conn: raw, server: s, ordinal: s.accepted, user: "default", input: bufio.NewReader(raw)}
		s.conns[c] = struct{}{}
		accept := s.accept
		s.mu.Unlock()
		s.handlers.Go(func() {
			defer s.forget(c)
			if accept == nil || accept(c) {
				c.converse()
			}
		})
	}
}

func (s *fakeServer) forget(c *fakeConn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (c *fakeConn) converse() {
	for {
		args, ok := c.read()
		if !ok {
			return
		}
		name := strings.ToUpper(args[0])
		s := c.server
		s.mu.Lock()
		s.receipts[name]++
		s.last[name] = args
		react := s.scripts[name]
		s.mu.Unlock()
		if react == nil {
			react = healthy
		}
		if !react(c, args) {
			return
		}
	}
}

// read reads one command: an array of bulk strings.
func (c *fakeConn) read() ([]string, bool) {
	n, ok := c.header('*')
	if !ok || n < 1 {
		return nil, false
	}
	args := make([]string, n)
	for i := range args {
		length, ok := c.header('$')
		if !ok {
			return nil, false
		}
		body := make([]byte, length+2)
		if _, err := io.ReadFull(c.input, body); err != nil {
			return nil, false
		}
		args[i] = string(body[:length])
	}
	return args, true
}

func (c *fakeConn) header(kind byte) (int, bool) {
	line, err := c.input.ReadString('\n')
	if err != nil || len(line) < 3 || line[0] != kind {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(line[1:], "\r\n"))
	return n, err == nil && n >= 0
}

// healthy answers as Redis does.
func healthy(c *fakeConn, args []string) bool {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch strings.ToUpper(args[0]) {
	case "HELLO":
		if len(args) == 5 && strings.EqualFold(args[2], "AUTH") {
			c.user = args[3]
		}
		return c.send("*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.4.1\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n" +
			"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n")
	case "AUTH":
		if len(args) == 3 {
			c.user = args[1]
		}
		return c.send("+OK\r\n")
	case "SELECT":
		return c.send("+OK\r\n")
	case "INFO":
		return c.send(bulk(s.info))
	case "ACL":
		return c.send(bulk(c.user))
	case "PING":
		return c.send("+PONG\r\n")
	case "PTTL":
		if !s.keys[args[1]] {
			return c.send(":-2\r\n")
		}
		return c.send(":1000\r\n")
	case "DEL":
		removed := 0
		for _, key := range args[1:] {
			if s.keys[key] {
				removed++
			}
			delete(s.keys, key)
		}
		return c.send(fmt.Sprintf(":%d\r\n", removed))
	case "SET":
		s.keys[args[1]] = true
		return c.send("+OK\r\n")
	case "EVALSHA":
		if !s.known[args[1]] {
			return c.send("-NOSCRIPT No matching script. Please use EVAL.\r\n")
		}
	case "EVAL":
		for _, p := range lua.Programs() {
			if p.Source == args[1] {
				s.known[p.SHA1] = true
			}
		}
	default:
		return c.send("-ERR unknown command\r\n")
	}
	s.keys[args[3]] = true
	for _, p := range lua.Programs() {
		if p.Source != args[1] && p.SHA1 != args[1] {
			continue
		}
		switch p.Descriptor {
		case store.StoreIncrByV1:
			return c.send(":1\r\n")
		case store.CacheReplaceV1:
			return c.send(bulk("APPLIED"))
		case store.CacheDeleteV1:
			delete(s.keys, args[3])
			return c.send(bulk("APPLIED"))
		case store.BreakerAcquireV1:
			delete(s.keys, args[3]) // It writes nothing while the breaker is closed.
			return c.send(multi("CALL", "closed", fakeNow, fakeNow, 0, 0, 0))
		case store.BreakerRecordV1:
			return c.send(multi("COUNTED", "closed", "closed", fakeNow, fakeNow, 0, 0))
		case store.BreakerReadV1:
			delete(s.keys, args[3])
			return c.send(multi("READ", "closed", fakeNow, fakeNow, 0, 0, 0, 0))
		}
	}
	return c.send(allowed(args))
}

const fakeNow = 1_700_000_000_000

// allowed is the reply to the first request of a policy: its limit is the second argument of each
// program, its cost the last but one.
func allowed(args []string) string {
	limit, _ := strconv.ParseInt(args[5], 10, 64)
	cost, _ := strconv.ParseInt(args[len(args)-2], 10, 64)
	return seven("ALLOWED", fakeNow, fakeNow, limit, limit-cost, 0, fakeNow+1000)
}

func seven(status string, n ...int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n%s", 1+len(n), bulk(status))
	for _, v := range n {
		fmt.Fprintf(&b, ":%d\r\n", v)
	}
	return b.String()
}

// multi is an array of texts and integers.
func multi(values ...any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(values))
	for _, v := range values {
		if text, ok := v.(string); ok {
			b.WriteString(bulk(text))
		} else {
			fmt.Fprintf(&b, ":%d\r\n", v)
		}
	}
	return b.String()
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// on sets the reaction to a command from now on; nil is the healthy one.
func (s *fakeServer) on(command string, r reaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[command] = r
}

func (s *fakeServer) onAccept(accept func(c *fakeConn) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accept = accept
}

// heal makes the server healthy again and forgets what it counted.
func (s *fakeServer) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.scripts)
	clear(s.receipts)
	s.accept = nil
	s.info = "redis_version:7.4.1\r\n"
	for _, p := range lua.Programs() {
		s.known[p.SHA1] = true
	}
}

func (s *fakeServer) set(f func(s *fakeServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *fakeServer) count(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receipts[command]
}

func (s *fakeServer) received(command string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[command]
}

func (s *fakeServer) connections() (open, accepted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.accepted
}

func (s *fakeServer) stored() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}

// each does something to every open connection.
func (s *fakeServer) each(f func(c *fakeConn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}

// replies answers with raw bytes.
func replies(raw string) reaction {
	return func(c *fakeConn, _ []string) bool { return c.send(raw) }
}

// drops ends the connection after what was received, and after raw.
func drops(raw string) reaction {
	return func(c *fakeConn, _ []string) bool {
		_ = raw == "" || c.send(raw)
		return false
	}
}

// resets ends the connection with RST.
func resets(c *fakeConn, _ []string) bool {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return false
}

// swallows never answers.
func swallows(*fakeConn, []string) bool { return true }

// times does first the first n times, and then what is healthy.
func times(n int64, first reaction) reaction {
	var seen atomic.Int64
	return func(c *fakeConn, args []string) bool {
		if seen.Add(1) <= n {
			return first(c, args)
		}
		return healthy(c, args)
	}
}

// testTimeout is the command timeout of tests: long enough for a loaded machine.
const testTimeout = 500 * time.Millisecond

// storeFor is a store over the server that has found it usable already.
func storeFor(t testing.TB, address string, change ...func(c *StoreConfig)) *Store {
	t.Helper()
	s := unreadyStore(t, address, change...)
	s.readiness.passed.Store(true)
	return s
}

func unreadyStore(t testing.TB, address string, change ...func(c *StoreConfig)) *Store {
	t.Helper()
	config := StoreConfig{Address: address, CommandTimeout: testTimeout, PoolSize: 2, Namespace: "test", Coalesce: true}
	for _, f := range change {
		f(&config)
	}
	s, err := NewStore(config)
	if err != nil {
		t.Fatalf("NewStore: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// fixedWindowArguments are the program's arguments with the given cost.
func fixedWindowArguments(cost int64) []any {
	return []any{"1:fw:1:test", int64(10), int64(1000), int64(0), int64(0), cost, int64(0)}
}

var fixedWindow = store.RateFixedWindowV1
