package lanes

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyWithin bounds a start, with a loaded machine and an AOF to read in mind.
	readyWithin = 20 * time.Second
	// stopWithin is how long a server may take for SIGTERM before SIGKILL.
	stopWithin = 5 * time.Second
)

// daemon is a redis-server process, running or not. Its port, directory and
// arguments outlive a stop.
type daemon struct {
	options Options
	binary  string
	version version
	dir     string
	port    int
	addr    string
	end     func() // stops it for good and removes a directory of its own

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

// launch starts a server in dir; an empty dir is made and removed again.
func launch(options Options, dir string) (*daemon, error) {
	d := &daemon{options: options, binary: options.Binary, dir: dir}
	if d.binary == "" {
		var err error
		if d.binary, err = serverBinary(); err != nil {
			return nil, err
		}
	}
	var err error
	if d.version, err = binaryVersion(d.binary); err != nil {
		return nil, err
	}
	removeDir := func() {}
	if d.dir == "" {
		if d.dir, err = os.MkdirTemp("", "edgelimit-redis-"); err != nil {
			return nil, err
		}
		removeDir = func() { _ = os.RemoveAll(d.dir) }
	}
	d.end = atEnd(func() {
		_ = d.stop(syscall.SIGTERM)
		removeDir()
	})
	// Between finding a port and taking it someone else may take it.
	for range 5 {
		if d.port, err = freePort(); err != nil {
			break
		}
		d.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port))
		if err = d.start(); err == nil || !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		d.end()
		return nil, err
	}
	return d, nil
}

var errPortTaken = errors.New("the port was taken")

func (d *daemon) logFile() string { return filepath.Join(d.dir, "redis.log") }

func (d *daemon) tls() *tls.Config { return d.options.TLS }

// start runs the server and returns when it answers.
func (d *daemon) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isRunning() {
		return fmt.Errorf("redis-server %s runs already", d.addr)
	}
	port := strconv.Itoa(d.port)
	args := []string{"--port", port}
	if d.options.TLS != nil {
		args = []string{"--port", "0", "--tls-port", port}
	}
	args = append(args, "--bind", "127.0.0.1", "--dir", d.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	args = append(args, d.options.Args...)

	log, err := os.OpenFile(d.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(d.binary, args...)
	cmd.Env = append(os.Environ(), d.options.Env...)
	cmd.Dir = d.dir
	cmd.Stdout, cmd.Stderr = log, log
	if err := spawn(cmd); err != nil {
		return fmt.Errorf("start %s: %w", d.binary, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	d.cmd, d.exited = cmd, exited

	err = poll(readyWithin, exited, func() error {
		if !d.isRunning() {
			return errors.New("it ended")
		}
		return answers(d.addr, d.tls())
	})
	if err == nil && !d.isRunning() {
		err = errors.New("it ended while another server answered on its port")
	}
	if err == nil {
		return nil
	}
	tail := d.logTail()
	if d.isRunning() {
		_ = cmd.Process.Kill()
		<-exited
	}
	if strings.Contains(tail, "Address already in use") {
		return fmt.Errorf("%w: %s", errPortTaken, d.addr)
	}
	return fmt.Errorf("redis-server %s on %s is not ready: %w\n%s", d.binary, d.addr, err, tail)
}

// isRunning is for holders of the lock.
func (d *daemon) isRunning() bool {
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// stop ends the server with SIGTERM or SIGKILL and waits until it is gone.
// A server that has ended already is no error.
func (d *daemon) stop(how syscall.Signal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isRunning() {
		return nil
	}
	pid := d.cmd.Process.Pid
	if err := syscall.Kill(pid, how); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to redis-server %d: %w", how, pid, err)
	}
	// A paused server gets SIGTERM only when it goes on.
	_ = syscall.Kill(pid, syscall.SIGCONT)
	select {
	case <-d.exited:
		return nil
	case <-time.After(stopWithin):
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	<-d.exited
	return fmt.Errorf("redis-server %d needed SIGKILL after %v", pid, stopWithin)
}

// pause stops the process with SIGSTOP; it returns when it stands.
func (d *daemon) pause() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isRunning() {
		return fmt.Errorf("redis-server %s does not run", d.addr)
	}
	pid := d.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	return poll(stopWithin, d.exited, func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil // no such file system here: the signal was sent, more cannot be known
		}
		// pid (name) state: the name may hold blanks.
		_, rest, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(rest, "T") {
			return fmt.Errorf("process %d is in state %.1s", pid, rest)
		}
		return nil
	})
}

// resume lets a paused process go on.
func (d *daemon) resume() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isRunning() {
		return fmt.Errorf("redis-server %s does not run", d.addr)
	}
	return syscall.Kill(d.cmd.Process.Pid, syscall.SIGCONT)
}

// logTail is the end of what the server has written.
func (d *daemon) logTail() string {
	text, err := os.ReadFile(d.logFile())
	if err != nil {
		return err.Error()
	}
	const most = 2000
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return strings.TrimSpace(string(text))
}
