package memory

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// custom is a program of these tests: one key, one argument, one value.
var custom = &store.Program{
	Name: "test-custom", Version: 1, Keys: 1,
	Args:  []store.Field{{Name: "what", Kind: store.FieldText}},
	Reply: []store.Field{{Name: "answer"}},
}

func one(v store.Value) (store.Reply, error) { return store.NewReply(v) }

func wantFailure(t testing.TB, what string, err error, certainty store.Certainty, code store.Code) {
	t.Helper()
	var failure *store.Error
	if !errors.As(err, &failure) || failure.Certainty != certainty || failure.Code != code {
		t.Errorf("%s: %v, want %v (%v)", what, err, code, certainty)
	}
}

// TestStoreConfig: everything that is wrong is told at once.
func TestStoreConfig(t *testing.T) {
	t.Parallel()
	none := func(*Tx, []string, []string) (store.Reply, error) { return store.Reply{}, nil }
	_, err := NewStore(StoreConfig{
		MaxKeys: 0, Prefix: strings.Repeat("p", MaxPrefixBytes+1),
		Handlers: map[string]Handler{"mine-v1": nil, store.StoreIncrByV1.ID(): none},
	})
	for _, want := range []string{
		"MaxKeys is 0, want 1..1073741824", "Prefix of 129 bytes, at most 128", "program mine-v1 has a handler that is nil",
		"program store-incrby-v1 has a handler already",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if _, err := NewStore(StoreConfig{MaxKeys: MostKeys + 1}); err == nil {
		t.Error("more keys than most")
	}
	s, err := NewStore(StoreConfig{MaxKeys: 1, Handlers: map[string]Handler{custom.ID(): none}})
	must(t, err)
	if s.Register(custom, none) == nil || s.Register(nil, none) == nil || s.Register(&store.Program{Name: "n", Version: 1}, nil) == nil {
		t.Error("a program was registered twice, or nil")
	}
}

// TestEveryProgramHasAHandler of its own, and answers what its descriptor says to its own arguments.
func TestEveryProgramHasAHandler(t *testing.T) {
	t.Parallel()
	s := newStore(t, newManualClock())
	for _, p := range store.Programs() {
		if _, ok := s.handlers[p.ID()]; !ok {
			t.Errorf("%s has no handler", p.ID())
		}
	}
	if len(s.handlers) != len(store.Programs()) {
		t.Errorf("%d handlers of %d programs", len(s.handlers), len(store.Programs()))
	}
}

// TestCustomHandler: what it gets is what Redis would get, by descriptor or by ID, and one run of it is
// at one reading of the clock.
func TestCustomHandler(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	program := &store.Program{
		Name: "test-wire", Version: 3, Keys: 2,
		Args:  []store.Field{{Name: "a"}, {Name: store.ClockArgument}, {Name: "b"}},
		Reply: []store.Field{{Name: "x"}, {Name: "y"}},
	}
	var now int64
	handler := func(tx *Tx, keys, args []string) (store.Reply, error) {
		now = tx.NowMillis()
		clock.advance(time.Hour)
		if tx.NowMillis() != now {
			t.Error("the clock moved within a run")
		}
		return store.NewReply(store.Text(strings.Join(keys, ",")), store.Text(strings.Join(args, ",")))
	}
	began := clock.peek().UnixMilli()
	s := newStore(t, clock, func(c *StoreConfig) {
		c.Prefix, c.CallerClock, c.Handlers = "p:", func() int64 { return 77 }, map[string]Handler{"test-wire-v3": handler}
	})
	reply, err := s.Eval(deadlined(t), program, []string{"k", "l"}, []any{int64(-9007199254740991), int64(5), "x\x00"})
	must(t, err)
	if want, _ := store.NewReply(store.Text("p:k,p:l"), store.Text("-9007199254740991,77,x\x00")); reply != want || now != began {
		t.Errorf("replied %v at %d, want %v at %d", reply, now, want, began)
	}
	for _, clock := range []int64{0, -1, 1<<42 + 1} {
		s.callerClock = func() int64 { return clock }
		_, err = s.Eval(deadlined(t), program, []string{"k", "l"}, []any{"", "", ""})
		wantFailure(t, fmt.Sprint("a caller's clock of ", clock), err, store.NotSent, store.CodeInvalidArgument)
	}
}

// TestHandlerFailures: what a handler returns, with and without having written before.
func TestHandlerFailures(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fail      func(tx *Tx) error
		certainty store.Certainty
		code      store.Code
	}{
		"its own":    {func(*Tx) error { return errors.New("x") }, store.Uncertain, store.CodeProgramFailed},
		"a lifetime": {func(tx *Tx) error { return tx.SetString("k", "", 0) }, store.Uncertain, store.CodeProgramFailed},
		"pairs":      {func(tx *Tx) error { return tx.HashSet("k", "field") }, store.Uncertain, store.CodeProgramFailed},
		"a score": {func(tx *Tx) error {
			_, err := tx.ZAdd("k", 1<<53, "m")
			return err
		}, store.Uncertain, store.CodeProgramFailed},
		"wrong type": {func(tx *Tx) error {
			_, err := tx.HashGet("string", "f")
			return fmt.Errorf("wrapped: %w", err)
		}, store.Mismatched, store.CodeWrongType},
		"no room": {func(tx *Tx) error { return tx.HashSet("new", "f", "v") }, store.Refused, store.CodeCapacity},
	} {
		for _, written := range []bool{false, true} {
			s := newStore(t, newManualClock(), func(c *StoreConfig) { c.MaxKeys = 1 })
			must(t, s.Set(deadlined(t), "string", "v", time.Minute))
			must(t, s.Register(custom, func(tx *Tx, keys, _ []string) (store.Reply, error) {
				if written {
					must(t, tx.SetStringKeepTTL("string", "written"))
				}
				return store.Reply{}, row.fail(tx)
			}))
			_, err := s.Eval(deadlined(t), custom, []string{"k"}, []any{""})
			if !written {
				wantFailure(t, name, err, row.certainty, row.code)
				continue
			}
			wantFailure(t, name+" after a write", err, store.Uncertain, store.CodeProgramFailed)
			if value, err := s.Get(deadlined(t), "string"); err != nil || value != "written" {
				t.Errorf("%s: what was written before is %q, %v", name, value, err)
			}
		}
	}
}

