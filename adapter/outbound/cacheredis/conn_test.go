package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

var errStub = errors.New("stub")

// stubConn fails as it is told, after so many bytes.
type stubConn struct {
	net.Conn
	room                                int // bytes that Write takes before it fails
	deadline, readDeadline, writeFailed error
	input                               []byte
	readError                           error
}

func (s *stubConn) Write(b []byte) (int, error) {
	if len(b) <= s.room {
		s.room -= len(b)
		return len(b), nil
	}
	n := s.room
	s.room = 0
	return n, s.writeFailed
}

func (s *stubConn) Read(b []byte) (int, error) {
	if len(s.input) == 0 {
		return 0, s.readError
	}
	n := copy(b, s.input)
	s.input = s.input[n:]
	return n, nil
}

func (s *stubConn) SetDeadline(time.Time) error      { return s.deadline }
func (s *stubConn) SetReadDeadline(time.Time) error  { return s.readDeadline }
func (s *stubConn) SetWriteDeadline(time.Time) error { return s.deadline }

const (
	helloCommand = "*2\r\n$5\r\nhello\r\n$1\r\n2\r\n"
	evalCommand  = "*3\r\n$7\r\nEVALSHA\r\n$1\r\na\r\n$1\r\n0\r\n"
)

// step is one use of a connection, and what its failure says.
type step func(t *testing.T, c *conn, s *stubConn) error

func writes(text string) step {
	return func(_ *testing.T, c *conn, _ *stubConn) error { _, err := c.Write([]byte(text)); return err }
}

func reads(text string) step {
	return func(t *testing.T, c *conn, s *stubConn) error {
		s.input = []byte(text)
		b := make([]byte, len(text)+1)
		if n, err := c.Read(b); err != nil || string(b[:n]) != text {
			t.Errorf("read %q: %v", b[:n], err)
		}
		return nil
	}
}

func readFails(err error) step {
	return func(_ *testing.T, c *conn, s *stubConn) error {
		s.readError = err
		_, err := c.Read(make([]byte, 1))
		return err
	}
}

