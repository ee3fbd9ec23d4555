package lanes

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
)

// running holds how each server of this test process is ended.
var running struct {
	sync.Mutex
	underMain bool
	next      int
	ends      map[int]func()
}

// Main runs the tests of a package and then ends every server that was started
// for them: containers by their ID, processes by their process ID. It returns
// the exit code for os.Exit.
func Main(m *testing.M) int {
	if os.Getenv(reapEnv) != "" {
		return reap(os.Stdin)
	}
	running.Lock()
	running.underMain = true
	running.Unlock()
	defer endAll() // also while a panic unwinds

	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	go func() {
		if _, ok := <-interrupts; ok {
			endAll()
			os.Exit(130)
		}
	}()
	return m.Run()
}

// requireMain fails a test whose package would leave servers behind.
func requireMain(tb testing.TB) {
	tb.Helper()
	running.Lock()
	defer running.Unlock()
	if !running.underMain {
		tb.Fatal("lanes: the package needs: func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }")
	}
}

// atEnd registers how something is ended and returns the call that does so now.
// It is done once, whoever comes first.
func atEnd(end func()) (now func()) {
	running.Lock()
	defer running.Unlock()
	if running.ends == nil {
		running.ends = make(map[int]func())
	}
	id := running.next
	running.next++
	end = sync.OnceFunc(end)
	running.ends[id] = end
	return func() {
		end()
		running.Lock()
		defer running.Unlock()
		delete(running.ends, id)
	}
}

func endAll() {
	running.Lock()
	ends := make([]func(), 0, len(running.ends))
	for _, end := range running.ends {
		ends = append(ends, end)
	}
	running.ends = nil
	running.Unlock()

	var wait sync.WaitGroup
	for _, end := range ends {
		wait.Go(end)
	}
	wait.Wait()
}
