package service

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/console"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// patience bounds what only a machine under load can delay.
const patience = 60 * time.Second

// root is the repository, seen from this package.
var root = filepath.Join("..", "..")

// asCurl makes a copy of the test binary the curl of a machine that has none.
const asCurl = "EDGELIMIT_TEST_CURL"

func TestMain(m *testing.M) {
	if os.Getenv(asCurl) != "" {
		os.Exit(console.CurlMain(os.Args[1:], os.Stdout, os.Stderr))
	}
	code := lanes.Main(m)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is the program, made with the first test that needs it.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// program gives the path of the program.
func program(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "edgelimit-service-"); built.err != nil { //nolint:usetesting // every test of the package runs it
			return
		}
		build := exec.Command("go", "build", raceFlag, "-o", filepath.Join(built.dir, "edgelimit"), "./cmd/edgelimit")
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

// environ is the environment of a program: the test's own without what would configure it.
func environ(variables ...string) []string {
	var all []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "EDGELIMIT_APP__") {
			all = append(all, variable)
		}
	}
	return append(all, variables...)
}

var namespaces atomic.Int64

// namespace is one of this test alone, so that it can share a Redis.
func namespace() string {
	return fmt.Sprintf("service-%d-%d", os.Getpid(), namespaces.Add(1))
}

// eventually polls until check gives nil, and fails the test with its last reason.
func eventually(t testing.TB, what string, check func() error) {
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
