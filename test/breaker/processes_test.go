package breaker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// process is a child and the two ends of its line protocol.
type process struct {
	t       *testing.T
	name    string
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

var namespaces atomic.Int64

// fleet is what the processes of one test share.
type fleet struct {
	t         *testing.T
	address   string
	namespace string
}

func newFleet(t *testing.T, server *lanes.Server) *fleet {
	t.Helper()
	f := &fleet{t: t, address: server.Addr, namespace: fmt.Sprintf("breaker-%d-%d", os.Getpid(), namespaces.Add(1))}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		client := redis.NewClient(&redis.Options{Addr: f.address, Protocol: 2, DisableIdentity: true})
		defer func() { _ = client.Close() }()
		keys := client.Scan(ctx, 0, "edgelimit:"+f.namespace+":*", 1000).Iterator()
		for keys.Next(ctx) {
			if err := client.Del(ctx, keys.Val()).Err(); err != nil {
				t.Errorf("remove: %v", err)
			}
		}
	})
	return f
}

// start runs this test binary again, as an instance whose clock is off by skew.
func (f *fleet) start(name string, skew time.Duration) *process {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	command := exec.CommandContext(f.t.Context(), self, "-test.run=^TestChild$", "-test.timeout=2m")
	command.Env = append(os.Environ(), childAddress+"="+f.address, childNamespace+"="+f.namespace, childSkew+"="+skew.String())
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		f.t.Fatal(err)
	}
	p := &process{t: f.t, name: name, command: command, in: in, out: bufio.NewReader(out)}
	f.t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	if _, err := fmt.Fprintln(in, time.Now().UnixMilli()); err != nil {
		f.t.Fatal(err)
	}
	if line := p.line(); line != "READY" {
		f.t.Fatalf("%s: %q", name, line)
	}
	// What it is told to be off by, it is.
	now, err := strconv.ParseInt(p.ask("now"), 10, 64)
	if off := time.Duration(now-time.Now().UnixMilli()) * time.Millisecond; err != nil || off < skew-2*time.Second || off > skew+time.Second {
		f.t.Fatalf("%s: its clock is off by %v, want %v (%v)", name, off, skew, err)
	}
	return p
}

func (p *process) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%s: %q, %v", p.name, line, err)
	}
	return strings.TrimSpace(line)
}

func (p *process) ask(command string) string {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, "%d %s\n", time.Now().UnixMilli(), command); err != nil {
		p.t.Fatalf("%s: %s: %v", p.name, command, err)
	}
	answer := p.line()
	if strings.HasPrefix(answer, "ERROR") {
		p.t.Fatalf("%s: %s: %s", p.name, command, answer)
	}
	return answer
}

// permit acquires and requires a permit of this kind, and gives its number.
func (p *process) permit(kind string) string {
	p.t.Helper()
	answer := p.ask("acquire")
	number, ok := strings.CutPrefix(answer, kind+" ")
	if !ok {
		p.t.Fatalf("%s: acquire: %s, want a %s", p.name, answer, kind)
	}
	return number
}

// rejected acquires and requires rejection in this state, and gives the wait.
func (p *process) rejected(state string, most time.Duration) time.Duration {
	p.t.Helper()
	answer := p.ask("acquire")
	number, ok := strings.CutPrefix(answer, "REJECTED "+state+" ")
	ms, err := strconv.ParseInt(number, 10, 64)
	wait := time.Duration(ms) * time.Millisecond
	if !ok || err != nil || wait < time.Millisecond || wait > most {
		p.t.Fatalf("%s: acquire: %s, want a rejection in %s for %v at most", p.name, answer, state, most)
	}
	return wait
}

func (p *process) record(number, result, want string) {
	p.t.Helper()
	if answer := p.ask("record " + number + " " + result); answer != want {
		p.t.Fatalf("%s: record %s: %s, want %s", p.name, result, answer, want)
	}
}

// kill ends the process as a machine that loses its power does.
func (p *process) kill() {
	p.t.Helper()
	if err := p.command.Process.Kill(); err != nil { // SIGKILL
		p.t.Fatal(err)
	}
	if _, err := p.out.ReadString('\n'); err == nil {
		p.t.Fatalf("%s still talks", p.name)
	}
}

// agree asks each process once and requires one answer of all: the state, since when, what is counted.
func agree(t *testing.T, state string, processes ...*process) {
	t.Helper()
	first := ""
	for _, p := range processes {
		answer := p.ask("read")
		if first == "" {
			first = answer
		}
		if answer != first || !strings.HasPrefix(answer, state+" ") {
			t.Fatalf("%s says %q, %s says %q, want %s", processes[0].name, first, p.name, answer, state)
		}
	}
}

// becomes waits until a process sees a state that comes by time alone.
func (p *process) becomes(state string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.HasPrefix(p.ask("read"), state+" ") {
			return
		}
	}
	p.t.Fatalf("%s never sees %s", p.name, state)
}

// TestProcessesShareABreaker: two processes, then a third, over one Redis: a trip that both have part
// in, probes, a holder that is killed, recovery. After each step the next evaluation of every process
// tells the same. One of them has a clock that is off, or none. Casebook 30 and 31.
func TestProcessesShareABreaker(t *testing.T) {
	const openTimeout, lease = 2 * time.Second, 4 * time.Second
	for _, server := range lanes.All(t) {
		for _, skew := range []time.Duration{0, 7 * time.Second, -7 * time.Second} {
			t.Run(fmt.Sprintf("%s %s clock off by %v", server.Product, server.Version, skew), func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, server)
				a, b := f.start("a", 0), f.start("b", skew)
				agree(t, "closed", a, b)

				// The trip: neither of the two alone has failed often enough.
				late := a.permit("CALL")
				a.record(a.permit("CALL"), "FAILURE", "COUNTED closed closed")
				agree(t, "closed", a, b)
				b.record(b.permit("CALL"), "FAILURE", "COUNTED closed closed")
				agree(t, "closed", b, a)
				a.record(a.permit("CALL"), "FAILURE", "COUNTED closed open")
				b.rejected("open", openTimeout)
				a.record(late, "FAILURE", "LATE open open")

				// The probe: one, whoever asks first, by the server's clock.
				wait := b.rejected("open", openTimeout)
				began := time.Now()
				b.becomes("half-open")
				if took := time.Since(began); took > wait+5*time.Second {
					t.Errorf("half-open after %v, the rejection said %v", took, wait)
				}
				agree(t, "half-open", a, b)
				a.permit("PROBE")
				agree(t, "half-open", b, a)
				b.rejected("half-open", lease)

				// Its holder dies. Nothing is told; the lease alone gives the slot back.
				a.kill()
				wait = b.rejected("half-open", lease)
				c := f.start("c", 0)
				agree(t, "half-open", b, c)
				time.Sleep(wait) // Real time must pass on the server; polling would be asking earlier.
				probe := b.permit("PROBE")
				agree(t, "half-open", c, b)
				c.rejected("half-open", lease)

				// Recovery.
				b.record(probe, "SUCCESS", "COUNTED half-open closed")
				agree(t, "closed", c, b)
				c.record(c.permit("CALL"), "SUCCESS", "COUNTED closed closed")
				agree(t, "closed", b, c)
			})
		}
	}
}
