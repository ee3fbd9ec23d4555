package service

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestNothingPilesUp sends 1,000 evaluations a second for some seconds to a Redis that accepts and never
// answers, and looks at the limiter's own process: each call ends, and goroutines and heap are as they
// were. It is not parallel, since what it looks at is the whole process.
func TestNothingPilesUp(t *testing.T) {
	const (
		calls   = 5000
		within  = 5 * time.Second // of each call, whose command timeout is a hundredth of it
		maxHeap = 16 << 20
	)
	server := lanes.StartProcess(t, lanes.Options{})
	cfg, err := config.Load(config.Source{File: settings{
		address: server.Addr, namespace: namespace(), policies: deep, timeout: 50 * time.Millisecond,
	}.file(t)})
	if err != nil {
		t.Fatal(err)
	}
	cfg.RateLimit.Circuit.Enabled = false // What it rejects cannot pile up.
	ready, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	limiter, err := composition.NewLimiter(ready, cfg.RateLimit, composition.Telemetry{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := limiter.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	subject, err := limiter.Digester().Digest("one")
	if err != nil {
		t.Fatal(err)
	}
	evaluate := func() (ratelimit.Outcome, time.Duration) {
		began := time.Now()
		outcome, err := limiter.Evaluate(t.Context(), ratelimit.RateLimitRequest{
			PolicyID: "deep", Subject: subject, Cost: 1, Deadline: began.Add(time.Minute),
		})
		if err != nil {
			t.Error(err)
		}
		return outcome, time.Since(began)
	}
	server.Pause()
	for range 50 { // connections and pools are what they become
		evaluate()
	}
	heapBefore := heap()

	var mu sync.Mutex
	var longest time.Duration
	var wait sync.WaitGroup
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for range calls {
		<-pace.C
		wait.Go(func() {
			outcome, took := evaluate()
			switch outcome.(type) {
			case ratelimit.Unavailable, ratelimit.Indeterminate:
			case ratelimit.Evaluated, ratelimit.Incompatible:
				t.Errorf("%+v", outcome)
			default:
				t.Errorf("%T", outcome)
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, took)
		})
	}
	wait.Wait()
	if longest > within {
		t.Errorf("one evaluation took %v", longest)
	}
	eventually(t, "goroutines end", func() error {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if n := strings.Count(string(stacks), "EdgeRateLimiter"); n > 0 {
			return fmt.Errorf("%d frames of evaluations", n)
		}
		// The reader of readiness, and what one connection at work needs.
		if n := strings.Count(string(stacks), "\ngoroutine "); n > 40 {
			return fmt.Errorf("%d goroutines: %s", n, stacks)
		}
		return nil
	})
	grown := heap() - heapBefore
	t.Logf("%d calls, the longest took %v, heap grew by %d kB, %d goroutines", calls, longest, grown>>10, runtime.NumGoroutine())
	if grown > maxHeap {
		t.Errorf("the heap grew by %d bytes over %d calls", grown, calls)
	}
	server.Resume()
	eventually(t, "it decides again", func() error {
		if outcome, _ := evaluate(); !ratelimit.Allows(outcome) {
			return fmt.Errorf("%+v", outcome)
		}
		return nil
	})
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
