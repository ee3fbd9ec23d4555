package lanes

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func mustAsk(t *testing.T, addr string, command ...string) any {
	t.Helper()
	reply, err := ask(addr, nil, command...)
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return reply
}

func TestAPrivateServerStopsAndComesBackOnItsPort(t *testing.T) {
	t.Parallel()
	p := StartProcess(t, Options{})
	addr, pid := p.Addr, p.PID()
	mustAsk(t, addr, "SET", "k", "v")

	p.Stop()
	if p.Running() {
		t.Error("runs after Stop")
	}
	if err := answers(addr, nil); err == nil {
		t.Error("answers after Stop")
	}
	p.Restart()
	if p.Addr != addr || p.PID() == pid {
		t.Errorf("restarted on %s as %d, was %s as %d", p.Addr, p.PID(), addr, pid)
	}
	if got := mustAsk(t, addr, "EXISTS", "k"); got != int64(0) {
		t.Errorf("a server without persistence kept a key: %v", got)
	}
	p.Kill()
	if p.Running() {
		t.Error("runs after Kill")
	}
	p.Restart()
	p.Restart() // of a running one
	mustAsk(t, addr, "PING")
}

func TestAPausedServerIsSilentAndExecutesLater(t *testing.T) {
	t.Parallel()
	p := StartProcess(t, Options{})
	p.Pause()
	answered := make(chan error, 1)
	go func() {
		_, err := ask(p.Addr, nil, "SET", "k", "v")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a paused server answered: %v", err)
	case <-time.After(50 * time.Millisecond): // silence can only be waited for
	}
	p.Resume()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	p.Pause()
	p.Stop() // a paused server can be stopped too
}

func TestArgumentsWinOverTheUsualOnes(t *testing.T) {
	t.Parallel()
	p := StartProcess(t, Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always", "--maxmemory", "7mb"}})
	mustAsk(t, p.Addr, "SET", "k", "v")
	p.Kill()
	p.Restart()
	if got := mustAsk(t, p.Addr, "GET", "k"); got != "v" {
		t.Errorf("with an AOF GET gave %v", got)
	}
	config, ok := mustAsk(t, p.Addr, "CONFIG", "GET", "maxmemory").([]any)
	if !ok || len(config) != 2 || config[1] != "7340032" {
		t.Errorf("maxmemory is %v", config)
	}
}

func TestAServerWithAPasswordIsReady(t *testing.T) {
	t.Parallel()
	p := StartProcess(t, Options{Args: []string{"--requirepass", "secret"}})
	_, err := ask(p.Addr, nil, "GET", "k")
	var refusal replyError
	if !errors.As(err, &refusal) || !strings.HasPrefix(string(refusal), "NOAUTH") {
		t.Errorf("GET without a password: %v", err)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := launch(Options{Args: []string{"--no-such-directive", "1"}}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") {
		t.Errorf("got %v", err)
	}
}