// TestHandlerReplies: what could not have come over the wire from the program is refused.
func TestHandlerReplies(t *testing.T) {
	t.Parallel()
	var reply store.Reply
	s := newStore(t, newManualClock())
	must(t, s.Register(custom, func(*Tx, []string, []string) (store.Reply, error) { return reply, nil }))
	for name, values := range map[string][]store.Value{
		"none": {}, "two": {store.Integer(1), store.Integer(2)}, "no kind": {{}}, "a long text": {store.Text(strings.Repeat("x", store.MaxTextBytes+1))},
	} {
		reply, _ = store.NewReply(values...)
		_, err := s.Eval(deadlined(t), custom, []string{"k"}, []any{""})
		wantFailure(t, name, err, store.Mismatched, store.CodeReply)
	}
	for _, v := range []store.Value{store.Integer(-1), store.Nil(), store.Text(""), store.Text(strings.Repeat("x", store.MaxTextBytes))} {
		reply, _ = one(v)
		if got, err := s.Eval(deadlined(t), custom, []string{"k"}, []any{""}); err != nil || got != reply {
			t.Errorf("%v was refused: %v", v.Kind, err)
		}
	}
}

// TestHandlerPanic: a handler that panics leaves no lock behind.
func TestHandlerPanic(t *testing.T) {
	t.Parallel()
	s := newStore(t, newManualClock())
	must(t, s.Register(custom, func(*Tx, []string, []string) (store.Reply, error) { panic("handler") }))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = s.Eval(deadlined(t), custom, []string{"k"}, []any{""})
	}()
	must(t, s.Ping(deadlined(t)))
}

// TestOversizedText: a text that a program of somebody's own stored is no value of a Store.
func TestOversizedText(t *testing.T) {
	t.Parallel()
	s := newStore(t, newManualClock())
	inside(t, s, func(tx *Tx) { must(t, tx.SetString("k", strings.Repeat("x", store.MaxTextBytes+1), 1000)) })
	_, err := s.Get(deadlined(t), "k")
	wantFailure(t, "Get", err, store.Mismatched, store.CodeReply)
	_, err = s.GetSet(deadlined(t), "k", "v", time.Minute)
	wantFailure(t, "GetSet", err, store.Mismatched, store.CodeReply)
}

// TestStorePrefix: it stands before the key of every method.
func TestStorePrefix(t *testing.T) {
	t.Parallel()
	s := newStore(t, newManualClock(), func(c *StoreConfig) { c.Prefix = "p:" })
	ctx := deadlined(t)
	must(t, s.Set(ctx, "set", "v", time.Minute))
	_, err := s.SetNX(ctx, "setnx", "v", time.Minute)
	must(t, err)
	_, err = s.GetSet(ctx, "getset", "v", time.Minute)
	if err != store.ErrNotFound { //nolint:errorlint // It comes bare.
		t.Error(err)
	}
	_, err = s.IncrBy(ctx, "incrby", 1, time.Minute)
	must(t, err)
	for _, key := range []string{"set", "setnx", "getset", "incrby"} {
		inside(t, s, func(tx *Tx) {
			if !tx.Exists("p:"+key) || tx.Exists(key) {
				t.Errorf("%s is not below the prefix", key)
			}
		})
	}
	if n, err := s.Del(ctx, "set", "p:set"); n != 1 || err != nil {
		t.Errorf("Del gives %d, %v", n, err)
	}
}

