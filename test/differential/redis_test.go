package differential

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/test/lanes"
	"github.com/edgelimit/edgelimit/test/model"
)

func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }

// probe runs programs on one Redis and reads what they leave.
type probe struct {
	client *redis.Client
	prefix string
	keys   atomic.Int64
}

func dial(t testing.TB, address string, protocol int) *probe {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: protocol, MaxRetries: -1, DisableIdentity: true})
	p := &probe{client: client, prefix: fmt.Sprintf("edgelimit-test:%s:%d:", t.Name(), time.Now().UnixNano())}
	t.Cleanup(func() {
		p.removeAll(t)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *probe) removeAll(t testing.TB) {
	t.Helper()
	for n := range p.keys.Load() {
		if err := p.client.Del(context.WithoutCancel(t.Context()), fmt.Sprint(p.prefix, n+1)).Err(); err != nil {
			t.Errorf("remove: %v", err)
			return
		}
	}
}

func (p *probe) newKey() string { return fmt.Sprint(p.prefix, p.keys.Add(1)) }

// put makes the key hold exactly this state of the model, without a lifetime.
func (p *probe) put(t *testing.T, m *model.Model, key string, state model.Hash) {
	t.Helper()
	_, err := p.client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Del(t.Context(), key)
		switch {
		case state == nil:
		case m.SortedSet():
			add := []any{"ZADD", key}
			for member, score := range state {
				add = append(add, score, member)
			}
			pipe.Do(t.Context(), add...)
		default:
			pipe.HSet(t.Context(), key, map[string]string(state))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("put: %v", err)
	}
}

// observed is what a call answered and left.
type observed struct {
	reply []any
	hash  model.Hash
	pttl  time.Duration // negative: no key, or no lifetime
}

// call runs the program once and reads state and lifetime after it.
func (p *probe) call(t *testing.T, m *model.Model, key string, args []any) observed {
	t.Helper()
	program, ok := lua.Find(m.Program)
	if !ok {
		t.Fatalf("no program %s", m.Program.ID())
	}
	var reply *redis.Cmd
	var hash *redis.MapStringStringCmd
	var set *redis.Cmd
	var pttl *redis.DurationCmd
	_, err := p.client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		reply = pipe.Eval(t.Context(), program.Source, []string{key}, args...)
		if m.SortedSet() {
			set = pipe.Do(t.Context(), "ZRANGE", key, 0, -1, "WITHSCORES")
		} else {
			hash = pipe.HGetAll(t.Context(), key)
		}
		pttl = pipe.PTTL(t.Context(), key)
		return nil
	})
	if err != nil {
		t.Fatalf("%s %v: %v", m.Program.ID(), args, err)
	}
	fields, err := reply.Slice()
	if err != nil {
		t.Fatalf("%s %v: %v", m.Program.ID(), args, err)
	}
	o := observed{reply: fields, pttl: pttl.Val()}
	if m.SortedSet() {
		o.hash = members(t, set)
	} else if len(hash.Val()) > 0 {
		o.hash = hash.Val()
	}
	return o
}

// members reads a sorted set with its scores as the server writes them, by RESP2 a flat list of texts
// and by RESP3 pairs with numbers.
func members(t *testing.T, reply *redis.Cmd) model.Hash {
	t.Helper()
	list, err := reply.Slice()
	if err != nil {
		t.Fatalf("members: %v", err)
	}
	if len(list) == 0 {
		return nil
	}
	set := model.Hash{}
	for i := 0; i < len(list); i++ {
		pair, paired := list[i].([]any)
		if !paired {
			pair = list[i : i+2]
			i++
		}
		score := fmt.Sprint(pair[1])
		if number, ok := pair[1].(float64); ok {
			score = strconv.FormatFloat(number, 'f', -1, 64)
		}
		set[fmt.Sprint(pair[0])] = score
	}
	return set
}

// check compares what was observed with what the model says. slack is how much of a lifetime may
// have passed between the call and its reading.
func check(t *testing.T, what string, o observed, before model.Hash, ttlBefore time.Duration, want model.Result, slack time.Duration) bool {
	t.Helper()
	fine := true
	if got, wanted := fmt.Sprint(o.reply...), fmt.Sprint(want.Reply[:]...); got != wanted {
		t.Errorf("%s: replied %v, want %v", what, o.reply, want.Reply)
		fine = false
	}
	after := want.Leaves(before)
	if !maps.Equal(o.hash, after) {
		t.Errorf("%s: left %v, want %v", what, o.hash, after)
		fine = false
	}
	ttl := time.Duration(want.TTL) * time.Millisecond
	if want.TTL == 0 {
		ttl = ttlBefore
	}
	if ttl < 0 && o.pttl >= 0 || ttl >= 0 && (o.pttl > ttl || o.pttl < ttl-slack) {
		t.Errorf("%s: left a lifetime of %v, want %v", what, o.pttl, ttl)
		fine = false
	}
	return fine
}

// simulated gives the state that the same calls would have left under a caller's clock.
func simulated(m *model.Model, state model.Hash) model.Hash {
	clone := maps.Clone(state)
	if !m.SortedSet() {
		if value, ours := state[m.Identity]; ours {
			delete(clone, m.Identity)
			clone[m.Identity+":sim"] = value
		}
		return clone
	}
	for member, score := range state {
		if rest, ours := strings.CutPrefix(member, m.Identity+" "); ours {
			delete(clone, member)
			clone[m.Identity+":sim "+rest] = score
		}
	}
	return clone
}

// ofSimulation reports whether a state says that a caller's clock made it.
func ofSimulation(m *model.Model, state model.Hash) bool {
	for member := range state {
		if m.SortedSet() && strings.HasPrefix(member, m.Identity+":sim ") {
			return true
		}
	}
	_, ours := state[m.Identity+":sim"]
	return ours
}

func name(parts ...string) string { return strings.Join(parts, " ") }
