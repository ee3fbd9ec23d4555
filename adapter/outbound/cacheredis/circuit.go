package cacheredis

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Bounds of CircuitConfig.
const (
	MaxCircuitFailures    = 1000
	MinCircuitOpenTimeout = time.Millisecond
	MaxCircuitOpenTimeout = time.Minute
)

// CircuitConfig describes the circuit around a store: while nobody answers there, callers are told so
// at once instead of each waiting for the command timeout. docs/adr/0018 weighs it.
type CircuitConfig struct {
	// Failures in a row open the circuit, 1..1000. A failure is what costs callers time or shows that
	// nobody is there; every reply, a refusal too, begins anew.
	Failures int
	// OpenTimeout, 1 ms..1 m, is how long nothing is asked after that. The next evaluation is the probe.
	OpenTimeout time.Duration
	// Changed is optional. It is called by the evaluation that changed the state, after its result is
	// known to the circuit, and so must not wait for anything; two calls may overlap.
	Changed func(CircuitChange)
}

// CircuitChange is what a circuit tells of itself.
type CircuitChange struct {
	// State is breaker.StateOpen where the circuit opened, and again with each probe that failed;
	// breaker.StateClosed where a probe found recovery.
	State breaker.State
	// Since is how long ago it opened, 0 where it did so now.
	Since time.Duration
}

// circuit is a breaker in this process around a store. A nil circuit is always closed.
//
// While it is closed and nothing has failed, a call costs atomic loads and no lock; so does a call that
// is rejected.
type circuit struct {
	failures int64
	timeout  time.Duration
	lease    time.Duration // of a probe: longer than one takes
	changed  func(CircuitChange)
	now      func() time.Duration // monotonic

	word atomic.Uint64
	// next is when the next probe is let through, as of now: the end of the open timeout, or of the
	// lease of the probe under way. It means nothing while closed.
	next   atomic.Int64
	inARow atomic.Int64 // failures while closed; changed under mu alone

	mu     sync.Mutex
	opened time.Duration
}

// permit is the circuit's word when a call was let through: two bits of state below the number of the
// period. A result counts in the period that let its call through and in no other, so whatever began
// before a trip neither closes the circuit nor opens it again.
type permit uint64

const stateBits = 2

func (p permit) state() breaker.State { return breaker.State(p & (1<<stateBits - 1)) }

// check says what is out of bounds.
func (config *CircuitConfig) check() error {
	var faults []error
	if config.Failures < 1 || config.Failures > MaxCircuitFailures {
		faults = append(faults, fmt.Errorf("cacheredis: circuit failures is %d, want 1..%d", config.Failures, MaxCircuitFailures))
	}
	if config.OpenTimeout < MinCircuitOpenTimeout || config.OpenTimeout > MaxCircuitOpenTimeout {
		faults = append(faults, fmt.Errorf("cacheredis: circuit open timeout is %v, want %v..%v",
			config.OpenTimeout, MinCircuitOpenTimeout, MaxCircuitOpenTimeout))
	}
	return errors.Join(faults...)
}

// newCircuit makes a closed circuit of a checked configuration, nil for nil.
func newCircuit(config *CircuitConfig, commandTimeout time.Duration) *circuit {
	if config == nil {
		return nil
	}
	began := time.Now()
	c := &circuit{
		failures: int64(config.Failures), timeout: config.OpenTimeout, lease: 2 * commandTimeout,
		changed: config.Changed, now: func() time.Duration { return time.Since(began) },
	}
	c.word.Store(uint64(breaker.StateClosed))
	return c
}

// state is StateInvalid where there is no circuit.
func (c *circuit) state() breaker.State {
	if c == nil {
		return breaker.StateInvalid
	}
	return permit(c.word.Load()).state()
}

// rejects reports whether a call would be rejected now, and if so for how long. It takes nothing.
func (c *circuit) rejects() (time.Duration, bool) {
	if c.isClosed() {
		return 0, false
	}
	return c.until(c.now())
}

func (c *circuit) isClosed() bool {
	return c == nil || permit(c.word.Load()).state() == breaker.StateClosed
}

// until gives the time until the next probe is let through, in whole milliseconds, rounded up.
func (c *circuit) until(now time.Duration) (time.Duration, bool) {
	left := time.Duration(c.next.Load()) - now
	if left <= 0 {
		return 0, false
	}
	return (left + time.Millisecond - 1).Truncate(time.Millisecond), true
}

// begin lets a call through, whose result is to be given to end, or rejects it for the time given.
func (c *circuit) begin() (p permit, wait time.Duration, rejected bool) {
	if c == nil {
		return 0, 0, false
	}
	if p = permit(c.word.Load()); p.state() == breaker.StateClosed {
		return p, 0, false
	}
	return c.probe()
}

