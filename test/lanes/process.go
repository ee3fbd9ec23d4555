package lanes

import (
	"crypto/tls"
	"fmt"
	"syscall"
	"testing"
)

// Options say how a private server differs from the usual one: loopback, a free
// port, a directory of its own, no persistence. The zero value is the usual one.
type Options struct {
	// Binary is a redis-server; empty means the one of the process lane.
	Binary string
	// Args are added to the command line and win over the usual ones, e.g.
	// "--maxmemory", "2mb", "--requirepass", "secret", "--appendonly", "yes".
	Args []string
	// Env is added to the environment of the server.
	Env []string
	// TLS makes the port a TLS port and is how the lane itself connects to see
	// that the server is ready; certificates are given in Args.
	TLS *tls.Config
}

// Process is a redis-server of one test. Its port and directory stay the same
// over a restart. It ends with the test.
type Process struct {
	// Addr is its host:port.
	Addr string
	// Port is the port of Addr.
	Port int
	// Dir is its working directory, where persistence files lie.
	Dir string
	// Product is "redis" or "valkey".
	Product string
	// Version is the product's own version, e.g. "7.0.15".
	Version string

	tb     testing.TB
	daemon *daemon
}

// StartProcess starts a redis-server for one test and returns when it answers.
func StartProcess(tb testing.TB, options Options) *Process {
	tb.Helper()
	requireMain(tb)
	p := start(tb, options)
	announce(fmt.Sprintf("lane private process: %s %s (%s)", p.Product, p.Version, p.daemon.binary))
	return p
}

func start(tb testing.TB, options Options) *Process {
	tb.Helper()
	d, err := launch(options, tb.TempDir())
	if err != nil {
		tb.Fatal(&missingError{what: "private redis-server", tried: []string{"a process: " + err.Error()}})
	}
	tb.Cleanup(d.end)
	return &Process{
		Addr: d.addr, Port: d.port, Dir: d.dir,
		Product: d.version.product, Version: d.version.number,
		tb: tb, daemon: d,
	}
}

// PID is the process ID of the server as it runs now, or ran last.
func (p *Process) PID() int {
	p.daemon.mu.Lock()
	defer p.daemon.mu.Unlock()
	return p.daemon.cmd.Process.Pid
}

// Stop ends the server in order (SIGTERM) and waits until it is gone.
func (p *Process) Stop() {
	p.tb.Helper()
	p.check("stop", p.daemon.stop(syscall.SIGTERM))
}

// Kill ends the server as a crash would (SIGKILL) and waits until it is gone.
func (p *Process) Kill() {
	p.tb.Helper()
	p.check("kill", p.daemon.stop(syscall.SIGKILL))
}

// Pause makes the server a black hole (SIGSTOP): connections are accepted by the
// kernel, and nothing is answered until Resume.
func (p *Process) Pause() {
	p.tb.Helper()
	p.check("pause", p.daemon.pause())
}

// Resume ends a Pause; what was sent meanwhile is then executed.
func (p *Process) Resume() {
	p.tb.Helper()
	p.check("resume", p.daemon.resume())
}

// Restart stops the server if it runs and starts it again on the same port, in
// the same directory, with the same arguments. It returns when the server
// answers.
func (p *Process) Restart() {
	p.tb.Helper()
	p.check("stop for a restart", p.daemon.stop(syscall.SIGTERM))
	p.check("restart", p.daemon.start())
}

// Running tells whether the process is there, paused or not.
func (p *Process) Running() bool {
	p.daemon.mu.Lock()
	defer p.daemon.mu.Unlock()
	return p.daemon.isRunning()
}

// Log is the end of the server's log.
func (p *Process) Log() string { return p.daemon.logTail() }

func (p *Process) check(what string, err error) {
	p.tb.Helper()
	if err != nil {
		p.tb.Errorf("lanes: %s redis-server %s: %v", what, p.Addr, err)
	}
}
