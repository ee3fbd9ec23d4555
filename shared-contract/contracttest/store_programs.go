package contracttest

import (
	"fmt"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func storeProgramTests() []storeTest {
	return []storeTest{
		{name: "EvalStructured", run: evalStructured},
		{name: "EvalScalar", run: evalScalar},
		{name: "EvalClock", needs: []StoreCapability{StoreSetTime}, run: evalClock},
		{name: "EvalClockArgumentIsIgnored", run: evalClockArgumentIsIgnored},
		{name: "EvalArguments", run: evalArguments},
		{name: "EvalUnknownProgram", run: evalUnknownProgram},
	}
}

// evalStructured: a program that answers several values gives as many as it is described with.
func evalStructured(h *storeHarness) {
	for remaining := int64(9); remaining >= 0; remaining-- {
		reply, err := evalFixedWindow(h.ctx(), h.s, "k", int64(0))
		h.ok("Eval", err)
		if reply.Len() != len(store.RateFixedWindowV1.Reply) || reply.At(0) != store.Text("ALLOWED") || reply.At(4) != store.Integer(remaining) {
			h.Fatalf("replied %v, want ALLOWED with %d remaining", reply, remaining)
		}
	}
	reply, err := evalFixedWindow(h.ctx(), h.s, "k", int64(0))
	if err != nil || reply.At(0) != store.Text("DENIED") {
		h.Fatalf("replied %v, %v, want DENIED", reply, err)
	}
	if reply, err := evalFixedWindow(h.ctx(), h.s, "other", int64(0)); err != nil || reply.At(4) != store.Integer(9) {
		h.Fatalf("another key: replied %v, %v", reply, err)
	}
}

// evalScalar: a program that answers one value gives one, whatever form its arguments have.
func evalScalar(h *storeHarness) {
	for i, args := range [][]any{{int64(5), int64(60_000)}, {"5", "60000"}, {int64(5), "60000"}} {
		reply, err := h.s.Eval(h.ctx(), store.StoreIncrByV1, []string{"n"}, args)
		if want := store.Integer(int64(5 * (i + 1))); err != nil || reply.Len() != 1 || reply.At(0) != want {
			h.Fatalf("replied %v, %v, want %v", reply, err, want)
		}
	}
	h.set("n", "x", time.Minute)
	if reply, err := h.s.Eval(h.ctx(), store.StoreIncrByV1, []string{"n"}, []any{int64(1), int64(1)}); err != nil || reply.At(0) != store.Text("NOT_INTEGER") {
		h.Fatalf("replied %v, %v, want NOT_INTEGER", reply, err)
	}
}

// evalClock: programs decide by the store's clock, or by the caller's where the store is made so.
func evalClock(h *storeHarness) {
	for range 3 {
		now := h.b.Now().UnixMilli()
		if h.b.Clock == store.ClockCaller {
			now = h.b.CallerMillis()
		}
		reply, err := evalFixedWindow(h.ctx(), h.s, "k", int64(0))
		if want := store.Integer(now); err != nil || reply.At(1) != want {
			h.Fatalf("replied %v, %v at %v", reply, err, want)
		}
		h.advance(1234 * time.Millisecond)
	}
}

// evalClockArgumentIsIgnored: whatever a caller passes in its place, the store fills it in.
func evalClockArgumentIsIgnored(h *storeHarness) {
	var first store.Value
	for i, clock := range []any{int64(0), int64(1), "nonsense", int64(-1), "", int64(1 << 42)} {
		reply, err := evalFixedWindow(h.ctx(), h.s, fmt.Sprint("k", i), clock)
		if err != nil || reply.At(0) != store.Text("ALLOWED") {
			h.Fatalf("clock %v: replied %v, %v", clock, reply, err)
		}
		now := reply.At(1)
		if i == 0 {
			first = now
		}
		if now.Int < first.Int || now.Int > first.Int+storePatience.Milliseconds() {
			h.Errorf("clock %v: decided at %v, before that at %v", clock, now, first)
		}
	}
}

// evalArguments: what does not fit the descriptor is not sent.
func evalArguments(h *storeHarness) {
	good := []any{int64(1), int64(60_000)}
	for what, row := range map[string]struct {
		keys []string
		args []any
	}{
		"no key":            {nil, good},
		"two keys":          {[]string{"k", "l"}, good},
		"no arguments":      {[]string{"k"}, nil},
		"one argument less": {[]string{"k"}, good[:1]},
		"one argument more": {[]string{"k"}, []any{int64(1), int64(2), int64(3)}},
		"an empty key":      {[]string{""}, good},
		"a long key":        {[]string{strings.Repeat("k", store.MaxKeyBytes+1)}, good},
		"an int":            {[]string{"k"}, []any{1, int64(2)}},
		"a float":           {[]string{"k"}, []any{int64(1), 2.0}},
		"a bool":            {[]string{"k"}, []any{true, int64(2)}},
		"bytes":             {[]string{"k"}, []any{[]byte("1"), int64(2)}},
		"nil":               {[]string{"k"}, []any{int64(1), nil}},
		"a duration":        {[]string{"k"}, []any{int64(1), time.Minute}},
	} {
		_, err := h.s.Eval(h.ctx(), store.StoreIncrByV1, row.keys, row.args)
		h.failed(what, err, store.NotSent, store.CodeInvalidArgument)
	}
	h.absent("k")
}

func evalUnknownProgram(h *storeHarness) {
	for _, program := range []*store.Program{nil, {}, {Name: "nobody-knows", Version: 1}, {Name: store.StoreIncrByV1.Name, Version: 99, Keys: 1}} {
		_, err := h.s.Eval(h.ctx(), program, []string{"k"}, []any{int64(1), int64(2)})
		h.failed("an unknown program", err, store.NotSent, store.CodeUnknownProgram)
	}
}
