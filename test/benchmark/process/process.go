// Package process starts the servers that a benchmark measures, and ends them with it.
package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// stopTimeout bounds how long a program may take to end in order.
const stopTimeout = 15 * time.Second

// Process is a program that was started.
type Process struct {
	command *exec.Cmd
	output  head
	ended   chan struct{}
}

// Start starts a program with variables added to the environment.
func Start(path string, args, variables []string) (*Process, error) {
	p := &Process{command: exec.Command(path, args...), ended: make(chan struct{})} //nolint:gosec // G204: the user's own choice.
	p.command.Env = append(os.Environ(), variables...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	p.command.SysProcAttr = attributes()
	started := make(chan error)
	// The kernel ends a program when the thread that started it ends, so that thread lives as long.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait() // What it says of its own end is in the output.
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	return p, nil
}

// PID is the process's ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Ended is closed once the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Output is the beginning of what it wrote.
func (p *Process) Output() string { return p.output.String() }

// Stop asks the process to end, and makes it end when it does not.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(os.Interrupt) // It may be gone already.
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// mostOutput bounds what is kept of an output.
const mostOutput = 32 << 10

// head keeps the beginning of what is written. It is safe for concurrent use.
type head struct {
	mu   sync.Mutex
	kept []byte
}

// Write keeps what there is room for, and never fails.
func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, b[:min(len(b), mostOutput-len(h.kept))]...)
	return len(b), nil
}

// String gives what was kept.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.kept)
}

// FreeAddress is a loopback address that nothing listens on.
func FreeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	return address, errors.Join(listener.Close())
}