// probe is begin where the circuit was seen open.
func (c *circuit) probe() (p permit, wait time.Duration, rejected bool) {
	if wait, rejected = c.until(c.now()); rejected {
		return 0, wait, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p = permit(c.word.Load()); p.state() == breaker.StateClosed {
		return p, 0, false
	}
	now := c.now()
	if wait, rejected = c.until(now); rejected {
		return 0, wait, true
	}
	// A probe whose lease is over is replaced; its own result will be late.
	return c.enter(breaker.StateHalfOpen, now+c.lease), 0, false
}

// end takes what the store gave to a call that begin let through.
func (c *circuit) end(p permit, err error) {
	if c == nil || err == nil && p.state() == breaker.StateClosed && c.inARow.Load() == 0 {
		return
	}
	if change := c.settle(p, resultOf(err)); change.State != breaker.StateInvalid && c.changed != nil {
		c.changed(change)
	}
}

// settle counts a result. The change is the zero value where there is nothing to tell.
func (c *circuit) settle(p permit, result breaker.Result) CircuitChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p != permit(c.word.Load()):
		return CircuitChange{} // late
	case p.state() == breaker.StateClosed:
		return c.count(result)
	}
	return c.probed(result)
}

// count takes the result of a call while closed. mu is held.
func (c *circuit) count(result breaker.Result) CircuitChange {
	switch result {
	case breaker.ResultSuccess:
		c.inARow.Store(0)
	case breaker.ResultFailure:
		if c.inARow.Add(1) < c.failures {
			break
		}
		c.inARow.Store(0)
		c.opened = c.now()
		c.enter(breaker.StateOpen, c.opened+c.timeout)
		return CircuitChange{State: breaker.StateOpen}
	case breaker.ResultNeither, breaker.ResultInvalid:
	}
	return CircuitChange{}
}

// probed takes the result of the probe. mu is held.
func (c *circuit) probed(result breaker.Result) CircuitChange {
	now := c.now()
	if _, leased := c.until(now); !leased {
		return CircuitChange{} // late
	}
	switch result {
	case breaker.ResultSuccess:
		c.enter(breaker.StateClosed, 0)
		return CircuitChange{State: breaker.StateClosed, Since: now - c.opened}
	case breaker.ResultFailure:
		c.enter(breaker.StateOpen, now+c.timeout)
		return CircuitChange{State: breaker.StateOpen, Since: now - c.opened}
	case breaker.ResultNeither, breaker.ResultInvalid:
		// It found nothing out, so the next evaluation is the probe.
		c.enter(breaker.StateOpen, now)
	}
	return CircuitChange{}
}

// enter begins a period. mu is held.
func (c *circuit) enter(state breaker.State, next time.Duration) permit {
	c.next.Store(int64(next)) // First, so that who sees the state sees no older time with it.
	p := c.word.Load()>>stateBits<<stateBits + 1<<stateBits | uint64(state)
	c.word.Store(p)
	return permit(p)
}

// resultOf says what a store's answer tells about whether somebody is there.
func resultOf(err error) breaker.Result {
	if err == nil {
		return breaker.ResultSuccess
	}
	var failure *store.Error
	if !errors.As(err, &failure) {
		return breaker.ResultFailure
	}
	switch failure.Certainty {
	case store.Refused, store.Mismatched:
		// Somebody answered, and at once. Were this a failure, the circuit would still be open when a
		// server that was demoted or loading is back.
		return breaker.ResultSuccess
	case store.NotSent:
		return unsentResult(failure.Code)
	case store.Uncertain:
		switch failure.Code { //nolint:exhaustive // Whatever else is uncertain had no reply.
		case store.CodeProgramFailed:
			return breaker.ResultSuccess // an error reply
		case store.CodeCanceled:
			return breaker.ResultNeither // the caller's doing
		}
	case store.CertaintyInvalid:
	}
	return breaker.ResultFailure
}

// unsentResult is resultOf for what was not sent.
func unsentResult(code store.Code) breaker.Result {
	switch code {
	case store.CodeConnect, store.CodeTLS, store.CodeHandshake, store.CodeConnectionLost, store.CodeDeadline:
		return breaker.ResultFailure
	case store.CodeAuthentication, store.CodeServerVersion, store.CodeCapacity, store.CodeLoading, store.CodeReadOnly,
		store.CodeMasterDown, store.CodeClusterDown, store.CodeMoved, store.CodePermission, store.CodeOutOfMemory,
		store.CodePersistence, store.CodeReplicas, store.CodeBusy:
		// A server refused the greeting of a new connection.
		return breaker.ResultSuccess
	case store.CodeInvalid, store.CodeInvalidArgument, store.CodeUnknownProgram, store.CodeNotReady, store.CodeClosed,
		store.CodeCanceled, store.CodePoolExhausted, store.CodeQueueFull, store.CodeNotInteger, store.CodeOutOfRange,
		store.CodeProgramFailed, store.CodeWrongType, store.CodeReply:
		// This process's own doing: nobody was asked.
	}
	return breaker.ResultNeither
}
