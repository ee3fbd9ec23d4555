package cacheredis

import (
	"context"
	"sync"
	"time"
)

// callContext is a context that ends at a deadline, like those of context.WithDeadline, and makes its
// timer only where somebody asks for Done: most calls end long before, and their own deadline is kept
// by the connection.
type callContext struct {
	context.Context // the caller's

	deadline time.Time // not after the caller's

	mu     sync.Mutex
	timed  context.Context
	cancel context.CancelFunc
}

var _ context.Context = (*callContext)(nil)

// newCallContext gives a context that ends with parent, and at the latest after timeout. release ends it.
func newCallContext(parent context.Context, timeout time.Duration) *callContext {
	c := &callContext{Context: parent, deadline: time.Now().Add(timeout)}
	if deadline, ok := parent.Deadline(); ok && deadline.Before(c.deadline) {
		c.deadline = deadline
	}
	return c
}

// Deadline is the earlier of the caller's and that of the call.
func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done is closed when the call's time is over, the caller has gone away, or the call has ended.
func (c *callContext) Done() <-chan struct{} { return c.inner().Done() }

// Err says why, as context.Context demands.
func (c *callContext) Err() error {
	c.mu.Lock()
	timed := c.timed
	c.mu.Unlock()
	if timed != nil {
		return timed.Err()
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

func (c *callContext) inner() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadline(c.Context, c.deadline)
	}
	return c.timed
}

// release gives the timer back.
func (c *callContext) release() {
	c.mu.Lock()
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// gone is closed where the caller goes away, and says nothing of deadlines; nil means never. It makes
// no timer.
func gone(ctx context.Context) <-chan struct{} {
	if c, ok := ctx.(*callContext); ok {
		return c.Context.Done()
	}
	return ctx.Done()
}
