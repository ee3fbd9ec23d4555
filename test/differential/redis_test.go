package differential

import (
	"context"
	"fmt"
	"maps"
	"os"
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
		if err := p.client.Del(context.Background(), fmt.Sprint(p.prefix, n+1)).Err(); err != nil {
			t.Errorf("remove: %v", err)
			return
		}
	}
}

func (p *probe) newKey() string { return fmt.Sprint(p.prefix, p.keys.Add(1)) }

// put makes the key hold exactly this hash, without a lifetime.
func (p *probe) put(t *testing.T, key string, hash model.Hash) {
	t.Helper()
	_, err := p.client.Pipelined(context.Background(), func(pipe redis.Pipeliner) error {
		pipe.Del(context.Background(), key)
		if hash != nil {
			pipe.HSet(context.Background(), key, map[string]string(hash))
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
	var pttl *redis.DurationCmd
	_, err := p.client.Pipelined(context.Background(), func(pipe redis.Pipeliner) error {
		reply = pipe.Eval(context.Background(), program.Source, []string{key}, args...)
		hash = pipe.HGetAll(context.Background(), key)
		pttl = pipe.PTTL(context.Background(), key)
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
	if len(hash.Val()) > 0 {
		o.hash = hash.Val()
	}
	return o
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
	after := want.After
	if want.Reply[0] == "ALLOWED" {
		after = maps.Clone(want.After)
		for field, value := range before {
			if _, ours := after[field]; !ours {
				after[field] = value
			}
		}
	}
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
func simulated(hash model.Hash, identity string) model.Hash {
	if hash == nil || hash["m"] != identity {
		return hash
	}
	clone := maps.Clone(hash)
	clone["m"] += ":sim"
	return clone
}

func name(parts ...string) string { return strings.Join(parts, " ") }