// TestConnCounts: a failure is one of a command that was not sent only where no byte of it can have
// left.
func TestConnCounts(t *testing.T) {
	t.Parallel()
	timeout := os.ErrDeadlineExceeded
	for name, row := range map[string]struct {
		stub  stubConn
		steps []step
		sent  bool
		code  store.Code
		text  string
	}{
		"greeting: write fails":               {stubConn{writeFailed: errStub}, []step{writes(helloCommand)}, false, store.CodeHandshake, "greeting: write: stub"},
		"greeting: write in part":             {stubConn{room: 3, writeFailed: errStub}, []step{writes(helloCommand)}, false, store.CodeHandshake, "greeting: write: stub"},
		"greeting: read fails":                {stubConn{room: 99}, []step{writes(helloCommand), readFails(io.EOF)}, false, store.CodeHandshake, "greeting: read: EOF"},
		"greeting: read times out":            {stubConn{room: 99}, []step{writes(helloCommand), readFails(timeout)}, false, store.CodeHandshake, "greeting: read: i/o timeout"},
		"command: nothing written":            {stubConn{writeFailed: syscall.EPIPE}, []step{writes(evalCommand)}, false, store.CodeConnectionLost, "write with 0 bytes unanswered: broken pipe"},
		"command: nothing written in time":    {stubConn{writeFailed: timeout}, []step{writes(evalCommand)}, false, store.CodeDeadline, "write with 0 bytes unanswered: i/o timeout"},
		"command: one byte written":           {stubConn{room: 1, writeFailed: errStub}, []step{writes(evalCommand)}, true, store.CodeConnectionLost, "write with 1 bytes unanswered: stub"},
		"command: one byte written in time":   {stubConn{room: 1, writeFailed: timeout}, []step{writes(evalCommand)}, true, store.CodeDeadline, ""},
		"command: second part fails":          {stubConn{room: len(evalCommand), writeFailed: errStub}, []step{writes(evalCommand), writes("more")}, true, store.CodeConnectionLost, ""},
		"command: read fails":                 {stubConn{room: 99}, []step{writes(evalCommand), readFails(io.EOF)}, true, store.CodeConnectionLost, ""},
		"command: read fails in mid-reply":    {stubConn{room: 99}, []step{writes(evalCommand), reads("*7\r\n"), readFails(io.EOF)}, true, store.CodeConnectionLost, "read with 0 bytes unanswered: EOF"},
		"command: read times out":             {stubConn{room: 99}, []step{writes(evalCommand), readFails(timeout)}, true, store.CodeDeadline, ""},
		"second command: nothing written":     {stubConn{room: len(evalCommand), writeFailed: errStub}, []step{writes(evalCommand), reads("+OK\r\n"), writes(evalCommand)}, false, store.CodeConnectionLost, ""},
		"second command: one byte written":    {stubConn{room: len(evalCommand) + 1, writeFailed: errStub}, []step{writes(evalCommand), reads("+OK\r\n"), writes(evalCommand)}, true, store.CodeConnectionLost, ""},
		"after greeting: nothing written":     {stubConn{room: len(helloCommand), writeFailed: errStub}, []step{writes(helloCommand), reads("+OK\r\n"), writes(evalCommand)}, false, store.CodeConnectionLost, ""},
		"after an unread greeting: none":      {stubConn{room: len(helloCommand), writeFailed: errStub}, []step{writes(helloCommand), writes(evalCommand)}, false, store.CodeConnectionLost, ""},
		"a greeting's word after a command":   {stubConn{room: len(evalCommand) + 1, writeFailed: errStub}, []step{writes(evalCommand), reads("+OK\r\n"), writes(helloCommand)}, true, store.CodeConnectionLost, ""},
		"what is no command at all":           {stubConn{room: 1, writeFailed: errStub}, []step{writes("GET x")}, true, store.CodeConnectionLost, ""},
		"deadline cannot be set for a write":  {stubConn{room: 99, deadline: errStub}, []step{writes(evalCommand), reads("+OK\r\n"), func(_ *testing.T, c *conn, _ *stubConn) error { return c.SetWriteDeadline(time.Time{}) }}, false, store.CodeConnectionLost, ""},
		"deadline cannot be set for a read":   {stubConn{room: 99, readDeadline: errStub}, []step{writes(evalCommand), func(_ *testing.T, c *conn, _ *stubConn) error { return c.SetReadDeadline(time.Time{}) }}, true, store.CodeConnectionLost, ""},
		"deadline cannot be set after a part": {stubConn{room: 99, deadline: errStub}, []step{writes(evalCommand), func(_ *testing.T, c *conn, _ *stubConn) error { return c.SetDeadline(time.Time{}) }}, true, store.CodeConnectionLost, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub := row.stub
			c := &conn{raw: &stub, wire: &stub, dialer: &dialer{}}
			var err error
			for i, s := range row.steps {
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				err = s(t, c, &stub)
			}
			var ce *connError
			if !errors.As(err, &ce) {
				t.Fatalf("failure is %v", err)
			}
			if ce.notSent() == row.sent {
				t.Errorf("not sent is %v", ce.notSent())
			}
			certainty := store.NotSent
			if row.sent {
				certainty = store.Uncertain
			}
			// As go-redis gives it, and wrapped.
			wantFailure(t, transportError("x", err), certainty, row.code)
			wantFailure(t, transportError("x", fmt.Errorf("wrapped: %w", err)), certainty, row.code)
			if row.text != "" && err.Error() != row.text {
				t.Errorf("text is %q, want %q", err, row.text)
			}
			if errors.Unwrap(err) != nil {
				t.Error("a level that go-redis would strip")
			}
		})
	}
}

