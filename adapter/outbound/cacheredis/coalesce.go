package cacheredis

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of coalescing.
const (
	// mostStreams is how many batches are on their way at the same time, each on a connection of its own.
	mostStreams = 3
	// mostBoarded is how many commands one batch carries.
	mostBoarded = 256
	// mostWaiting is how many commands wait to be sent; a further one is refused.
	mostWaiting = 4096
	// A batch that is not sent within a quarter of the command timeout is given up unsent, and a command
	// boards only with three quarters left: so what is sent has half of it at the least.
	patienceShare = 4
)

var (
	errQueueFull    = errors.New("cacheredis: too many commands wait")
	errQueueTimeout = errors.New("cacheredis: not sent in time")
)

// coalescer lets commands that are under way at the same time travel together: one write and one read
// for many. A lone command goes at once, by itself. While batches are on their way, commands gather for
// the next: nothing waits for a clock.
//
// Each command keeps its own certainty. One that was not sent when its caller went away, or when its
// time was over, is never sent. Those of a batch share its connection and so its failure, but for the
// ones whose reply had come before. Nothing is sent twice.
type coalescer struct {
	client   *redis.Client
	reserve  time.Duration // what a command must have left to board
	patience time.Duration // how long a batch may wait
	most     int           // commands that wait
	underway atomic.Int64  // commands that were asked for and have not ended

	mu      sync.Mutex
	open    []*batch // waiting, the oldest first
	waiting int      // commands in open
	streams int
	closed  bool
	running sync.WaitGroup
}

// batch is commands that travel together.
type batch struct {
	flights  []*flight
	deadline time.Time   // the earliest of its commands
	expiry   *time.Timer // gives it up
	ended    chan struct{}
}

func newCoalescer(client *redis.Client, timeout time.Duration) *coalescer {
	patience := timeout / patienceShare
	return &coalescer{client: client, reserve: timeout - patience, patience: patience, most: mostWaiting}
}

// send sends a flight's command and waits for its reply, or for the certainty that it is not sent. gone
// is closed where the caller goes away; nil means never.
func (c *coalescer) send(ctx context.Context, f *flight, deadline time.Time, gone <-chan struct{}) error {
	alone := c.underway.Add(1) == 1
	defer c.underway.Add(-1)
	if alone || time.Until(deadline) < c.reserve {
		return c.client.Process(ctx, f)
	}
	ended, err := c.board(f, deadline)
	if err != nil {
		return err
	}
	select {
	case <-ended:
	case <-gone:
		if f.state.CompareAndSwap(flightBoarded, flightLeft) {
			return context.Canceled
		}
		<-ended // It is on its way, and ends with its batch.
	}
	if f.state.Load() == flightBoarded {
		return errQueueTimeout
	}
	return f.Err()
}

// board puts a flight into the batch that waits, or into a new one. The channel is closed when that has
// ended.
func (c *coalescer) board(f *flight, deadline time.Time) (<-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, redis.ErrClosed
	}
	if c.waiting >= c.most {
		return nil, errQueueFull
	}
	c.waiting++
	f.state.Store(flightBoarded)
	if n := len(c.open); n > 0 && len(c.open[n-1].flights) < mostBoarded {
		b := c.open[n-1]
		b.flights = append(b.flights, f)
		if deadline.Before(b.deadline) {
			b.deadline = deadline
		}
		return b.ended, nil
	}
	b := &batch{deadline: deadline, ended: make(chan struct{}), flights: make([]*flight, 1, 16)}
	b.flights[0] = f
	b.expiry = time.AfterFunc(c.patience, func() { c.expire(b) })
	c.open = append(c.open, b)
	if c.streams < mostStreams {
		c.streams++
		c.running.Add(1)
		go c.stream()
	}
	return b.ended, nil
}

// expire gives up a batch that still waits.
func (c *coalescer) expire(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.open {
		if other == b {
			c.open = append(c.open[:i], c.open[i+1:]...)
			c.waiting -= len(b.flights)
			close(b.ended)
			return
		}
	}
}

// take gives the oldest batch that waits, or nil, and then the stream is no more.
func (c *coalescer) take() *batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		c.streams--
		return nil
	}
	b := c.open[0]
	c.open = append(c.open[:0], c.open[1:]...)
	c.waiting -= len(b.flights)
	b.expiry.Stop()
	return b
}

// stream sends one batch after the other while any waits.
func (c *coalescer) stream() {
	defer c.running.Done()
	for {
		b := c.take()
		if b == nil {
			return
		}
		c.fly(b)
		// Those whose replies have just come may ask again at once: they go first, and together.
		runtime.Gosched()
	}
}

// fly sends a batch and reads its replies.
func (c *coalescer) fly(b *batch) {
	defer close(b.ended)
	commands := make([]redis.Cmder, 0, len(b.flights))
	for _, f := range b.flights {
		if f.state.CompareAndSwap(flightBoarded, flightTaken) {
			commands = append(commands, f)
		}
	}
	if len(commands) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), b.deadline)
	defer cancel()
	if len(commands) == 1 {
		_ = c.client.Process(ctx, commands[0]) // The command keeps it.
		return
	}
	pipe := c.client.Pipeline()
	_ = pipe.BatchProcess(ctx, commands...) // It only takes them.
	_, err := pipe.Exec(ctx)
	if err == nil {
		return
	}
	// Each command keeps its own error or reply, but where a server refuses the greeting: then they have
	// neither.
	for _, f := range b.flights {
		if f.state.Load() == flightTaken && f.Err() == nil && f.reply.Len() == 0 {
			f.SetErr(err)
		}
	}
}

// close refuses further commands and waits until those under way have ended; the client is closed by
// then, so that they do.
func (c *coalescer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
