package fallback

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Bounds of Config.
const (
	MinHoldOff = time.Millisecond
	MaxHoldOff = time.Hour
)

// Config says when the primary is asked again. What is not marked optional is required.
type Config struct {
	// HoldOff, 1 ms..1 h, is how long after a failure the primary is not asked.
	HoldOff time.Duration
	// ProbeTimeout, 1 ms..HoldOff, bounds the ping that comes first then.
	ProbeTimeout time.Duration
	// ServeUncertain also serves calls of which it is not known whether they ran on the primary. Such a
	// call may have been counted there as well as here: each one adds at most its own cost to what was
	// really spent, and nothing is ever counted too little. Without it the caller gets the uncertain
	// failure, and only the calls after it are served from the secondary.
	ServeUncertain bool
	// OnSwitch is told each switch once, in their order, by the call that caused it, which waits for it.
	// It must not use the store. Optional.
	OnSwitch func(Switch)
	// Clock reads the time; optional, nil means time.Now.
	Clock func() time.Time
}

// Switch is a change of the store that serves.
type Switch struct {
	To    Side
	Cause error // of a switch to the secondary
}

// Store serves from one of two stores. Its constructor is New.
type Store struct {
	primary, secondary store.Store
	config             Config

	switching sync.Mutex // held while phase changes and the change is told
	phase     atomic.Pointer[phase]
}

var _ store.Store = (*Store)(nil)

// phase is the time between two switches.
type phase struct {
	side Side
	next atomic.Int64 // of the secondary's: when the primary may be asked again, ns since the epoch
}

// New makes a store that begins with the primary, or says everything that is wrong. It owns both stores:
// Close ends them.
func New(primary, secondary store.Store, config Config) (*Store, error) {
	var faults []error
	refuse := func(format string, args ...any) { faults = append(faults, fmt.Errorf("fallback: "+format, args...)) }
	switch {
	case primary == nil || secondary == nil:
		refuse("a store that is nil")
	case primary == secondary:
		refuse("primary and secondary are the same store")
	case primary.Clock() != secondary.Clock():
		refuse("one store decides by its own clock and the other by the caller's")
	}
	if config.HoldOff < MinHoldOff || config.HoldOff > MaxHoldOff {
		refuse("HoldOff is %v, want %v..%v", config.HoldOff, MinHoldOff, MaxHoldOff)
	}
	if config.ProbeTimeout < MinHoldOff || config.ProbeTimeout > config.HoldOff {
		refuse("ProbeTimeout is %v, want %v..HoldOff", config.ProbeTimeout, MinHoldOff)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if config.Clock == nil {
		config.Clock = time.Now
	}
	s := &Store{primary: primary, secondary: secondary, config: config}
	s.phase.Store(&phase{side: SidePrimary})
	return s, nil
}

// Serving is the store that serves now.
func (s *Store) Serving() Side { return s.phase.Load().side }

// Source is that of the primary; a Mark tells which store served a call.
func (s *Store) Source() store.Source { return s.primary.Source() }

// Clock is that of both stores.
func (s *Store) Clock() store.ClockSource { return s.primary.Clock() }

// Close ends both stores.
func (s *Store) Close() error { return errors.Join(s.primary.Close(), s.secondary.Close()) }

// serve makes a call on the store that serves, and on the secondary where it is allowed to step in.
func serve[T any](ctx context.Context, s *Store, call func(context.Context, store.Store) (T, error)) (T, error) {
	p := s.phase.Load()
	if p.side == SideSecondary && !s.probe(ctx, p) {
		return second(ctx, s, call)
	}
	value, err := call(ctx, s.primary)
	switch reach := Unreachable(ctx, err); reach {
	case Answered:
		s.change(p, SidePrimary, nil)
	case Gone, Lost:
		s.change(p, SideSecondary, err)
		if reach == Gone || s.config.ServeUncertain {
			return second(ctx, s, call)
		}
	case Ended, ReachInvalid:
	}
	mark(ctx, SidePrimary)
	return value, err
}

func second[T any](ctx context.Context, s *Store, call func(context.Context, store.Store) (T, error)) (T, error) {
	value, err := call(ctx, s.secondary)
	mark(ctx, SideSecondary)
	return value, err
}

// probe asks the primary whether it is back, if it is time and no other call does.
func (s *Store) probe(ctx context.Context, p *phase) bool {
	now := s.config.Clock().UnixNano()
	next := p.next.Load()
	if now < next || ctx.Err() != nil || !p.next.CompareAndSwap(next, now+s.config.HoldOff.Nanoseconds()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.ProbeTimeout)
	defer cancel()
	return s.primary.Ping(ctx) == nil
}

// change ends a phase, unless another call has ended it or it is the same side's.
func (s *Store) change(p *phase, to Side, cause error) {
	if p.side == to {
		return
	}
	s.switching.Lock()
	defer s.switching.Unlock()
	if s.phase.Load() != p {
		return
	}
	begun := &phase{side: to}
	if to == SideSecondary {
		begun.next.Store(s.config.Clock().Add(s.config.HoldOff).UnixNano())
	}
	s.phase.Store(begun)
	if s.config.OnSwitch != nil {
		s.config.OnSwitch(Switch{To: to, Cause: cause})
	}
}
