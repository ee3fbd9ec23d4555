package chaos

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// The bounds of a black hole.
const (
	holeTimeout = 50 * time.Millisecond
	holeRate    = 1000 // evaluations a second
	// Held in long runs alone: a machine under load keeps no time.
	holeSlack      = 20 * time.Millisecond // over the command timeout, of 999 in 1,000
	holeServed     = time.Second           // from the server's return to the first decision
	holeGoroutines = 10
	holeHeap       = 10 // per cent
)

// measured is what a black hole did.
type measured struct {
	calls                     int
	p50, p99, p999, max, back time.Duration
	goroutines                int
	heap                      float64 // per cent
	words                     map[string]int
	late                      lateness
}

func (m measured) String() string {
	return fmt.Sprintf("%d evaluations: p50 %v, p99 %v, p99.9 %v, longest %v; goroutines %+d, heap %+.1f %%; served again after %v; a bare timer was late by %v at p99.9, by %v at most; %s",
		m.calls, m.p50.Round(time.Microsecond), m.p99.Round(10*time.Microsecond), m.p999.Round(10*time.Microsecond),
		m.max.Round(10*time.Microsecond), m.goroutines, m.heap, m.back.Round(100*time.Microsecond),
		m.late.P999.Round(10*time.Microsecond), m.late.Max.Round(10*time.Microsecond), counted(m.words))
}

// TestCasebook01BlackHole sends 1,000 evaluations a second to a server that accepts and never answers:
// each ends, none of them is admitted, nothing piles up, and when the server answers again evaluations
// are decided again. A long run takes a minute of it in each variant, and holds the times: what a bare
// timer in another process was late by in that minute is the machine's, and is added to the bounds. It
// is not parallel, since it looks at the whole process.
func TestCasebook01BlackHole(t *testing.T) {
	lasts := 500 * time.Millisecond
	if long() {
		lasts = time.Minute
	}
	for _, v := range variants() {
		if v.coalesce != v.circuit && !long() {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			b := newBench(t, options{variant: v, timeout: holeTimeout, pool: 16, inFlight: 512, direct: true, fragile: true})
			m := b.blackHole(lasts)
			t.Log(m)
			if m.goroutines > holeGoroutines {
				t.Errorf("%d goroutines more than before", m.goroutines)
			}
			if !long() {
				return
			}
			if most := holeTimeout + holeSlack + m.late.P999; m.p999 > most {
				t.Errorf("p99.9 is %v, want %v at the most", m.p999, most)
			}
			if most := 2*holeTimeout + m.late.Max; m.max > most {
				t.Errorf("one evaluation took %v, want %v at the most", m.max, most)
			}
			if m.back > holeServed {
				t.Errorf("served again after %v, want %v at the most", m.back, holeServed)
			}
			if m.heap > holeHeap {
				t.Errorf("the heap grew by %.1f %%, want %d at the most", m.heap, holeHeap)
			}
		})
	}
}

// blackHole stops the server while evaluations come at an even rate.
func (b *bench) blackHole(lasts time.Duration) measured {
	b.t.Helper()
	calls := int(lasts.Seconds() * holeRate)
	took := make([]time.Duration, calls)
	outcomes := make([]ratelimit.Outcome, calls)
	subject, err := b.digests.Digest("hole")
	if err != nil {
		b.t.Fatal(err)
	}
	// The ledger would be most of the heap: here it has no part.
	ask := func() (ratelimit.Outcome, time.Duration) {
		began := time.Now()
		o, err := b.port.Evaluate(b.t.Context(), ratelimit.RateLimitRequest{
			PolicyID: policyID(ratelimit.AlgorithmFixedWindow, deep), Subject: subject, Cost: 1, Deadline: began.Add(10 * time.Second),
		})
		if err != nil {
			b.t.Error(err)
		}
		return o, time.Since(began)
	}
	burst := func(n int, note func(i int, o ratelimit.Outcome, d time.Duration)) {
		began := time.Now()
		var all sync.WaitGroup
		for i := range n {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / holeRate)))
			all.Go(func() {
				o, d := ask()
				note(i, o, d)
			})
		}
		all.Wait()
	}
	nobody := func(int, ratelimit.Outcome, time.Duration) {}
	// Pools, buffers and stacks are what they become under this load, with and without a server.
	burst(holeRate/2, nobody)
	b.server.Pause()
	burst(holeRate/2, nobody)
	late := startMetronome(b.t, lasts)
	heapBefore, goroutinesBefore := footprint(b.t, math.MaxInt)
	burst(calls, func(i int, o ratelimit.Outcome, d time.Duration) { outcomes[i], took[i] = o, d })
	m := measured{calls: calls, words: map[string]int{}, late: late()}
	for _, o := range outcomes {
		m.words[word(o)]++
		switch o.(type) {
		case ratelimit.Unavailable, ratelimit.Indeterminate:
		case ratelimit.Evaluated, ratelimit.Incompatible:
			b.t.Errorf("outcome is %s while the server is silent", word(o))
		}
	}
	clear(outcomes)
	heapAfter, goroutinesAfter := footprint(b.t, goroutinesBefore+holeGoroutines)
	m.goroutines = goroutinesAfter - goroutinesBefore
	m.heap = 100 * (float64(heapAfter) - float64(heapBefore)) / float64(heapBefore)
	slices.Sort(took)
	m.p50, m.p99, m.p999, m.max = took[calls/2], took[calls*99/100], took[calls*999/1000], took[calls-1]

	b.server.Resume()
	from := time.Now()
	eventually(b.t, "it decides again", func() error {
		if o, _ := ask(); !ratelimit.Allows(o) {
			return fmt.Errorf("%s", word(o))
		}
		return nil
	})
	m.back = time.Since(from)
	return m
}

// footprint gives heap and goroutines once there are no more than some of these, or patience is over.
func footprint(t testing.TB, most int) (heap uint64, goroutines int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > most && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	// What a first collection frees with a finalizer is gone after the second.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc, runtime.NumGoroutine()
}