// TestStoreCapacity: the bound is exact over all methods, what is there goes on, and an expired key
// gives its room away.
func TestStoreCapacity(t *testing.T) {
	t.Parallel()
	clock := newManualClock()
	s := newStore(t, clock, func(c *StoreConfig) { c.MaxKeys = 3 })
	ctx := deadlined(t)
	for _, key := range []string{"a", "b", "c"} {
		must(t, s.Set(ctx, key, "1", time.Minute))
	}
	methods := map[string]func(key string) error{
		"Set":   func(key string) error { return s.Set(ctx, key, "1", time.Minute) },
		"SetNX": func(key string) error { _, err := s.SetNX(ctx, key, "1", time.Minute); return err },
		"GetSet": func(key string) error {
			if _, err := s.GetSet(ctx, key, "1", time.Minute); err != store.ErrNotFound { //nolint:errorlint // It comes bare.
				return err
			}
			return nil
		},
		"IncrBy": func(key string) error { _, err := s.IncrBy(ctx, key, 1, time.Minute); return err },
	}
	for name, call := range methods {
		wantFailure(t, name+" of a new key", call("new"), store.Refused, store.CodeCapacity)
		must(t, call("a"))
		must(t, s.Set(ctx, "a", "1", time.Minute))
		if n := s.LiveKeys(); n != 3 {
			t.Fatalf("%d keys after %s", n, name)
		}
	}
	reply, err := s.Eval(ctx, store.RateFixedWindowV1, []string{"new"}, []any{"1:fw:1:x", int64(1), int64(1000), int64(0), int64(0), int64(1), int64(0)})
	wantFailure(t, fmt.Sprint("Eval, replied ", reply), err, store.Refused, store.CodeCapacity)
	clock.advance(time.Minute + time.Millisecond)
	for name, call := range methods {
		must(t, call(name))
		if n := s.LiveKeys(); n > 3 {
			t.Fatalf("%d keys", n)
		}
		clock.advance(time.Minute + time.Millisecond)
	}
}

// TestExpiredKeysAreReclaimed though nobody asks for them again, a few with each call, and memory comes
// back (casebook 25).
func TestExpiredKeysAreReclaimed(t *testing.T) {
	clock := newManualClock()
	s := newStore(t, clock, func(c *StoreConfig) { c.MaxKeys = 200_000 })
	ctx := deadlined(t)
	must(t, s.Ping(ctx))
	before := heapInUse()
	const keys = 100_000
	for i := range keys {
		must(t, s.Set(ctx, fmt.Sprint("key:", i), strings.Repeat("v", 100), time.Minute))
	}
	full := heapInUse()
	clock.advance(time.Minute + time.Millisecond)
	calls := 0
	for ; s.LiveKeys() > 0; calls++ {
		must(t, s.Ping(ctx))
	}
	if calls > keys/reclaimed+1 {
		t.Errorf("%d calls to reclaim %d keys", calls, keys)
	}
	if after := heapInUse(); after > before+(full-before)/20 {
		t.Errorf("heap is %d before, %d full and %d after", before, full, after)
	}
	runtime.KeepAlive(s)
}

// TestKeyspaceOrder: random lifetimes, changes and removals leave the order of expiry intact.
func TestKeyspaceOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	s := newKeyspace(500)
	now := int64(0)
	for range 50_000 {
		key := fmt.Sprint(r.IntN(300))
		rec := s.find(key, now)
		switch r.IntN(5) {
		case 0:
			if rec != nil {
				s.remove(rec)
			}
		case 1:
			if rec != nil {
				s.expire(rec, endless)
			}
		case 2:
			now += r.Int64N(5)
			s.reclaim(now, r.IntN(3))
			s.shrink()
		default:
			if rec == nil {
				rec, _ = s.create(key, kindString, now)
			}
			s.expire(rec, now+r.Int64N(400))
		}
		finite := 0
		for key, rec := range s.records {
			if rec.key != key || (rec.place == unplaced) != (rec.expiresAt == endless) {
				t.Fatalf("record %+v at %s", rec, key)
			}
			if rec.place != unplaced {
				finite++
				if s.order[rec.place] != rec || rec.place > 0 && s.order[(rec.place-1)/2].expiresAt > rec.expiresAt {
					t.Fatalf("record %+v is out of order", rec)
				}
			}
		}
		if finite != len(s.order) {
			t.Fatalf("%d in order, %d with a lifetime", len(s.order), finite)
		}
	}
}
