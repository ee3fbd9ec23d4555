package lanes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// OffsetServer is a redis-server whose clock runs on at a distance from the machine's, which a test
// sets. A [ClockServer] stands still; this one is for tests in which time passes and then steps.
type OffsetServer struct {
	*Process

	file string
	mu   sync.Mutex
}

// offsetSlack is what libfaketime loses or adds where it adds a fraction of a second to the time.
const offsetSlack = time.Millisecond

// StartOffset starts a redis-server for one test under libfaketime, with further arguments for its
// command line. Its clock is the machine's until SetOffset.
func StartOffset(tb testing.TB, args ...string) *OffsetServer {
	tb.Helper()
	requireMain(tb)
	library, err := faketimeLibrary()
	if err != nil {
		tb.Fatal(&missingError{what: "libfaketime", tried: []string{"Debian's package: " + err.Error()}})
	}
	c := &OffsetServer{file: filepath.Join(tb.TempDir(), "offset")}
	if err := c.write(0); err != nil {
		tb.Fatal(err)
	}
	c.Process = start(tb, Options{Args: args, Env: faketimeEnv(library, c.file)})
	announce(fmt.Sprintf("lane offset clock: %s %s (%s under %s)", c.Product, c.Version, c.daemon.binary, library))
	return c
}

// SetOffset moves the server's clock to d from the machine's, forward or back, with a resolution of a
// millisecond. It returns when the server's TIME shows it, and so needs a server that answers.
func (c *OffsetServer) SetOffset(d time.Duration) {
	c.tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.write(d)
	if err == nil {
		err = poll(wireTimeout, nil, func() error {
			from := time.Now().Add(d - offsetSlack)
			shown, err := serverTime(c.Addr)
			if err != nil {
				return err
			}
			if to := time.Now().Add(d + offsetSlack); shown.Before(from) || shown.After(to) {
				return fmt.Errorf("TIME shows %v, want %v..%v", shown, from, to)
			}
			return nil
		})
	}
	c.check("set the offset of the clock of", err)
}

// write replaces the file that libfaketime reads with each look at the clock.
func (c *OffsetServer) write(d time.Duration) error {
	line := "+0\n"
	if d != 0 {
		line = strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s\n"
	}
	if d > 0 {
		line = "+" + line
	}
	next := c.file + ".next"
	if err := os.WriteFile(next, []byte(line), 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}
