package cacheredis

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// deadlined is a context that ends long after any command timeout of a test.
func deadlined(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// scalarResult is what a scalar method gave, in the form of a text and an error.
type scalarResult struct {
	value any
	err   error
}

// scalarMethods calls each scalar method with fixed arguments.
var scalarMethods = map[string]func(ctx context.Context, s *Store) scalarResult{
	"get": func(ctx context.Context, s *Store) scalarResult {
		v, err := s.Get(ctx, "k")
		return scalarResult{v, err}
	},
	"set": func(ctx context.Context, s *Store) scalarResult {
		return scalarResult{nil, s.Set(ctx, "k", "v\x00", 1500*time.Millisecond)}
	},
	"setnx": func(ctx context.Context, s *Store) scalarResult {
		v, err := s.SetNX(ctx, "k", "v", time.Millisecond)
		return scalarResult{v, err}
	},
	"getset": func(ctx context.Context, s *Store) scalarResult {
		v, err := s.GetSet(ctx, "k", "", store.MaxTTL)
		return scalarResult{v, err}
	},
	"incrby": func(ctx context.Context, s *Store) scalarResult {
		v, err := s.IncrBy(ctx, "k", -7, time.Second)
		return scalarResult{v, err}
	},
	"del": func(ctx context.Context, s *Store) scalarResult {
		v, err := s.Del(ctx, "k")
		return scalarResult{v, err}
	},
}

// TestScalarCommands: each method sends one command, exactly this one, with the prefix before the key.
func TestScalarCommands(t *testing.T) {
	t.Parallel()
	incrby, _ := lua.Find(store.StoreIncrByV1)
	for method, want := range map[string][]string{
		"get":    {"GET", "app:k"},
		"set":    {"SET", "app:k", "v\x00", "PX", "1500"},
		"setnx":  {"SET", "app:k", "v", "NX", "PX", "1"},
		"getset": {"SET", "app:k", "", "GET", "PX", "3155760000000"},
		"incrby": {"EVALSHA", incrby.SHA1, "1", "app:k", "-7", "1000"},
		"del":    {"DEL", "app:k"},
	} {
		server := startFake(t)
		s := storeFor(t, server.address(), func(c *StoreConfig) { c.Prefix = "app:" })
		server.on(want[0], replies(":1\r\n"))
		scalarMethods[method](deadlined(t), s)
		if diff := cmp.Diff(want, server.received(want[0])); diff != "" {
			t.Errorf("%s sent (-want +got):\n%s", method, diff)
		}
		if n := server.count(want[0]); n != 1 {
			t.Errorf("%s was sent %d times", method, n)
		}
	}
}

// TestScalarReplies: what each reply means to each method. What the command cannot answer is
// CodeReply, never a value.
func TestScalarReplies(t *testing.T) {
	t.Parallel()
	reply := func(c store.Certainty, code store.Code) error { return &store.Error{Certainty: c, Code: code} }
	garbage := reply(store.Mismatched, store.CodeReply)
	wrongType := "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	long := strings.Repeat("x", store.MaxTextBytes)
	for method, rows := range map[string]map[string]scalarResult{
		"get": {
			bulk("v"): {"v", nil}, bulk(""): {"", nil}, bulk(long): {long, nil}, "$-1\r\n": {"", store.ErrNotFound},
			bulk(long + "x"): {"", garbage}, ":1\r\n": {"", garbage}, "*1\r\n$1\r\nv\r\n": {"", garbage}, "*0\r\n": {"", garbage},
			wrongType: {"", reply(store.Mismatched, store.CodeWrongType)}, "-NOPERM x\r\n": {"", reply(store.Refused, store.CodePermission)},
			"-ERR x\r\n": {"", reply(store.Uncertain, store.CodeProgramFailed)},
		},
		"set": {
			"+OK\r\n": {nil, nil}, bulk("OK"): {nil, nil}, "+QUEUED\r\n": {nil, garbage}, "$-1\r\n": {nil, garbage}, ":1\r\n": {nil, garbage},
			"*1\r\n+OK\r\n": {nil, garbage}, "-OOM x\r\n": {nil, reply(store.Refused, store.CodeOutOfMemory)},
			"-READONLY x\r\n": {nil, reply(store.Refused, store.CodeReadOnly)},
		},
		"setnx": {
			"+OK\r\n": {true, nil}, "$-1\r\n": {false, nil}, "+NO\r\n": {false, garbage}, ":0\r\n": {false, garbage}, "*-1\r\n": {false, garbage},
			"-MISCONF x\r\n": {false, reply(store.Refused, store.CodePersistence)},
		},
		"getset": {
			bulk("before"): {"before", nil}, bulk(""): {"", nil}, "$-1\r\n": {"", store.ErrNotFound}, "+OK\r\n": {"OK", nil},
			":1\r\n": {"", garbage}, "*1\r\n$1\r\nv\r\n": {"", garbage}, wrongType: {"", reply(store.Mismatched, store.CodeWrongType)},
		},
		"incrby": {
			":-7\r\n": {int64(-7), nil}, ":0\r\n": {int64(0), nil}, ":9007199254740991\r\n": {int64(1<<53 - 1), nil},
			":-9007199254740991\r\n": {int64(-1<<53 + 1), nil}, ":9007199254740992\r\n": {int64(0), garbage},
			":-9007199254740992\r\n": {int64(0), garbage}, bulk("1"): {int64(0), garbage}, "$-1\r\n": {int64(0), garbage},
			"*1\r\n:1\r\n": {int64(0), garbage}, bulk("NOT_INTEGERS"): {int64(0), garbage},
			bulk("NOT_INTEGER"):  {int64(0), reply(store.Refused, store.CodeNotInteger)},
			bulk("OUT_OF_RANGE"): {int64(0), reply(store.Refused, store.CodeOutOfRange)},
			wrongType:            {int64(0), reply(store.Mismatched, store.CodeWrongType)},
			"-ERR invalid expire time in 'set' command\r\n": {int64(0), reply(store.Uncertain, store.CodeProgramFailed)},
		},
		"del": {
			":0\r\n": {int64(0), nil}, ":1\r\n": {int64(1), nil}, ":2\r\n": {int64(0), garbage}, ":-1\r\n": {int64(0), garbage},
			"+OK\r\n": {int64(0), garbage}, "$-1\r\n": {int64(0), garbage}, "*1\r\n:1\r\n": {int64(0), garbage},
			"-READONLY x\r\n": {int64(0), reply(store.Refused, store.CodeReadOnly)},
		},
	} {
		command := map[string]string{"get": "GET", "incrby": "EVALSHA", "del": "DEL"}[method]
		if command == "" {
			command = "SET"
		}
		for raw, want := range rows {
			server := startFake(t)
			server.on(command, replies(raw))
			got := scalarMethods[method](deadlined(t), storeFor(t, server.address()))
			if got.value != want.value {
				t.Errorf("%s answered %.60q gives %.60v, want %.60v", method, raw, got.value, want.value)
			}
			var failure *store.Error
			if !errors.As(want.err, &failure) {
				if got.err != want.err { //nolint:errorlint // ErrNotFound comes bare.
					t.Errorf("%s answered %.60q gives %v, want %v", method, raw, got.err, want.err)
				}
				continue
			}
			wantFailure(t, asFailure(t, got.err), failure.Certainty, failure.Code)
			if t.Failed() {
				t.Fatalf("%s answered %.60q", method, raw)
			}
		}
	}
}

// TestScalarGate: before readiness, after Close, without a deadline and out of bounds nothing is sent.
func TestScalarGate(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	closed := storeFor(t, server.address())
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	late, cancelLate := context.WithTimeout(t.Context(), -time.Second)
	defer cancelLate()
	for method, call := range scalarMethods {
		for code, row := range map[store.Code]struct {
			s   *Store
			ctx context.Context //nolint:containedctx // A table of contexts.
		}{
			store.CodeNotReady:        {unreadyStore(t, server.address()), deadlined(t)},
			store.CodeClosed:          {closed, deadlined(t)},
			store.CodeInvalidArgument: {storeFor(t, server.address()), t.Context()},
			store.CodeCanceled:        {storeFor(t, server.address()), canceled},
			store.CodeDeadline:        {storeFor(t, server.address()), late},
		} {
			failure := asFailure(t, call(row.ctx, row.s).err)
			wantFailure(t, failure, store.NotSent, code)
			if failure != nil && failure.Op != method && failure.Op != "eval store-incrby-v1" {
				t.Errorf("%s: the operation is %q", method, failure.Op)
			}
		}
	}
	s := storeFor(t, server.address())
	if _, err := s.Eval(deadlined(t), fixedWindow, []string{""}, fixedWindowArguments(1)); asFailure(t, err).Code != store.CodeInvalidArgument {
		t.Errorf("a key of no bytes: %v", err)
	}
	if _, accepted := server.connections(); accepted != 0 {
		t.Errorf("%d connections were made", accepted)
	}
}

// TestScalarSilence: a command without an answer ends within the command timeout, uncertain, and is
// sent once.
func TestScalarSilence(t *testing.T) {
	t.Parallel()
	for method, call := range scalarMethods {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			server := startFake(t)
			for _, command := range []string{"GET", "SET", "EVALSHA", "DEL"} {
				server.on(command, swallows)
			}
			began := time.Now()
			wantFailure(t, asFailure(t, call(deadlined(t), storeFor(t, server.address())).err), store.Uncertain, store.CodeDeadline)
			if took := time.Since(began); took > 20*testTimeout {
				t.Errorf("took %v", took)
			}
			sent := 0
			for _, command := range []string{"GET", "SET", "EVALSHA", "DEL"} {
				sent += server.count(command)
			}
			if sent != 1 {
				t.Errorf("%d commands were sent, want 1", sent)
			}
		})
	}
}