// TestConnErrorIs: causes stay visible although there is no Unwrap.
func TestConnErrorIs(t *testing.T) {
	t.Parallel()
	e := &connError{phase: phaseCommand, read: true, cause: fmt.Errorf("x: %w", io.EOF)}
	if !errors.Is(e, io.EOF) || errors.Is(e, io.ErrUnexpectedEOF) || e.Timeout() || e.Temporary() {
		t.Errorf("%v: Is %v, timeout %v", e, errors.Is(e, io.EOF), e.Timeout())
	}
	for _, cause := range []error{os.ErrDeadlineExceeded, context.DeadlineExceeded, &net.DNSError{IsTimeout: true}, &net.OpError{Err: os.ErrDeadlineExceeded}} {
		if e := (&connError{phase: phaseDial, cause: cause}); !e.Timeout() || e.code() != store.CodeConnect {
			t.Errorf("%v: timeout %v, code %v", e, e.Timeout(), e.code())
		}
	}
}

// TestTransportErrors: whatever comes from outside a connection, only what cannot follow a write is
// "not sent"; what nobody knows is not.
func TestTransportErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err       error
		certainty store.Certainty
		code      store.Code
	}{
		{errors.New("redis: can't parse \"x\""), store.Uncertain, store.CodeConnectionLost},
		{errors.New("redis: connection is not usable"), store.Uncertain, store.CodeConnectionLost},
		{io.EOF, store.Uncertain, store.CodeConnectionLost},
		{net.ErrClosed, store.Uncertain, store.CodeConnectionLost},
		{os.ErrDeadlineExceeded, store.Uncertain, store.CodeConnectionLost},
		{redis.ErrPoolTimeout, store.NotSent, store.CodePoolExhausted},
		{redis.ErrPoolExhausted, store.NotSent, store.CodePoolExhausted},
		{redis.ErrClosed, store.NotSent, store.CodeClosed},
		{context.DeadlineExceeded, store.NotSent, store.CodeDeadline},
		{context.Canceled, store.NotSent, store.CodeCanceled},
		{&greetingError{code: store.CodeServerVersion, cause: errStub}, store.NotSent, store.CodeServerVersion},
		{redis.ErrNoScript, store.NotSent, store.CodeHandshake},
	} {
		wantFailure(t, transportError("x", row.err), row.certainty, row.code)
	}
}

// TestLargeCommandHalfWritten: a server that stops reading in the middle of a command has part of it.
func TestLargeCommandHalfWritten(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	stopped := make(chan struct{})
	server.on("ACL", func(c *fakeConn, args []string) bool {
		healthy(c, args)
		<-stopped // Nothing is read any more.
		return false
	})
	args := fixedWindowArguments(1)
	args[0] = strings.Repeat("x", 32<<20)
	ctx, cancel := context.WithTimeout(t.Context(), 3*testTimeout)
	defer cancel()
	_, err := s.Eval(ctx, fixedWindow, []string{"key"}, args)
	wantFailure(t, asFailure(t, err), store.Uncertain, store.CodeDeadline)
	if err != nil && !strings.Contains(err.Error(), "write with ") {
		t.Errorf("the failure is not that of a write: %v", err)
	}
	close(stopped)
	if n := server.count("EVALSHA"); n != 0 {
		t.Errorf("%d receipts", n)
	}
	wantSane(t, server, s, 0)
}

// TestTLSCounts: what a TLS connection wrote is counted below TLS, where a record can go out in part.
func TestTLSCounts(t *testing.T) {
	t.Parallel()
	stub := &stubConn{room: 10, writeFailed: errStub}
	counter := &countingConn{Conn: stub}
	wire := &recordWriter{Conn: counter}
	c := &conn{raw: stub, wire: wire, counter: counter, dialer: &dialer{}}
	_, err := c.Write([]byte(evalCommand))
	wantFailure(t, transportError("x", err), store.Uncertain, store.CodeConnectionLost)
	if c.unread != 10 {
		t.Errorf("%d bytes counted, want 10", c.unread)
	}

	stub = &stubConn{writeFailed: errStub}
	counter = &countingConn{Conn: stub}
	c = &conn{raw: stub, wire: &recordWriter{Conn: counter}, counter: counter, dialer: &dialer{}}
	_, err = c.Write([]byte(evalCommand))
	wantFailure(t, transportError("x", err), store.NotSent, store.CodeConnectionLost)
}

