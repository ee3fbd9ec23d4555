package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// stall keeps a store's batches waiting until the function that it gives is called, and makes them wait
// for as long as commands may take.
func stall(s *Store) (proceed func()) {
	c := s.coalescer
	c.underway.Add(1) // Nobody is alone.
	c.mu.Lock()
	c.reserve, c.patience = 0, s.commandTimeout*9/10
	c.streams += mostStreams
	c.mu.Unlock()
	return func() {
		c.underway.Add(-1)
		c.running.Add(1)
		c.mu.Lock()
		c.streams -= mostStreams - 1
		c.mu.Unlock()
		go c.stream()
	}
}

func (c *coalescer) inQueue() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// together makes calls that travel in one batch, and gives their failures.
func together(t testing.TB, s *Store, calls int) []*store.Error {
	t.Helper()
	proceed := stall(s)
	failures := make([]*store.Error, calls)
	var wg sync.WaitGroup
	for i := range failures {
		wg.Go(func() { failures[i] = evalOnce(t, s, testTimeout) })
	}
	eventually(t, "all have boarded", func() bool { return s.coalescer.inQueue() == calls })
	proceed()
	wg.Wait()
	return failures
}

// ask runs the fixed window at a cost, by which its reply can be told from others.
func ask(ctx context.Context, t testing.TB, s *Store, cost int64) (remaining int64, failure *store.Error) {
	reply, err := s.Eval(ctx, fixedWindow, []string{"key"}, fixedWindowArguments(cost))
	return reply.At(fieldRemaining).Int, asFailure(t, err)
}

// asked is what became of one of several calls.
type asked struct {
	remaining int64
	failure   *store.Error
}

// askTogether asks at the costs 1 to calls, in one batch.
func askTogether(t testing.TB, s *Store, calls int) []asked {
	t.Helper()
	proceed := stall(s)
	results := make([]asked, calls)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i].remaining, results[i].failure = ask(ctx, t, s, int64(i+1)) })
	}
	eventually(t, "all have boarded", func() bool { return s.coalescer.inQueue() == calls })
	proceed()
	wg.Wait()
	return results
}

// TestTravelTogether: what waits goes in one batch, and each gets its own reply.
func TestTravelTogether(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	for i, got := range askTogether(t, s, 9) {
		if got.failure != nil || got.remaining != int64(9-i) {
			t.Errorf("cost %d: remaining %d, %v", i+1, got.remaining, got.failure)
		}
	}
	if n := server.count("EVALSHA"); n != 9 {
		t.Errorf("%d receipts", n)
	}
	if n := server.count("HELLO"); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestLoneGoesAtOnce: a call that is alone waits for no batch, and one that has little time left
// neither.
func TestLoneGoesAtOnce(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	proceed := stall(s)
	s.coalescer.underway.Add(-1)
	if failure := evalOnce(t, s, testTimeout); failure != nil {
		t.Errorf("alone: %v", failure)
	}
	s.coalescer.underway.Add(1)
	s.coalescer.reserve = testTimeout
	if failure := evalOnce(t, s, testTimeout-time.Millisecond); failure != nil {
		t.Errorf("with less time than the reserve: %v", failure)
	}
	proceed()
	if n := server.count("EVALSHA"); n != 2 {
		t.Errorf("%d receipts", n)
	}
}

// TestBatchBreaks: those whose reply has come have it, the others do not know, and nothing is sent
// again.
func TestBatchBreaks(t *testing.T) {
	t.Parallel()
	for _, after := range []int{0, 1, 3} {
		for name, end := range map[string]reaction{"EOF": drops(""), "half a reply": drops("*7\r\n$7\r\nALL"), "no reply": swallows} {
			t.Run(fmt.Sprintf("%s after %d", name, after), func(t *testing.T) {
				t.Parallel()
				server := startFake(t)
				s := storeFor(t, server.address())
				seen := 0
				server.on("EVALSHA", func(c *fakeConn, args []string) bool {
					if seen++; seen > after {
						return end(c, args)
					}
					return healthy(c, args)
				})
				answered := 0
				for i, got := range askTogether(t, s, 5) {
					switch {
					case got.failure == nil && got.remaining == int64(9-i):
						answered++
					case got.failure == nil:
						t.Errorf("cost %d got the reply of another: remaining %d", i+1, got.remaining)
					case got.failure.Certainty != store.Uncertain:
						t.Errorf("cost %d: %v", i+1, got.failure)
					}
				}
				if answered != after {
					t.Errorf("%d were answered, want %d", answered, after)
				}
				if n := server.count("EVALSHA"); n > 5 {
					t.Errorf("%d receipts of five calls", n)
				}
				wantSane(t, server, s, 5)
			})
		}
	}
}

// TestNeighbours: an error reply to one command of a batch is that one's alone.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	server.on("EVALSHA", func(c *fakeConn, args []string) bool {
		switch args[len(args)-2] {
		case "2":
			return c.send("-OOM command not allowed when used memory > 'maxmemory'.\r\n")
		case "3":
			return c.send("*1\r\n:1\r\n")
		case "4":
			return c.send("-ERR x\r\n")
		}
		return healthy(c, args)
	})
	got := askTogether(t, s, 6)
	wantFailure(t, got[1].failure, store.Refused, store.CodeOutOfMemory)
	wantFailure(t, got[2].failure, store.Mismatched, store.CodeReply)
	wantFailure(t, got[3].failure, store.Uncertain, store.CodeProgramFailed)
	for _, i := range []int{0, 4, 5} {
		if got[i].failure != nil || got[i].remaining != int64(9-i) {
			t.Errorf("cost %d: remaining %d, %v", i+1, got[i].remaining, got[i].failure)
		}
	}
}

