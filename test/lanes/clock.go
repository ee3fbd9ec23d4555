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

// ClockServer is a redis-server whose clock stands still at the time that was
// set last. TIME, PTTL and expiry follow it, in both directions.
type ClockServer struct {
	*Process

	file string
	mu   sync.Mutex
	now  time.Time
}

// clockStart is where the clock of a new server stands. It is fixed, so that a
// test gives the same numbers every day.
var clockStart = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// StartFaketime starts a redis-server for one test under libfaketime, with
// further arguments for its command line. Its clock stands at the beginning of
// 2030, UTC.
func StartFaketime(tb testing.TB, args ...string) *ClockServer {
	tb.Helper()
	requireMain(tb)
	library, err := faketimeLibrary()
	if err != nil {
		tb.Fatal(&missingError{what: "libfaketime", tried: []string{"Debian's package: " + err.Error()}})
	}
	c := &ClockServer{file: filepath.Join(tb.TempDir(), "now")}
	if err := c.write(clockStart); err != nil {
		tb.Fatal(err)
	}
	c.Process = start(tb, Options{
		Args: args,
		Env:  faketimeEnv(library, c.file),
	})
	if err := c.arrived(clockStart); err != nil {
		tb.Fatalf("lanes: libfaketime %s has no effect on %s: %v\n%s", library, c.daemon.binary, err, c.Log())
	}
	announce(fmt.Sprintf("lane clock: %s %s (%s under %s)", c.Product, c.Version, c.daemon.binary, library))
	return c
}

// faketimeEnv is the environment of a server whose clock libfaketime reads from a file.
func faketimeEnv(library, file string) []string {
	return []string{
		// libc after libfaketime, so that malloc is libc's: Debian's server
		// brings jemalloc, which reads the clock while it initializes and
		// waits for itself when libfaketime, looking up the real clock,
		// allocates.
		"LD_PRELOAD=" + library + ":libc.so.6",
		"FAKETIME_TIMESTAMP_FILE=" + file,
		"FAKETIME_NO_CACHE=1",
		// The event loop goes on by the monotonic clock.
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
		// The file holds local time.
		"TZ=UTC",
	}
}

// SetTime moves the server's clock to t, forward or back, with a resolution of a
// microsecond. It returns when the server's TIME shows it.
func (c *ClockServer) SetTime(t time.Time) {
	c.tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(t)
}

// Advance moves the server's clock by d, which may be negative.
func (c *ClockServer) Advance(d time.Duration) {
	c.tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.now.Add(d))
}

// Now is the time at which the server's clock stands.
func (c *ClockServer) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// set is for holders of the lock.
func (c *ClockServer) set(t time.Time) {
	c.tb.Helper()
	err := c.write(t)
	if err == nil {
		err = c.arrived(c.now)
	}
	c.check("set the clock of", err)
}

// write replaces the file that libfaketime reads with each look at the clock;
// a rename, so that it never reads half a line.
func (c *ClockServer) write(t time.Time) error {
	t = t.UTC().Truncate(time.Microsecond)
	if t.Year() < 1971 || t.Year() > 2200 {
		return fmt.Errorf("%v is no time for a server", t)
	}
	// libfaketime reads the fraction as a float and cuts it off: half a
	// microsecond more keeps .000065 from becoming .000064.
	line := t.Add(500*time.Nanosecond).Format("2006-01-02 15:04:05.000000000") + "\n"
	next := c.file + ".next"
	if err := os.WriteFile(next, []byte(line), 0o600); err != nil {
		return err
	}
	if err := os.Rename(next, c.file); err != nil {
		return err
	}
	c.now = t
	return nil
}

// arrived waits until the server's clock stands at t.
func (c *ClockServer) arrived(t time.Time) error {
	return poll(wireTimeout, nil, func() error {
		shown, err := c.serverTime()
		if err != nil {
			return err
		}
		if !shown.Equal(t) {
			return fmt.Errorf("TIME shows %v, not %v", shown, t)
		}
		return nil
	})
}

// serverTime is the server's own TIME. A server that wants a password is asked
// without one and refuses, so a clock server has none.
func (c *ClockServer) serverTime() (time.Time, error) { return serverTime(c.Addr) }

func serverTime(addr string) (time.Time, error) {
	reply, err := ask(addr, nil, "TIME")
	if err != nil {
		return time.Time{}, err
	}
	fields, ok := reply.([]any)
	if !ok || len(fields) != 2 {
		return time.Time{}, fmt.Errorf("TIME gave %v", reply)
	}
	var numbers [2]int64
	for i, field := range fields {
		text, ok := field.(string)
		if !ok {
			return time.Time{}, fmt.Errorf("TIME gave %v", reply)
		}
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return time.Time{}, fmt.Errorf("TIME gave %v: %w", reply, err)
		}
	}
	return time.Unix(numbers[0], numbers[1]*1000).UTC(), nil
}
