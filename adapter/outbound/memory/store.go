package memory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// MaxPrefixBytes bounds StoreConfig.Prefix.
const MaxPrefixBytes = 128

// StoreConfig is what a store is made of. MaxKeys is required.
type StoreConfig struct {
	// Clock reads the store's own time; nil means time.Now. It is called with a lock held, so it must
	// be quick and must not call the store.
	Clock func() time.Time
	// CallerClock, for simulation and tests alone, gives the time in ms (1..2^42) that programs decide
	// by. nil means the store's own. Lifetimes follow the store's own in any case.
	CallerClock func() int64
	// MaxKeys bounds the live keys, 1..MostKeys.
	MaxKeys int
	// Handlers are programs beyond those of shared-contract/store, by ID.
	Handlers map[string]Handler
	// Prefix stands before every key. Optional, 0..128 bytes.
	Prefix string
}

// Store is a store.Store in this process. Its constructor is NewStore.
type Store struct {
	clock       func() time.Time
	callerClock func() int64
	prefix      string

	mu       sync.Mutex
	closed   bool
	keys     keyspace
	handlers map[string]Handler
	known    map[*store.Program]Handler // handlers by descriptor, where it was seen when registering
}

var _ store.Store = (*Store)(nil)

// NewStore makes an empty store with a handler for every program of shared-contract/store, or says
// everything that is wrong with config.
func NewStore(config StoreConfig) (*Store, error) {
	var faults []error
	if config.MaxKeys < 1 || config.MaxKeys > MostKeys {
		faults = append(faults, fmt.Errorf("memory: MaxKeys is %d, want 1..%d", config.MaxKeys, MostKeys))
	}
	if len(config.Prefix) > MaxPrefixBytes {
		faults = append(faults, fmt.Errorf("memory: Prefix of %d bytes, at most %d", len(config.Prefix), MaxPrefixBytes))
	}
	s := &Store{
		clock: config.Clock, callerClock: config.CallerClock, prefix: config.Prefix,
		keys: newKeyspace(config.MaxKeys), handlers: make(map[string]Handler), known: make(map[*store.Program]Handler),
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	for _, b := range builtin() {
		faults = append(faults, s.Register(b.program, b.handler))
	}
	for id, h := range config.Handlers {
		faults = append(faults, s.register(id, h))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return s, nil
}

// Register adds the handler of a program. A program has one: a second one is refused, since calls that
// are under way could meet either.
func (s *Store) Register(program *store.Program, h Handler) error {
	if program == nil {
		return errors.New("memory: a program that is nil")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.register(program.ID(), h); err != nil {
		return err
	}
	s.known[program] = h
	return nil
}

func (s *Store) register(id string, h Handler) error {
	if h == nil {
		return fmt.Errorf("memory: program %s has a handler that is nil", id)
	}
	if _, twice := s.handlers[id]; twice {
		return fmt.Errorf("memory: program %s has a handler already", id)
	}
	s.handlers[id] = h
	return nil
}

// Source is store.SourceLocalMemory.
func (s *Store) Source() store.Source { return store.SourceLocalMemory }

// Clock is store.ClockServer, or store.ClockCaller in a simulation.
func (s *Store) Clock() store.ClockSource {
	if s.callerClock != nil {
		return store.ClockCaller
	}
	return store.ClockServer
}

// Ping asks whether the store answers; see store.Store.
func (s *Store) Ping(ctx context.Context) error {
	return s.run(ctx, "ping", func(*Tx) error { return nil })
}

// Close refuses every later call and lets go of the state. It does nothing the second time.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.keys = newKeyspace(1)
	return nil
}

// LiveKeys is the number of keys held, those among them that have expired and not yet been reclaimed.
func (s *Store) LiveKeys() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys.records)
}

// reclaimed is how many expired keys a call removes, beside as many as it has added.
const reclaimed = 4