// TestReadOnlyTogether: a demotion that many hear of at once ends older connections once.
func TestReadOnlyTogether(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	server.on("EVALSHA", replies("-READONLY You can't write against a read only replica.\r\n"))
	for _, got := range askTogether(t, s, 5) {
		wantFailure(t, got.failure, store.Refused, store.CodeReadOnly)
	}
	if epoch := s.dialer.epoch.Load(); epoch != 1 {
		t.Errorf("epoch %d", epoch)
	}
	wantSane(t, server, s, 0)
	if n := server.count("HELLO"); n != 1 {
		t.Errorf("%d new connections", n)
	}
}

// TestQueueFull: one command more than may wait is refused, unsent.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	proceed := stall(s)
	s.coalescer.most = 3
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if failure := evalOnce(t, s, testTimeout); failure != nil {
				t.Error(failure)
			}
		})
	}
	eventually(t, "all have boarded", func() bool { return s.coalescer.inQueue() == 3 })
	wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeQueueFull)
	proceed()
	wg.Wait()
	if n := server.count("EVALSHA"); n != 3 {
		t.Errorf("%d receipts", n)
	}
}

// TestQueueTimeout: what is not sent in time is never sent.
func TestQueueTimeout(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	proceed := stall(s)
	s.coalescer.patience = testTimeout / 10
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeDeadline) })
	}
	wg.Wait()
	proceed()
	wantSane(t, server, s, 0)
}

// TestLeavesQueue: a caller that goes away while its command waits takes it along, and nobody else's.
func TestLeavesQueue(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	proceed := stall(s)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	leaving, leave := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if remaining, failure := ask(ctx, t, s, 1); failure != nil || remaining != 9 {
			t.Errorf("remaining %d, %v", remaining, failure)
		}
	})
	left := make(chan struct{})
	wg.Go(func() {
		defer close(left)
		_, failure := ask(leaving, t, s, 2)
		wantFailure(t, failure, store.NotSent, store.CodeCanceled)
	})
	eventually(t, "both have boarded", func() bool { return s.coalescer.inQueue() == 2 })
	leave()
	<-left
	proceed()
	wg.Wait()
	if n := server.count("EVALSHA"); n != 1 {
		t.Errorf("%d receipts", n)
	}
	wantSane(t, server, s, 1)
}

// TestStaysWithBatch: a caller that goes away while its command is on its way learns what became of it.
func TestStaysWithBatch(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	arrived, answer := make(chan struct{}), make(chan struct{})
	server.on("EVALSHA", func(c *fakeConn, args []string) bool {
		close(arrived)
		<-answer
		return healthy(c, args)
	})
	proceed := stall(s)
	leaving, leave := context.WithTimeout(t.Context(), testTimeout)
	defer leave()
	done := make(chan asked)
	go func() {
		remaining, failure := ask(leaving, t, s, 4)
		done <- asked{remaining, failure}
	}()
	eventually(t, "it has boarded", func() bool { return s.coalescer.inQueue() == 1 })
	proceed()
	<-arrived
	leave()
	select {
	case got := <-done:
		t.Errorf("it came back before its reply: %+v", got)
	case <-time.After(20 * time.Millisecond):
	}
	close(answer)
	if got := <-done; got.failure != nil || got.remaining != 6 {
		t.Errorf("%+v", got)
	}
}

// TestCloseWithBatches: closing ends what is on its way, what waits and what comes later, and each says
// whether it was sent.
func TestCloseWithBatches(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	arrived := make(chan struct{})
	server.on("EVALSHA", func(*fakeConn, []string) bool {
		close(arrived)
		return true
	})
	proceed := stall(s)
	var wg sync.WaitGroup
	wg.Go(func() {
		failure := evalOnce(t, s, testTimeout)
		if failure == nil || failure.Certainty != store.Uncertain {
			t.Errorf("on its way: %v", failure)
		}
	})
	eventually(t, "it has boarded", func() bool { return s.coalescer.inQueue() == 1 })
	proceed()
	<-arrived
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	wantFailure(t, evalOnce(t, s, testTimeout), store.NotSent, store.CodeClosed)
	if _, err := s.coalescer.board(newFlight(s.programs[fixedWindow].Program), time.Now().Add(time.Hour)); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("boarding after the end: %v", err)
	}
}
