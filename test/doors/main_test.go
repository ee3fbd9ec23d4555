//go:build doors

package doors

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// patience bounds what only a machine under load can delay.
const patience = 60 * time.Second

// root is the repository, seen from this package.
var root = filepath.Join("..", "..")

func TestMain(m *testing.M) {
	code := lanes.Main(m)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is edgelimit, made with the first test that needs it.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func edgelimit(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "edgelimit-doors-"); built.err != nil { //nolint:usetesting // every test of the package runs it
			return
		}
		build := exec.Command("go", "build", "-o", filepath.Join(built.dir, "edgelimit"), "./cmd/edgelimit")
		build.Dir = root
		if output, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%v: %w\n%s", build.Args, err, output)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "edgelimit")
}

// installed gives the path of a program, or fails with the line that installs it.
func installed(t *testing.T, name, debianPackage string) string {
	t.Helper()
	// Debian puts nginx where only root looks.
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin") {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	t.Fatalf("%s is missing; install it with: apt-get install -y --no-install-recommends %s", name, debianPackage)
	return ""
}

// Ports lie below the range that the kernel takes outgoing ports from, and apart from those of
// package lanes.
const (
	firstPort = 15000
	portCount = 4000
)

var portsGiven atomic.Uint32

// freePort is a loopback port that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	for range 200 {
		step := uint64(portsGiven.Add(1))
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+int((uint64(os.Getpid())*37+step)%portCount)))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no free loopback port")
	return ""
}

// program is a running process.
type program struct {
	t       *testing.T
	name    string
	cmd     *exec.Cmd
	logFile string
	exited  chan struct{}
}

// start starts a command that is ended with its test.
func start(t *testing.T, name string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, name: name, cmd: cmd, logFile: filepath.Join(t.TempDir(), name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	if err := lanes.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.end)
	return p
}

// end kills the process and waits for it.
func (p *program) end() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *program) log() string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

// running fails the test where the process has ended by itself.
func (p *program) running() {
	p.t.Helper()
	select {
	case <-p.exited:
		p.t.Fatalf("%s ended: %s", p.name, p.log())
	default:
	}
}

// example copies a file of docs/examples into a directory, with addresses put in the place of those
// that are written in it. Each of them must be there.
func example(t *testing.T, dir, path string, addresses map[string]string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "examples", path))
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for written, actual := range addresses {
		if !strings.Contains(string(content), written) {
			t.Fatalf("%s does not have %s", path, written)
		}
		pairs = append(pairs, written, actual)
	}
	copied := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(copied, []byte(strings.NewReplacer(pairs...).Replace(string(content))), 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}

// eventually polls until check gives nil, and fails the test with its last reason.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
