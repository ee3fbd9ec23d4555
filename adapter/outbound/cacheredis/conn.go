package cacheredis

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// phase is how far a connection has come.
type phase uint8

const (
	phaseInvalid phase = iota
	// phaseDial: no connection was made.
	phaseDial
	// phaseTLS: the TLS handshake failed.
	phaseTLS
	// phaseGreeting: nothing but the greeting was written.
	phaseGreeting
	// phaseCommand: a command was, or was about to be, written.
	phaseCommand
)

// connError is the failure of one operation on a connection: where it was and how many bytes of
// unanswered commands had left by then. It has no Unwrap: go-redis strips one level from the errors
// of a greeting, and what stood below would look like a failure of another phase.
type connError struct {
	phase  phase
	read   bool  // the failure of a read
	unread int64 // bytes of commands written and not yet answered
	cause  error
}

var _ net.Error = (*connError)(nil)

func (e *connError) Error() string {
	operation := "write"
	if e.read {
		operation = "read"
	}
	switch e.phase {
	case phaseDial:
		return "dial: " + e.cause.Error()
	case phaseTLS:
		return "tls: " + e.cause.Error()
	case phaseGreeting:
		return "greeting: " + operation + ": " + e.cause.Error()
	case phaseCommand, phaseInvalid:
	}
	return fmt.Sprintf("%s with %d bytes unanswered: %v", operation, e.unread, e.cause)
}

// Timeout makes a connError a net.Error.
func (e *connError) Timeout() bool {
	var ne net.Error
	return errors.Is(e.cause, os.ErrDeadlineExceeded) || errors.Is(e.cause, context.DeadlineExceeded) ||
		errors.As(e.cause, &ne) && ne.Timeout()
}

// Temporary makes a connError a net.Error.
func (e *connError) Temporary() bool { return false }

// Is reports whether the cause is target.
func (e *connError) Is(target error) bool { return errors.Is(e.cause, target) }

// notSent reports whether no byte of a command can have reached the server.
func (e *connError) notSent() bool {
	return e.phase != phaseCommand || !e.read && e.unread == 0
}

// code says why, for a failure of which notSent is known.
func (e *connError) code() store.Code {
	switch e.phase {
	case phaseDial:
		return store.CodeConnect
	case phaseTLS:
		return store.CodeTLS
	case phaseGreeting:
		return store.CodeHandshake
	case phaseCommand, phaseInvalid:
	}
	if e.Timeout() {
		return store.CodeDeadline
	}
	return store.CodeConnectionLost
}

// dialer makes connections for go-redis. It never fails: a dial that failed gives a connection whose
// every use gives the reason. So the pool does not count it as a failed dial, after a few of which
// it would hold back new ones for up to a second.
type dialer struct {
	address string
	timeout time.Duration
	tls     *tls.Config
	// epoch is raised when the server turns out to be a replica: connections of an older epoch are
	// not used again.
	epoch atomic.Int64
}

func (d *dialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	epoch := d.epoch.Load()
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	raw, err := (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return &deadConn{err: &connError{phase: phaseDial, cause: err}}, nil
	}
	c := &conn{raw: raw, wire: raw, dialer: d, epoch: epoch}
	if d.tls == nil {
		return c, nil
	}
	// The counter stands below TLS: a record that was written in part counts as sent.
	counter := &countingConn{Conn: raw}
	secure := tls.Client(counter, d.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // The handshake's error is the one to report.
		return &deadConn{err: &connError{phase: phaseTLS, cause: err}}, nil
	}
	c.wire, c.counter = secure, counter
	return c, nil
}

// countingConn counts the bytes that reached the kernel.
type countingConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// greetingCommands are what go-redis and the greeting of this package send on a new connection.
var greetingCommands = [][]byte{
	[]byte("HELLO"), []byte("AUTH"), []byte("SELECT"), []byte("CLIENT"), []byte("READONLY"), []byte("INFO"), []byte("ACL"),
}

// isGreeting reports whether the first command in b is one of a greeting. go-redis writes whole
// commands, as arrays of bulk strings.
func isGreeting(b []byte) bool {
	_, rest, ok := bytes.Cut(b, []byte("\r\n")) // *<count>
	if !ok {
		return false
	}
	_, rest, ok = bytes.Cut(rest, []byte("\r\n")) // $<length>
	if !ok {
		return false
	}
	name, _, ok := bytes.Cut(rest, []byte("\r\n"))
	if !ok {
		return false
	}
	for _, c := range greetingCommands {
		if bytes.EqualFold(name, c) {
			return true
		}
	}
	return false
}

