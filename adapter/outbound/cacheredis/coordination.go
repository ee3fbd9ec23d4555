package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// coordination is what both providers are made of: a store, and the rules by which it is asked.
type coordination struct {
	store          store.Store
	commandTimeout time.Duration
	retryAfter     time.Duration
	source         ratelimit.Source
	kind           string // of keys
	builder        *KeyBuilder
	admission      admission
	circuit        *circuit // nil where there is none
}

// coordinationConfig is what LimiterConfig and BreakerConfig have in common; see there.
type coordinationConfig struct {
	namespace             string
	secret                []byte
	maxInFlight           int
	commandTimeout        time.Duration
	unavailableRetryAfter time.Duration
	circuit               *CircuitConfig
}

// newCoordination validates, all faults at once. faults are those that the caller has found.
func newCoordination(s store.Store, config coordinationConfig, faults ...error) (*coordination, error) {
	refuse := func(format string, args ...any) { faults = append(faults, fmt.Errorf("cacheredis: "+format, args...)) }
	if s == nil {
		refuse("no store")
	}
	if config.maxInFlight < 1 || config.maxInFlight > MaxInFlightLimit {
		refuse("max in flight is %d, want 1..%d", config.maxInFlight, MaxInFlightLimit)
	}
	if config.commandTimeout < MinCommandTimeout || config.commandTimeout > MaxCommandTimeout {
		refuse("command timeout is %v, want %v..%v", config.commandTimeout, MinCommandTimeout, MaxCommandTimeout)
	}
	if config.unavailableRetryAfter < time.Millisecond || config.unavailableRetryAfter > MaxUnavailableRetryAfter {
		refuse("unavailable retry-after is %v, want 1ms..%v", config.unavailableRetryAfter, MaxUnavailableRetryAfter)
	}
	builder, err := NewKeyBuilder(config.namespace, config.secret)
	if err != nil {
		faults = append(faults, err)
	}
	if config.circuit != nil {
		faults = append(faults, config.circuit.check())
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	c := &coordination{
		store:          s,
		commandTimeout: config.commandTimeout,
		retryAfter:     config.unavailableRetryAfter,
		kind:           kindState,
		builder:        builder,
		circuit:        newCircuit(config.circuit, config.commandTimeout),
	}
	switch s.Source() {
	case store.SourceGlobalRedis:
		c.source = ratelimit.SourceGlobalRedis
	case store.SourceLocalMemory:
		c.source = ratelimit.SourceLocalMemory
	case store.SourceInvalid:
		return nil, errors.New("cacheredis: the store does not say where its state lives")
	}
	if s.Clock() == store.ClockCaller {
		c.kind = kindSimulation
	}
	c.admission.init(config.maxInFlight)
	return c, nil
}

// verdictKind is what became of a question to the store.
type verdictKind uint8

const (
	// verdictReply is a reply, which the caller judges.
	verdictReply verdictKind = iota
	verdictUnavailable
	verdictIndeterminate
	verdictIncompatible
)

// verdict is a kind, with what outcomes of that kind say.
type verdict struct {
	kind         verdictKind
	unavailable  ratelimit.UnavailableCategory
	incompatible ratelimit.IncompatibleCategory
	retryAfter   time.Duration
}

func (c *coordination) notAsked(category ratelimit.UnavailableCategory) verdict {
	return verdict{kind: verdictUnavailable, unavailable: category, retryAfter: c.retryAfter}
}

// circuitOpen says that the circuit is open, and for how long.
func circuitOpen(wait time.Duration) verdict {
	return verdict{kind: verdictUnavailable, unavailable: ratelimit.UnavailableCircuit, retryAfter: wait}
}

func misfit(category ratelimit.IncompatibleCategory) verdict {
	return verdict{kind: verdictIncompatible, incompatible: category}
}

// enter takes a slot for one call, where there is time and room for it; leave gives it back. The
// verdict is of the kind verdictReply where it was taken.
func (c *coordination) enter(ctx context.Context, deadline time.Time) verdict {
	if errors.Is(ctx.Err(), context.Canceled) {
		return c.notAsked(ratelimit.UnavailableCanceled)
	}
	if time.Until(deadline) < c.commandTimeout {
		return c.notAsked(ratelimit.UnavailableDeadline)
	}
	switch c.admission.enter() {
	case admissionFull:
		return c.notAsked(ratelimit.UnavailableAdmission)
	case admissionClosed:
		return c.notAsked(ratelimit.UnavailableClosed)
	case admissionGranted, admissionInvalid:
	}
	if wait, rejected := c.circuit.rejects(); rejected {
		c.leave()
		return circuitOpen(wait)
	}
	return verdict{}
}

func (c *coordination) leave() { c.admission.leave() }

// eval runs a program. It returns within the command timeout.
func (c *coordination) eval(ctx context.Context, program *store.Program, keys []string, args []any) (store.Reply, verdict) {
	pass, wait, rejected := c.circuit.begin()
	if rejected {
		return store.Reply{}, circuitOpen(wait)
	}
	bounded := newCallContext(ctx, c.commandTimeout)
	defer bounded.release()
	reply, err := c.store.Eval(bounded, program, keys, args)
	c.circuit.end(pass, err)
	if err != nil {
		return store.Reply{}, c.failed(err)
	}
	return reply, verdict{}
}

// failed judges a store's error, by its certainty and code alone.
func (c *coordination) failed(err error) verdict {
	var failure *store.Error
	if !errors.As(err, &failure) {
		return verdict{kind: verdictIndeterminate, retryAfter: c.retryAfter}
	}
	switch failure.Certainty {
	case store.NotSent, store.Refused:
		if reason := category(failure.Code); reason != ratelimit.UnavailableInvalid {
			return c.notAsked(reason)
		}
		return misfit(ratelimit.IncompatibleProgram)
	case store.Mismatched:
		if failure.Code == store.CodeWrongType {
			return misfit(ratelimit.IncompatibleState)
		}
		return misfit(ratelimit.IncompatibleReply)
	case store.Uncertain, store.CertaintyInvalid:
	}
	return verdict{kind: verdictIndeterminate, retryAfter: c.retryAfter}
}

// Drain refuses new calls as closed and waits until those in flight have ended or ctx has.
func (c *coordination) Drain(ctx context.Context) error { return c.admission.drain(ctx) }

// InFlight is the number of calls in flight.
func (c *coordination) InFlight() int { return c.admission.inUse() }
