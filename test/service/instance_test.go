package service

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// secret is what keys and digests are made with.
const secret = "an-hmac-secret-of-the-service-tests"

// settings are a configuration on Redis. What is empty has a value that suits a slow machine.
type settings struct {
	address   string
	namespace string
	timeout   time.Duration // of a command
	redis     string        // further keys of the section redis, each after a comma
	policies  string        // one policy a line; the first is the default
	log       string        // level
}

// file writes the configuration.
func (s settings) file(t testing.TB) string {
	t.Helper()
	policies := strings.TrimSpace(s.policies)
	first, _, _ := strings.Cut(policies, ":")
	text := fmt.Sprintf(`app:
  rate-limit:
    enabled: true
    provider: redis
    default-policy: %s
    redis: {address: "%s", command-timeout: %v, pool-size: 16%s}
    key: {namespace: %s, hmac-secret: %s}
    policies:
      %s
  service:
    http-address: 127.0.0.1:0
    default-deadline: 15s
    max-deadline: 20s
    shutdown-timeout: 20s
    log-level: %s
`, first, s.address, cmp.Or(s.timeout, 10*time.Second), s.redis, s.namespace, secret,
		strings.ReplaceAll(policies, "\n", "\n      "), cmp.Or(s.log, "info"))
	path := filepath.Join(t.TempDir(), "edgelimit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// instance is one running `edgelimit serve`.
type instance struct {
	url     string
	logFile string

	t      testing.TB
	cmd    *exec.Cmd
	exited chan struct{}
}

var listening = regexp.MustCompile(`msg=listening address=(\S+)`)

// serve starts an instance and returns when it listens. It is stopped at the test's end at the latest,
// and must then end as it should.
func serve(t testing.TB, config string, variables ...string) *instance {
	t.Helper()
	s := &instance{t: t, logFile: filepath.Join(t.TempDir(), "serve.log"), exited: make(chan struct{})}
	log, err := os.Create(s.logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	s.cmd = exec.Command(program(t), "serve", "--config", config)
	s.cmd.Env = environ(variables...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := lanes.Spawn(s.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	t.Cleanup(func() {
		s.stop()
		s.sound()
	})
	eventually(t, "serve listens", func() error {
		if m := listening.FindStringSubmatch(s.log()); m != nil {
			s.url = "http://" + m[1]
			return nil
		}
		if s.ended() {
			t.Fatalf("serve ended with %d: %s", s.cmd.ProcessState.ExitCode(), s.log())
		}
		return errors.New(s.log())
	})
	return s
}

// serveReady starts an instance and returns when it is ready.
func serveReady(t testing.TB, config string, variables ...string) *instance {
	t.Helper()
	s := serve(t, config, variables...)
	s.awaitReady()
	return s
}

func (s *instance) awaitReady() {
	s.t.Helper()
	eventually(s.t, "readyz", func() error {
		if status, body := s.get("/readyz"); status != 200 {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
}

func (s *instance) log() string {
	text, err := os.ReadFile(s.logFile)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *instance) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

func (s *instance) signal(what syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(what); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("signal %v: %v", what, err)
	}
}

// wait waits for the end and gives the exit code. An instance that does not end is ended.
func (s *instance) wait() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Errorf("serve does not end: %s", s.log())
		s.signal(syscall.SIGKILL)
		<-s.exited
	}
	return s.cmd.ProcessState.ExitCode()
}

// stop ends an instance that runs with SIGTERM, and holds it to exit code 0.
func (s *instance) stop() {
	s.t.Helper()
	if s.ended() {
		return
	}
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		s.t.Errorf("exit code %d: %s", code, s.log())
	}
}

// sound holds the log of an instance that has ended to what no instance may write. The stacks that a
// test asked for with SIGQUIT are no part of it: they name the runtime's own files, panic.go among them.
func (s *instance) sound() {
	s.t.Helper()
	log, _, _ := strings.Cut(s.log(), "\nSIGQUIT: quit\n")
	for _, fault := range []string{"DATA RACE", "panic", "fatal error", "level=ERROR"} {
		if strings.Contains(log, fault) {
			s.t.Errorf("%s in the log: %s", fault, s.log())
		}
	}
}