// recordWriter reports nothing written where a record was not written whole, as TLS does.
type recordWriter struct{ net.Conn }

func (w *recordWriter) Write(b []byte) (int, error) {
	if _, err := w.Conn.Write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func TestIsGreeting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		helloCommand: true, "*1\r\n$5\r\nHELLO\r\n": true, "*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n": true, "*2\r\n$6\r\nselect\r\n$1\r\n0\r\n": true,
		"*1\r\n$6\r\nCLIENT\r\n": true, "*1\r\n$8\r\nreadonly\r\n": true, "*1\r\n$4\r\nINFO\r\n": true, "*1\r\n$3\r\nACL\r\n": true,
		evalCommand: false, "*1\r\n$4\r\nPING\r\n": false, "*1\r\n$4\r\nEVAL\r\n": false, "": false, "*1": false, "*1\r\n": false,
		"*1\r\n$5\r\nhello": false, "*1\r\n$5": false, "*1\r\n$6\r\nhellox\r\n": false,
	} {
		if got := isGreeting([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestConnForwards: addresses, deadlines and the descriptor are those of the TCP connection.
func TestConnForwards(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	d := &dialer{address: server.address(), timeout: 20 * testTimeout}
	made, err := d.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	c, ok := made.(*conn)
	if !ok {
		t.Fatalf("dialed a %T", made)
	}
	if c.RemoteAddr().String() != server.address() || c.LocalAddr().String() == server.address() {
		t.Errorf("from %v to %v", c.LocalAddr(), c.RemoteAddr())
	}
	if err := errors.Join(c.SetDeadline(time.Time{}), c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
		t.Error(err)
	}
	if _, err := c.SyscallConn(); err != nil {
		t.Error(err)
	}
	d.epoch.Add(1)
	if _, err := c.SyscallConn(); !errors.Is(err, errRetired) {
		t.Errorf("descriptor of an older epoch: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	stub := &stubConn{}
	if _, err := (&conn{raw: stub, wire: stub, dialer: &dialer{}}).SyscallConn(); err == nil {
		t.Error("a descriptor of a connection without one")
	}
	if _, err := (&countingConn{Conn: stub}).Write(nil); err != nil {
		t.Error(err)
	}
}

// TestDeadConn: a connection that could not be made gives the reason of the dial at every use.
func TestDeadConn(t *testing.T) {
	t.Parallel()
	d := &dialer{address: reservedAddress(t), timeout: 20 * testTimeout}
	c, err := d.dial(t.Context(), "", "")
	if err != nil {
		t.Fatalf("the dialer failed: %v", err)
	}
	_, written := c.Write([]byte(evalCommand))
	_, read := c.Read(make([]byte, 1))
	sc, ok := c.(syscall.Conn)
	if !ok {
		t.Fatal("no syscall.Conn: the pool would keep it")
	}
	_, raw := sc.SyscallConn()
	for _, err := range []error{written, read, raw} {
		wantFailure(t, transportError("x", err), store.NotSent, store.CodeConnect)
		if !strings.HasPrefix(err.Error(), "dial: ") {
			t.Errorf("text is %q", err)
		}
	}
	if err := errors.Join(c.SetDeadline(time.Time{}), c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{}), c.Close()); err != nil {
		t.Error(err)
	}
	if c.LocalAddr().Network() != "tcp" || c.RemoteAddr().String() != "none" {
		t.Errorf("addresses %v, %v", c.LocalAddr(), c.RemoteAddr())
	}
}
