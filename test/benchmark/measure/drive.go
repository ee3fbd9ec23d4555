package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of the latency histogram. What takes longer is counted as the longest.
const (
	longestLatency    = 30 * time.Second
	significantDigits = 2
)

// Decide asks once for the key of an index.
type Decide func(ctx context.Context, key int) (allowed bool, err error)

// Load describes how a contender is driven. Everything is required, but where it says so.
type Load struct {
	Callers int // that ask at the same time, 1 or more
	Keys    int // among which each call chooses, 1..2^32-1
	// WarmUp is driven in the same way before, and not counted. Optional.
	WarmUp time.Duration
	// Duration is how long new calls are begun.
	Duration time.Duration
	// Latency records how long each call takes, which costs a clock reading for each.
	Latency bool
}

// Tally is what came of a load.
type Tally struct {
	Allowed, Denied, Failed int64
	FirstError              error // of those that failed
	Elapsed                 time.Duration
	Latency                 *hdrhistogram.Histogram // in ns; nil unless it was asked for
	Mallocs, Bytes          uint64                  // of the whole process
}

// Decisions is how many calls were answered with a decision.
func (t *Tally) Decisions() int64 { return t.Allowed + t.Denied }

// worker is one caller. It stands alone on its cache lines.
type worker struct {
	allowed, denied, failed int64
	first                   error
	latency                 *hdrhistogram.Histogram
	_                       [64]byte
}

// Drive warms up, runs the load and tells what came of it. between, which may be nil, is called after
// the warm-up, while nothing is driven.
func Drive(ctx context.Context, load Load, decide Decide, between func() error) (*Tally, error) {
	if load.Callers < 1 || load.Keys < 1 || int64(load.Keys) > 1<<32-1 || load.Duration <= 0 || load.WarmUp < 0 {
		return nil, fmt.Errorf("measure: %+v is no load", load)
	}
	if load.WarmUp > 0 {
		run(ctx, load, load.WarmUp, decide, newWorkers(load))
	}
	if between != nil {
		if err := between(); err != nil {
			return nil, err
		}
	}
	workers := newWorkers(load)
	runtime.GC() // A contender does not collect what the one before it left.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	elapsed := run(ctx, load, load.Duration, decide, workers)
	runtime.ReadMemStats(&after)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("measure: the run was ended: %w", context.Cause(ctx))
	}
	tally := &Tally{Elapsed: elapsed, Mallocs: after.Mallocs - before.Mallocs, Bytes: after.TotalAlloc - before.TotalAlloc}
	if load.Latency {
		tally.Latency = newHistogram()
	}
	for _, w := range workers {
		tally.Allowed += w.allowed
		tally.Denied += w.denied
		tally.Failed += w.failed
		if tally.FirstError == nil {
			tally.FirstError = w.first
		}
		if load.Latency {
			tally.Latency.Merge(w.latency)
		}
	}
	if tally.Decisions() == 0 {
		return tally, errors.Join(errors.New("measure: nothing was decided"), tally.FirstError)
	}
	return tally, nil
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longestLatency), significantDigits)
}

func newWorkers(load Load) []*worker {
	workers := make([]*worker, load.Callers)
	for i := range workers {
		workers[i] = &worker{}
		if load.Latency {
			workers[i].latency = newHistogram()
		}
	}
	return workers
}

// run lets all workers ask for a time and says how long it took until the last was answered.
func run(ctx context.Context, load Load, duration time.Duration, decide Decide, workers []*worker) time.Duration {
	var stop atomic.Bool
	var done sync.WaitGroup
	begin := make(chan struct{})
	for i, w := range workers {
		done.Go(func() {
			<-begin
			w.work(ctx, load, uint64(i), decide, &stop)
		})
	}
	start := time.Now()
	close(begin)
	timer := time.NewTimer(duration)
	select {
	case <-timer.C:
	case <-ctx.Done():
		timer.Stop()
	}
	stop.Store(true)
	done.Wait()
	return time.Since(start)
}

// work asks until it is stopped, and once at least.
func (w *worker) work(ctx context.Context, load Load, seed uint64, decide Decide, stop *atomic.Bool) {
	chooser := newChooser(seed, load.Keys)
	// Without a latency the call is a matter of nanoseconds, and looking whether to stop is not free.
	mask := 0
	if !load.Latency {
		mask = 63
	}
	last := time.Now()
	for i := 0; ; i++ {
		if i > 0 && i&mask == 0 && stop.Load() {
			return
		}
		allowed, err := decide(ctx, chooser.next())
		if load.Latency {
			now := time.Now()
			_ = w.latency.RecordValue(min(max(int64(now.Sub(last)), 1), int64(longestLatency))) // It is within the bounds.
			last = now
		}
		switch {
		case err != nil:
			w.failed++
			if w.first == nil {
				w.first = err
			}
		case allowed:
			w.allowed++
		default:
			w.denied++
		}
	}
}

// chooser chooses keys evenly: xorshift64*, mapped by multiplication.
type chooser struct {
	state uint64
	keys  uint64
}

func newChooser(seed uint64, keys int) chooser {
	return chooser{state: (seed + 1) * 0x9e3779b97f4a7c15, keys: uint64(keys)}
}

func (c *chooser) next() int {
	if c.keys == 1 {
		return 0
	}
	c.state ^= c.state >> 12
	c.state ^= c.state << 25
	c.state ^= c.state >> 27
	return int((c.state * 0x2545f4914f6cdd1d >> 32) * c.keys >> 32)
}

// Visit asks once for each key in order, by so many callers at once, and gives the first error.
func Visit(ctx context.Context, callers, keys int, decide Decide) error {
	var next atomic.Int64
	errs := make([]error, callers)
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			for ctx.Err() == nil {
				key := int(next.Add(1)) - 1
				if key >= keys {
					return
				}
				if _, err := decide(ctx, key); err != nil {
					errs[i] = fmt.Errorf("key %d: %w", key, err)
					return
				}
			}
		})
	}
	done.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