// conn is a connection that knows what it wrote. It is used by one goroutine at a time, as the pool
// guarantees, but for Close.
type conn struct {
	raw     net.Conn // TCP
	wire    net.Conn // what commands are written to: raw, or TLS over counter over raw
	counter *countingConn
	dialer  *dialer
	epoch   int64
	// commands is set with the first command that is not of the greeting.
	commands bool
	unread   int64 // bytes of commands written since the last successful read
	guard    replyGuard
}

var (
	_ net.Conn     = (*conn)(nil)
	_ syscall.Conn = (*conn)(nil)
)

func (c *conn) fail(read bool, err error) error {
	p := phaseGreeting
	if c.commands {
		p = phaseCommand
	}
	return &connError{phase: p, read: read, unread: c.unread, cause: err}
}

// Write writes b and counts.
func (c *conn) Write(b []byte) (int, error) {
	if !c.commands && !isGreeting(b) {
		c.commands = true
		c.unread = 0
	}
	c.guard = replyGuard{}
	var before int64
	if c.counter != nil {
		before = c.counter.written.Load()
	}
	n, err := c.wire.Write(b)
	if c.counter != nil {
		c.unread += c.counter.written.Load() - before
	} else {
		c.unread += int64(n)
	}
	if err != nil {
		return n, c.fail(false, err)
	}
	return n, nil
}

// Read reads into b.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.wire.Read(b)
	if err != nil {
		return n, c.fail(true, err)
	}
	if err := c.guard.check(b[:n]); err != nil {
		return 0, c.fail(true, err)
	}
	c.unread = 0
	return n, nil
}

// Close closes the connection.
func (c *conn) Close() error { return c.wire.Close() }

// LocalAddr is the local address.
func (c *conn) LocalAddr() net.Addr { return c.raw.LocalAddr() }

// RemoteAddr is the server's address.
func (c *conn) RemoteAddr() net.Addr { return c.raw.RemoteAddr() }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.wire.SetDeadline(t); err != nil {
		return c.fail(false, err)
	}
	return nil
}

// SetReadDeadline sets the deadline of reads. Its failure is that of a read: the command was written.
func (c *conn) SetReadDeadline(t time.Time) error {
	if err := c.wire.SetReadDeadline(t); err != nil {
		return c.fail(true, err)
	}
	return nil
}

// SetWriteDeadline sets the deadline of writes.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if err := c.wire.SetWriteDeadline(t); err != nil {
		return c.fail(false, err)
	}
	return nil
}

var errRetired = errors.New("cacheredis: connection of an older epoch")

// SyscallConn lets the pool look whether an idle connection is still open and silent. It fails for a
// connection of an older epoch, which the pool then closes.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if c.epoch != c.dialer.epoch.Load() {
		return nil, errRetired
	}
	sc, ok := c.raw.(syscall.Conn)
	if !ok {
		return nil, errors.New("cacheredis: connection without a descriptor")
	}
	return sc.SyscallConn()
}

// deadConn stands for a connection that could not be made.
type deadConn struct{ err *connError }

var (
	_ net.Conn     = (*deadConn)(nil)
	_ syscall.Conn = (*deadConn)(nil)
)

type noAddr struct{}

func (noAddr) Network() string { return "tcp" }
func (noAddr) String() string  { return "none" }

// Read fails with the reason of the dial.
func (d *deadConn) Read([]byte) (int, error) { return 0, d.err }

// Write fails with the reason of the dial.
func (d *deadConn) Write([]byte) (int, error) { return 0, d.err }

// Close does nothing.
func (d *deadConn) Close() error { return nil }

// LocalAddr is no address.
func (d *deadConn) LocalAddr() net.Addr { return noAddr{} }

// RemoteAddr is no address.
func (d *deadConn) RemoteAddr() net.Addr { return noAddr{} }

// SetDeadline does nothing.
func (d *deadConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (d *deadConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (d *deadConn) SetWriteDeadline(time.Time) error { return nil }

// SyscallConn fails, so that the pool does not keep it for another caller.
func (d *deadConn) SyscallConn() (syscall.RawConn, error) { return nil, d.err }