// run does f alone on the store, at one reading of the clock.
func (s *Store) run(ctx context.Context, op string, f func(tx *Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failure := s.admit(ctx, op); failure != nil {
		return failure
	}
	tx := Tx{keys: &s.keys, now: s.clock().UnixMilli()}
	before := len(s.keys.records)
	if err := f(&tx); err != nil {
		return failed(op, &tx, err)
	}
	s.keys.reclaim(tx.now, reclaimed+max(len(s.keys.records)-before, 0))
	s.keys.shrink()
	return nil
}

// admit refuses what must not be run: after Close, after the deadline, or without one.
func (s *Store) admit(ctx context.Context, op string) *store.Error {
	if s.closed {
		return &store.Error{Op: op, Certainty: store.NotSent, Code: store.CodeClosed}
	}
	if err := ctx.Err(); err != nil {
		code := store.CodeDeadline
		if errors.Is(err, context.Canceled) {
			code = store.CodeCanceled
		}
		return &store.Error{Op: op, Certainty: store.NotSent, Code: code, Err: err}
	}
	if _, ok := ctx.Deadline(); !ok {
		return invalidArgument(op, errors.New("no deadline"))
	}
	return nil
}

// invalidArgument refuses a call that was never run.
func invalidArgument(op string, err error) *store.Error {
	return &store.Error{Op: op, Certainty: store.NotSent, Code: store.CodeInvalidArgument, Err: err}
}

// failed classifies what a run returned.
func failed(op string, tx *Tx, err error) error {
	result := &store.Error{Op: op, Certainty: store.Uncertain, Code: store.CodeProgramFailed, Err: err}
	switch {
	case tx.written:
	case errors.Is(err, ErrWrongType):
		result.Certainty, result.Code = store.Mismatched, store.CodeWrongType
	case errors.Is(err, errCapacity):
		result.Certainty, result.Code = store.Refused, store.CodeCapacity
	}
	return result
}

func operation(program *store.Program) string {
	if program == nil {
		return "eval"
	}
	return "eval " + program.ID()
}

// Eval runs a program's handler; see store.Store.
func (s *Store) Eval(ctx context.Context, program *store.Program, keys []string, args []any) (store.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.Reply{}, &store.Error{Op: operation(program), Certainty: store.NotSent, Code: store.CodeClosed}
	}
	h, ok := s.handler(program)
	if !ok {
		return store.Reply{}, &store.Error{Op: operation(program), Certainty: store.NotSent, Code: store.CodeUnknownProgram}
	}
	wireKeys, wireArgs, err := s.wire(program, keys, args)
	if err != nil {
		return store.Reply{}, invalidArgument(operation(program), err)
	}
	if ctx.Err() != nil || !hasDeadline(ctx) {
		return store.Reply{}, s.admit(ctx, operation(program))
	}
	tx := Tx{keys: &s.keys, now: s.clock().UnixMilli()}
	before := len(s.keys.records)
	reply, err := h(&tx, wireKeys, wireArgs)
	s.keys.reclaim(tx.now, reclaimed+max(len(s.keys.records)-before, 0))
	s.keys.shrink()
	if err != nil {
		return store.Reply{}, failed(operation(program), &tx, err)
	}
	if !fits(program, &reply) {
		return store.Reply{}, &store.Error{
			Op: operation(program), Certainty: store.Mismatched, Code: store.CodeReply, Err: errReply,
		}
	}
	return reply, nil
}

func hasDeadline(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}

// handler finds a program by its descriptor, or else by its ID.
func (s *Store) handler(program *store.Program) (Handler, bool) {
	if program == nil {
		return nil, false
	}
	if h, ok := s.known[program]; ok {
		return h, true
	}
	h, ok := s.handlers[program.ID()]
	return h, ok
}

// wire gives keys and arguments as they would travel, with the clock filled in.
func (s *Store) wire(program *store.Program, keys []string, args []any) ([]string, []string, error) {
	if len(keys) != program.Keys || len(args) != len(program.Args) {
		return nil, nil, fmt.Errorf("%d keys and %d arguments, want %d and %d", len(keys), len(args), program.Keys, len(program.Args))
	}
	wireKeys := make([]string, len(keys))
	for i, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return nil, nil, err
		}
		wireKeys[i] = s.prefix + key
	}
	clock := program.ClockIndex()
	wireArgs := make([]string, len(args))
	for i, arg := range args {
		if i == clock {
			now, ok := s.clockArgument()
			if !ok {
				return nil, nil, fmt.Errorf("the caller's clock is %d, out of range", now)
			}
			wireArgs[i] = strconv.FormatInt(now, 10)
			continue
		}
		switch value := arg.(type) {
		case string:
			wireArgs[i] = value
		case int64:
			wireArgs[i] = strconv.FormatInt(value, 10)
		default:
			return nil, nil, fmt.Errorf("argument %d is a %T, want string or int64", i+1, arg)
		}
	}
	return wireKeys, wireArgs, nil
}

// clockArgument is what a program's clock argument is set to.
func (s *Store) clockArgument() (int64, bool) {
	if s.callerClock == nil {
		return 0, true
	}
	now := s.callerClock()
	return now, now >= 1 && now <= algorithm.MaxNowMillis
}

// errReply is the cause of every reply that a program cannot give.
var errReply = errors.New("memory: a reply that the program cannot give")

// fits reports whether a reply is one that could have come over the wire from the program.
func fits(program *store.Program, reply *store.Reply) bool {
	if reply.Len() != len(program.Reply) {
		return false
	}
	for i := range reply.Len() {
		v := reply.At(i)
		if v.Kind == store.ValueNone || v.Kind == store.ValueText && len(v.Text) > store.MaxTextBytes {
			return false
		}
	}
	return true
}
