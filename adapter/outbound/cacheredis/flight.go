package cacheredis

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// program is one that the store can run, with what depends on it alone.
type program struct {
	lua.Program

	op      string // for errors
	clock   int    // the position of the clock among the arguments, or -1
	flights sync.Pool
}

func newProgram(p lua.Program) *program {
	q := &program{Program: p, op: operation(p.Descriptor), clock: p.Descriptor.ClockIndex()}
	q.flights.New = func() any { return newFlight(p) }
	return q
}

func operation(descriptor *store.Program) string {
	if descriptor == nil {
		return "eval"
	}
	return "eval " + descriptor.ID()
}

// Where a flight is. Its owner and the stream that carries it agree by compare and swap.
const (
	flightOwned   uint32 = iota // by its caller alone
	flightBoarded               // in a batch that waits
	flightTaken                 // in a batch that is being sent
	flightLeft                  // its caller went away while the batch waited
)

// flight is one run of a program: the command, and room for its reply. It is used again once its
// command has ended, with everything that is in it, so that a run leaves no garbage. go-redis reads the
// command while it is under way: neither may change before it has ended.
type flight struct {
	*redis.RawWriteToCmd // never sent twice: its NoRetry is true

	args  []any // of the command: EVALSHA, the digest, the number of keys, keys, arguments
	keys  []string
	own   []any // the arguments within args
	reply bytes.Buffer
	state atomic.Uint32
}

// mostKept bounds the room for a reply that is kept for the next run.
const mostKept = 4 << 10

func newFlight(p lua.Program) *flight {
	n := p.Descriptor.Keys
	f := &flight{args: make([]any, 3+n+len(p.Descriptor.Args)), keys: make([]string, n)}
	f.args[0], f.args[1], f.args[2] = "EVALSHA", p.SHA1, n
	for i := range f.keys {
		f.args[3+i] = &f.keys[i]
	}
	f.own = f.args[3+n:]
	f.RawWriteToCmd = redis.NewRawWriteToCmd(context.Background(), &f.reply, f.args...)
	return f
}

// prepare makes a flight ready to go, or says what is wrong with the call.
func (s *Store) prepare(p *program, keys []string, args []any) (*flight, *store.Error) {
	descriptor := p.Descriptor
	if len(keys) != descriptor.Keys || len(args) != len(descriptor.Args) {
		return nil, invalidArgument(p.op,
			fmt.Errorf("%d keys and %d arguments, want %d and %d", len(keys), len(args), descriptor.Keys, len(descriptor.Args)))
	}
	for i, arg := range args {
		switch arg.(type) {
		case string, int64:
		default:
			return nil, invalidArgument(p.op, fmt.Errorf("argument %d is a %T, want string or int64", i+1, arg))
		}
	}
	for _, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return nil, invalidArgument(p.op, err)
		}
	}
	now, ok := s.clockArgument()
	if !ok {
		return nil, invalidArgument(p.op, fmt.Errorf("the caller's clock is %d, out of range", now))
	}
	f := p.flights.Get().(*flight) //nolint:forcetypeassert // New makes nothing else.
	f.state.Store(flightOwned)
	f.reply.Reset()
	f.SetErr(nil)
	for i, key := range keys {
		f.keys[i] = s.prefix + key
	}
	copy(f.own, args)
	if p.clock >= 0 {
		f.own[p.clock] = now
	}
	return f, nil
}

// release gives a flight back. One that was left may still be looked at by the stream of its batch.
func (p *program) release(f *flight) {
	if f.state.Load() == flightLeft || f.reply.Cap() > mostKept {
		return
	}
	clear(f.own) // Texts are not kept alive.
	p.flights.Put(f)
}
