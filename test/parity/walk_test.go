package parity

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/lanes"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the random walks; 0 takes one from the clock")
	steps = flag.Int("steps", 2000, "steps of each random walk")
)

func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }

// source gives the random numbers of a test and says on failure how to have them again.
func source(t *testing.T) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: go test ./test/parity -run '^%s$' -seed %d -steps %d", t.Name(), s, *steps)
		}
	})
	return rand.New(rand.NewPCG(s, 1))
}

// scale gives a value of any magnitude up to most, small ones as likely as large ones.
func scale(r *rand.Rand, most int64) int64 {
	bound := most
	for bound > 1 && r.IntN(3) > 0 {
		bound = max(bound>>r.IntN(12), 1)
	}
	return 1 + r.Int64N(bound)
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// year is in ms.
const year = 31_557_600_000

// The clocks of servers stand between 1971 and 2112, which is after the last moment that programs
// accept.
const (
	firstMoment = 2 * year
	lastMoment  = 142 * year
)

// move gives the next moment of a clock: a pause, a step either way, a jump of years, or the moment of
// expiry and those beside it.
func move(r *rand.Rand, now, horizon, regression, pttl int64) int64 {
	switch r.IntN(12) {
	case 0, 1, 2:
		return now
	case 3:
		now -= r.Int64N(regression + 3)
	case 4:
		now -= scale(r, 10*regression+10)
	case 5:
		now += horizon - 1 + r.Int64N(3)
	case 6:
		now += scale(r, 3*horizon)
	case 7:
		if pttl >= 0 {
			now += pttl - 1 + r.Int64N(3)
		}
	case 8:
		if r.IntN(6) == 0 {
			now += (r.Int64N(61) - 30) * year
		}
	default:
		now += scale(r, max(horizon/8, 1))
	}
	return now
}

func within(now, first, last int64) int64 { return min(max(now, first), last) }

// call is one run of a program.
type call struct {
	program programID
	keys    []string
	args    []string
}

func (c call) String() string { return fmt.Sprintf("%s %q", c.program, c.args) }