// TestDelOfSeveral: one DEL for each key in order; what is known of all of them together.
func TestDelOfSeveral(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		replies   []string
		removed   int64
		certainty store.Certainty // CertaintyInvalid: no failure
		code      store.Code
	}{
		"all there":     {[]string{":1\r\n", ":1\r\n", ":1\r\n"}, 3, store.CertaintyInvalid, store.CodeInvalid},
		"one missing":   {[]string{":1\r\n", ":0\r\n", ":1\r\n"}, 2, store.CertaintyInvalid, store.CodeInvalid},
		"first refused": {[]string{"-READONLY x\r\n", ":1\r\n", ":1\r\n"}, 2, store.Uncertain, store.CodeReadOnly},
		"last refused":  {[]string{":1\r\n", ":0\r\n", "-NOPERM x\r\n"}, 1, store.Uncertain, store.CodePermission},
		"all refused":   {[]string{"-READONLY x\r\n", "-READONLY x\r\n", "-LOADING x\r\n"}, 0, store.Refused, store.CodeReadOnly},
		"one unknown":   {[]string{"-READONLY x\r\n", "-ERR x\r\n", "-READONLY x\r\n"}, 0, store.Uncertain, store.CodeReadOnly},
		"one garbage":   {[]string{":1\r\n", "+OK\r\n", ":1\r\n"}, 2, store.Uncertain, store.CodeReply},
		"all garbage":   {[]string{"+OK\r\n", ":2\r\n", "$-1\r\n"}, 0, store.Mismatched, store.CodeReply},
	} {
		server := startFake(t)
		var mu sync.Mutex
		var sent [][]string
		server.on("DEL", func(c *fakeConn, args []string) bool {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, args)
			return c.send(row.replies[len(sent)-1])
		})
		s := storeFor(t, server.address(), func(c *StoreConfig) { c.Prefix = "p:" })
		removed, err := s.Del(deadlined(t), "a", "b", "c")
		if removed != row.removed {
			t.Errorf("%s: %d removed, want %d", name, removed, row.removed)
		}
		if row.certainty == store.CertaintyInvalid {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else {
			wantFailure(t, asFailure(t, err), row.certainty, row.code)
		}
		mu.Lock()
		if diff := cmp.Diff([][]string{{"DEL", "p:a"}, {"DEL", "p:b"}, {"DEL", "p:c"}}, sent); diff != "" {
			t.Errorf("%s: sent (-want +got):\n%s", name, diff)
		}
		mu.Unlock()
	}
}

// TestDelIsCutOff: the connection breaks between two replies. Nothing is sent again.
func TestDelIsCutOff(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	server.on("DEL", func(c *fakeConn, args []string) bool { return args[1] == "a" && c.send(":1\r\n") })
	s := storeFor(t, server.address())
	_, err := s.Del(deadlined(t), "a", "b", "c")
	wantFailure(t, asFailure(t, err), store.Uncertain, store.CodeConnectionLost)
	if n := server.count("DEL"); n > 3 {
		t.Errorf("%d commands were received, want 3 at most", n)
	}
	wantSane(t, server, s, 0)
}

// TestProbeWithPrefix: readiness looks where programs write.
func TestProbeWithPrefix(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := unreadyStore(t, server.address(), func(c *StoreConfig) {
		c.Prefix, c.Programs = "app:", []*store.Program{store.StoreIncrByV1}
	})
	s.Start()
	waitReady(t, s)
	if key := server.received("PTTL")[1]; !strings.HasPrefix(key, "app:edgelimit:") || key != server.received("EVALSHA")[3] {
		t.Errorf("asked for the lifetime of %q", key)
	}
}
