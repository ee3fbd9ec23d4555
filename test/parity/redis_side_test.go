package parity

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/embedded"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// redisSide is the Lua on one Redis.
type redisSide struct {
	label  string
	prefix string
	client *redis.Client
	s      *cacheredis.Store
	clock  func(time.Time) // nil where it cannot be set
	millis int64           // where it was set last
}

// dump reads a key whole, at one moment with its lifetime.
const dump = `
local key = KEYS[1]
local kind = redis.call('TYPE', key)
if type(kind) == 'table' then kind = kind.ok end
local content = {}
if kind == 'string' then content = {redis.call('GET', key)}
elseif kind == 'hash' then content = redis.call('HGETALL', key)
elseif kind == 'zset' then content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
return {kind, redis.call('PTTL', key), content}`

var sides atomic.Int64

func newRedisSide(t testing.TB, label, address string, clock func(time.Time)) *redisSide {
	t.Helper()
	namespace := fmt.Sprintf("parity-%d-%d", os.Getpid(), sides.Add(1))
	s := &redisSide{
		label: label, prefix: "edgelimit:" + namespace + ":", clock: clock,
		client: redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ReadTimeout: time.Minute}),
	}
	var err error
	s.s, err = cacheredis.NewStore(cacheredis.StoreConfig{
		Address: address, CommandTimeout: 10 * time.Second, PoolSize: 2, Namespace: namespace, Prefix: s.prefix,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(t) })
	s.s.Start()
	if err := s.s.WaitReady(ctx(t)); err != nil {
		t.Fatalf("%s: %v", label, err)
	}
	// From here on every program is known by its digest.
	for _, p := range lua.Programs() {
		_ = s.client.Eval(t.Context(), p.Source, nil).Err() // Without a key it can only refuse.
	}
	return s
}

// end leaves nothing behind on a shared server.
func (s *redisSide) end(t testing.TB) {
	_ = s.s.Close()
	ctx := context.WithoutCancel(t.Context()) // Which has ended.
	keys := s.client.Scan(ctx, 0, s.prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := s.client.Del(ctx, keys.Val()).Err(); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	_ = s.client.Close()
}

// lanesOf gives the real Redis of each lane.
func lanesOf(t testing.TB) []*redisSide {
	t.Helper()
	var all []*redisSide
	for _, server := range lanes.All(t) {
		all = append(all, newRedisSide(t, server.Lane, server.Addr, nil))
	}
	return all
}

// clocked gives the three forms with clocks that a test sets: a real Redis, an embedded one, memory.
func clocked(t testing.TB) (server, small *redisSide, m *memorySide) {
	t.Helper()
	start := time.UnixMilli(firstMoment)
	stopped := lanes.StartFaketime(t)
	stopped.SetTime(start)
	inside := embedded.Start(t, start)
	return newRedisSide(t, "redis", stopped.Addr, stopped.SetTime), newRedisSide(t, "embedded", inside.Addr(), inside.SetTime), newMemorySide(t)
}

func (s *redisSide) name() string       { return s.label }
func (s *redisSide) store() store.Store { return s.s }
func (s *redisSide) setClock(ms int64) {
	if s.clock != nil && ms != s.millis {
		s.clock(time.UnixMilli(ms))
		s.millis = ms
	}
}

// text writes a reply as canonical does.
func text(reply any, err error) string {
	switch {
	case err != nil && strings.Contains(err.Error(), wrongType):
		return wrongType // Which is not its first word on the embedded Redis.
	case err == redis.Nil: //nolint:errorlint // It comes bare.
		return "nil"
	case err != nil:
		return failed
	}
	switch v := reply.(type) {
	case int64:
		return fmt.Sprintf("i:%d", v)
	case string:
		return fmt.Sprintf("s:%q", v)
	case nil:
		return "nil"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = text(v[i], nil)
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprintf("%T", reply)
}

func (s *redisSide) run(t testing.TB, program *store.Program, c call) seen {
	t.Helper()
	p, ok := lua.Find(program)
	if !ok {
		t.Fatalf("no program %s", program.ID())
	}
	background := t.Context()
	args := make([]any, len(c.args))
	for i, arg := range c.args {
		args[i] = arg
	}
	keys := make([]string, len(c.keys))
	for i, key := range c.keys {
		keys[i] = s.prefix + key
	}
	var now *redis.TimeCmd
	var reply, left *redis.Cmd
	_, err := s.client.TxPipelined(background, func(pipe redis.Pipeliner) error {
		now = pipe.Time(background)
		reply = pipe.EvalSha(background, p.SHA1, keys, args...)
		left = pipe.Eval(background, dump, keys[:min(1, len(keys))])
		return nil
	})
	if now.Err() != nil || len(keys) > 0 && left.Err() != nil {
		t.Fatalf("%s: %v: %v, %v", s.label, c, err, left.Err())
	}
	o := seen{reply: text(reply.Result()), now: now.Val().UnixMilli()}
	if len(keys) > 0 {
		o.state, o.pttl = s.parse(t, left)
	}
	return o
}

func (s *redisSide) look(t testing.TB, key string) (state, int64) {
	t.Helper()
	return s.parse(t, s.client.Eval(t.Context(), dump, []string{s.prefix + key}))
}

func (s *redisSide) parse(t testing.TB, cmd *redis.Cmd) (state, int64) {
	t.Helper()
	fields, err := cmd.Slice()
	if err != nil {
		t.Fatalf("%s: look: %v", s.label, err)
	}
	kind, _ := fields[0].(string)
	pttl, _ := fields[1].(int64)
	content, _ := fields[2].([]any)
	left := state{kind: kind}
	switch kind {
	case "string":
		left.text = fmt.Sprint(content[0])
	case "hash", "zset":
		left.pairs = make(map[string]string, len(content)/2)
		for i := 0; i < len(content); i += 2 {
			left.pairs[fmt.Sprint(content[i])] = fmt.Sprint(content[i+1])
		}
	}
	return left, pttl
}

func (s *redisSide) put(t testing.TB, key string, to state, pttl int64) {
	t.Helper()
	background := t.Context()
	physical := s.prefix + key
	_, err := s.client.TxPipelined(background, func(pipe redis.Pipeliner) error {
		pipe.Del(background, physical)
		switch to.kind {
		case "string":
			pipe.Set(background, physical, to.text, 0)
		case "hash":
			pipe.HSet(background, physical, to.pairs)
		case "zset":
			for member, score := range to.pairs {
				pipe.ZAdd(background, physical, redis.Z{Score: float64(number(score)), Member: member})
			}
		}
		if pttl >= 0 && to.kind != "none" {
			pipe.Do(background, "PEXPIRE", physical, pttl)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: put: %v", s.label, err)
	}
}

// field is the i-th value of a canonical reply.
func field(reply string, i int) string {
	fields := strings.Fields(strings.Trim(reply, "[]"))
	if i >= len(fields) {
		return ""
	}
	return fields[i]
}
