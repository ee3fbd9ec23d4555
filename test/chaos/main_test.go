package chaos

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// Flags of a run, after -args. Without them it is the short one.
var (
	seedFlag = flag.Uint64("seed", 0, "the seed of the schedule; 0 takes one from the clock, and failures print it")
	duration = flag.Duration("duration", 0, "how long the schedule goes on; above 0 the bounds in time are measured and held too")
	only     = flag.String("only", "", "the faults of the schedule, separated by commas; empty means all of them")
	breaking = flag.String("break", "", "the rule to break on purpose: retry, allow or mixup")
)

// long reports whether this run has minutes.
func long() bool { return *duration > 0 }

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(asMetronome) != "" {
		os.Exit(metronome())
	}
	if *seedFlag == 0 {
		*seedFlag = uint64(time.Now().UnixNano())
	}
	// The thread from which the lanes start processes is there for good.
	thread := exec.Command("true")
	if err := errors.Join(lanes.Spawn(thread), thread.Wait()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	before := goleak.IgnoreCurrent()
	code := lanes.Main(m)
	if code == 0 {
		// What a proxy, a provider or a caller left behind.
		if err := goleak.Find(before,
			goleak.IgnoreAnyFunction("github.com/edgelimit/edgelimit/test/lanes.Main.func1"),
			// The lanes' connection to the container engine.
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
			// Toxiproxy leaves what waits to pass on a chunk when a fault has ended its connection.
			goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
			goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"),
			goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
