package parity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// programID names a program in reports.
type programID string

// seen is what a run of a program answered and left.
type seen struct {
	reply string // canonical; WRONGTYPE or FAILED for an error
	state state
	pttl  int64 // ms, -1 without a lifetime, -2 without a key
	now   int64 // ms, the side's clock just before the run
}

// side is one place where programs run.
type side interface {
	name() string
	// run runs a program on a key and reads what it leaves there.
	run(t testing.TB, program *store.Program, c call) seen
	// put places a state with a lifetime in ms, or without one where it is negative.
	put(t testing.TB, key string, s state, pttl int64)
	// store is the side as a store.Store.
	store() store.Store
	// look reads what stands at a key of that store.
	look(t testing.TB, key string) (state, int64)
	// setClock sets the clock, where it can be set.
	setClock(ms int64)
}

// canonical writes a reply as text.
func canonical(program *store.Program, reply store.Reply) string {
	var parts []string
	for i := range reply.Len() {
		switch v := reply.At(i); v.Kind {
		case store.ValueInteger:
			parts = append(parts, fmt.Sprintf("i:%d", v.Int))
		case store.ValueText:
			parts = append(parts, fmt.Sprintf("s:%q", v.Text))
		case store.ValueNil:
			parts = append(parts, "nil")
		case store.ValueNone:
			parts = append(parts, "none")
		}
	}
	if len(program.Reply) == 1 {
		return strings.Join(parts, " ")
	}
	return "[" + strings.Join(parts, " ") + "]"
}

const (
	wrongType = "WRONGTYPE"
	failed    = "FAILED"
)

// memorySide is the Go handlers.
type memorySide struct {
	millis int64
	s      *memory.Store
	inside func(tx *memory.Tx, key string) error
}

// reach hands a key to the test.
var reach = &store.Program{Name: "test-reach", Version: 1, Keys: 1, Reply: []store.Field{{Name: "done"}}}

func newMemorySide(t testing.TB) *memorySide {
	t.Helper()
	m := &memorySide{millis: firstMoment}
	var err error
	m.s, err = memory.NewStore(memory.StoreConfig{Clock: func() time.Time { return time.UnixMilli(m.millis) }, MaxKeys: 1000})
	if err != nil {
		t.Fatal(err)
	}
	err = m.s.Register(reach, func(tx *memory.Tx, keys, _ []string) (store.Reply, error) {
		if err := m.inside(tx, keys[0]); err != nil {
			return store.Reply{}, err
		}
		return store.NewReply(store.Integer(1))
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (*memorySide) name() string         { return "memory" }
func (m *memorySide) store() store.Store { return m.s }
func (m *memorySide) setClock(ms int64)  { m.millis = ms }

// ctx has a deadline that a test does not reach.
func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return c
}

// within does something to a key as a program would.
func (m *memorySide) within(t testing.TB, key string, f func(tx *memory.Tx, key string) error) {
	t.Helper()
	m.inside = f
	c, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := m.s.Eval(c, reach, []string{key}, nil); err != nil {
		t.Fatalf("memory: %v", err)
	}
}

func (m *memorySide) run(t testing.TB, program *store.Program, c call) seen {
	t.Helper()
	// A descriptor of the same ID under which the store fills in nothing and refuses no number of
	// arguments: the handler gets what Redis gets.
	wire := &store.Program{
		Name: program.Name, Version: program.Version, Keys: len(c.keys), Args: make([]store.Field, len(c.args)), Reply: program.Reply,
	}
	args := make([]any, len(c.args))
	for i, arg := range c.args {
		args[i] = arg
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o := seen{now: m.millis}
	reply, err := m.s.Eval(limited, wire, c.keys, args)
	var failure *store.Error
	switch {
	case err == nil:
		o.reply = canonical(program, reply)
	case errors.As(err, &failure) && failure.Code == store.CodeWrongType:
		o.reply = wrongType
	case errors.As(err, &failure) && failure.Code == store.CodeProgramFailed:
		o.reply = failed
	default:
		t.Fatalf("memory: %v: %v", c, err)
	}
	if len(c.keys) > 0 {
		o.state, o.pttl = m.look(t, c.keys[0])
	}
	return o
}

// look gives a key's lifetime as far as Lua can tell it: beyond 2^53 ms it is rounded.
func (m *memorySide) look(t testing.TB, key string) (s state, pttl int64) {
	t.Helper()
	m.within(t, key, func(tx *memory.Tx, key string) error {
		pttl = int64(float64(tx.PTTL(key)))
		s.kind = tx.Type(key)
		switch s.kind {
		case "string":
			var err error
			s.text, _, err = tx.GetString(key)
			return err
		case "hash":
			var err error
			s.pairs, err = tx.HashGetAll(key)
			return err
		case "zset":
			members, err := tx.ZRangeByRank(key, 0, -1)
			s.pairs = make(map[string]string, len(members))
			for _, member := range members {
				s.pairs[member.Name] = fmt.Sprint(member.Score)
			}
			return err
		}
		return nil
	})
	return s, pttl
}

func (m *memorySide) put(t testing.TB, key string, s state, pttl int64) {
	t.Helper()
	m.within(t, key, func(tx *memory.Tx, key string) error {
		tx.Delete(key)
		switch s.kind {
		case "string":
			if err := tx.SetStringKeepTTL(key, s.text); err != nil {
				return err
			}
		case "hash":
			for field, value := range s.pairs {
				if err := tx.HashSet(key, field, value); err != nil {
					return err
				}
			}
		case "zset":
			for member, score := range s.pairs {
				if _, err := tx.ZAdd(key, number(score), member); err != nil {
					return err
				}
			}
		}
		if pttl >= 0 && s.kind != "none" {
			tx.PExpire(key, pttl)
		}
		return nil
	})
}
