package parity

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// method is one call of a scalar method.
type method struct {
	name  string
	keys  []string
	value string
	delta int64
	ttl   time.Duration
}

// answer writes what a method gave as text: value, or certainty and code.
func answer(value any, err error) string {
	var failure *store.Error
	switch {
	case err == store.ErrNotFound: //nolint:errorlint // It comes bare.
		return fmt.Sprintf("%q not found", fmt.Sprint(value))
	case errors.As(err, &failure):
		return fmt.Sprintf("%v %v %v", value, failure.Certainty, failure.Code)
	case err != nil:
		return fmt.Sprintf("%v %v", value, err)
	}
	return fmt.Sprintf("%q", fmt.Sprint(value))
}

func (c method) on(t testing.TB, s store.Store) string {
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	switch c.name {
	case "Get":
		return answer(s.Get(limited, c.keys[0]))
	case "Set":
		return answer("", s.Set(limited, c.keys[0], c.value, c.ttl))
	case "SetNX":
		return answer(s.SetNX(limited, c.keys[0], c.value, c.ttl))
	case "GetSet":
		return answer(s.GetSet(limited, c.keys[0], c.value, c.ttl))
	case "IncrBy":
		return answer(s.IncrBy(limited, c.keys[0], c.delta, c.ttl))
	case "Del":
		return answer(s.Del(limited, c.keys...))
	}
	t.Fatalf("no method %s", c.name)
	return ""
}

var scalarKeys = []string{"a", "b", "c\x00", "{d}"}

// randomMethod gives a method on one of a few keys, one in twelve out of its bounds.
func randomMethod(r *rand.Rand) method {
	c := method{
		name: pick(r, "Get", "Set", "SetNX", "GetSet", "IncrBy", "IncrBy", "IncrBy", "Del"),
		keys: []string{pick(r, scalarKeys...)}, value: pick(r, integers...),
		delta: scale(r, mostExact) * pick[int64](r, -1, 1), ttl: time.Duration(scale(r, pick[int64](r, 100, mostHorizon))) * time.Millisecond,
	}
	switch r.IntN(4) {
	case 0:
		c.value = pick(r, oddTexts...)
	case 1:
		c.value = strings.Repeat("v\x00\xff", r.IntN(1000))
	}
	if r.IntN(2) == 0 {
		c.delta = pick[int64](r, 0, 1, -1, mostExact, -mostExact)
	}
	if c.name == "Del" {
		for r.IntN(2) == 0 {
			c.keys = append(c.keys, pick(r, scalarKeys...))
		}
	}
	if r.IntN(12) == 0 {
		switch r.IntN(4) {
		case 0:
			c.keys = []string{pick(r, "", strings.Repeat("k", store.MaxKeyBytes+1))}
		case 1:
			c.value = strings.Repeat("v", store.MaxTextBytes+1-r.IntN(20)/19)
		case 2:
			c.delta = pick[int64](r, mostExact+1, -mostExact-1, 1<<63-1, -1<<63)
		default:
			c.ttl = pick(r, 0, -1, time.Millisecond-1, time.Millisecond+1, store.MaxTTL, store.MaxTTL+time.Millisecond)
		}
	}
	return c
}

// TestScalarMethods walks random methods over a few keys of the Redis store on a real and on an embedded
// Redis, and of the memory store: answers, failures, states and lifetimes are equal.
func TestScalarMethods(t *testing.T) {
	r := source(t)
	server, small, m := clocked(t)
	sides := []side{m, server, small}
	now := int64(30 * year)
	for step := range *steps / 2 {
		now = within(move(r, now, pick[int64](r, 50, 1<<36), 1000, 50), 30*year, 40*year)
		for _, s := range sides {
			s.setClock(now)
		}
		if r.IntN(10) == 0 {
			key, to, pttl := pick(r, scalarKeys...), foreign(r), pick(r, -1, scale(r, year))
			for _, s := range sides {
				s.put(t, key, to, pttl)
			}
		}
		c := randomMethod(r)
		raised := false // whether the embedded Redis will have put another word before an error
		if c.name == "IncrBy" && store.CheckKey(c.keys[0]) == nil {
			s, _ := m.look(t, c.keys[0])
			raised = s.kind != "none" && s.kind != "string"
		}
		want := c.on(t, m.store())
		for _, s := range sides[1:] {
			if raised && s == side(small) {
				continue
			}
			if got := c.on(t, s.store()); got != want {
				t.Fatalf("step %d, at %d: %.200v: %s gives %.200s, memory %.200s", step, now, c, s.name(), got, want)
			}
		}
		for _, key := range scalarKeys {
			want, wantTTL := m.look(t, key)
			for _, s := range sides[1:] {
				if beyondEmbedded(seen{state: want, pttl: wantTTL}) && s == side(small) {
					continue
				}
				if got, gotTTL := s.look(t, key); !got.equal(want) || gotTTL != wantTTL {
					t.Fatalf("step %d, at %d: %.200v: %s has %.200v for %d ms, memory %.200v for %d ms", step, now, c, s.name(), got, gotTTL, want, wantTTL)
				}
			}
		}
	}
}

// TestScalarMethodsOnEachLane does the same on the real Redis of each lane, with lifetimes that do not
// end meanwhile.
func TestScalarMethodsOnEachLane(t *testing.T) {
	for _, lane := range lanesOf(t) {
		t.Run(lane.label, func(t *testing.T) {
			r := source(t)
			m := newMemorySide(t)
			for step := range *steps / 2 {
				m.setClock(time.Now().UnixMilli())
				if r.IntN(10) == 0 {
					key, to := pick(r, scalarKeys...), foreign(r)
					lane.put(t, key, to, -1)
					m.put(t, key, to, -1)
				}
				c := randomMethod(r)
				if c.ttl >= time.Millisecond && c.ttl <= 10*slack*time.Millisecond {
					c.ttl += 10 * slack * time.Millisecond
				}
				want := c.on(t, m.store())
				if got := c.on(t, lane.store()); got != want {
					t.Fatalf("step %d: %.200v: %s gives %.200s, memory %.200s", step, c, lane.label, got, want)
				}
				for _, key := range scalarKeys {
					want, wantTTL := m.look(t, key)
					got, gotTTL := lane.look(t, key)
					alike := gotTTL == wantTTL || gotTTL >= 0 && wantTTL >= 0 && max(gotTTL-wantTTL, wantTTL-gotTTL) < slack
					if !got.equal(want) || !alike {
						t.Fatalf("step %d: %.200v: %s has %.200v for %d ms, memory %.200v for %d ms", step, c, lane.label, got, gotTTL, want, wantTTL)
					}
				}
			}
		})
	}
}
