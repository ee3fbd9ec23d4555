package differential

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/vectors"
)

// TestInvalidArguments puts each argument of each program out of its type and range, one at a time:
// INVALID, with the clock read, and nothing stored.
func TestInvalidArguments(t *testing.T) {
	for lane, server := range servers(t) {
		p := dial(t, server.Addr, 2)
		for _, program := range vectors.Programs() {
			file, err := vectors.Load(program)
			if err != nil {
				t.Fatal(err)
			}
			m := vectors.Model(program, file.Vectors[0].Policy)
			for i, field := range m.Program.Args {
				odd := []any{"", " ", "-1", "+1", "1.5", "1e3", "nan", "inf", "0x1", "1 ", "12345678901234567", "00000000000000001", fmt.Sprint(field.Max + 1)}
				if field.Kind == store.FieldText {
					odd = []any{"", "1:xx:1:golden", "x" + m.Identity, m.Identity + fmt.Sprintf("%064d", 0)}
				} else if field.Min > 0 {
					odd = append(odd, "0")
				}
				for _, value := range odd {
					args := m.Args(1, 1)
					args[i] = value
					if slices.Contains([]string{"limit", "capacity", "burst", "numerator", "denominator", "period"}, field.Name) {
						args[len(args)-2] = 1
					}
					key := p.newKey()
					o := p.call(t, m, key, args)
					what := name(lane, program, field.Name, fmt.Sprintf("%q", value))
					if o.reply[0] != "INVALID" {
						t.Errorf("%s: replied %v", what, o.reply)
					}
					if now, ok := o.reply[1].(int64); !ok || time.Since(time.UnixMilli(now)).Abs() > time.Hour || o.reply[2] != o.reply[1] {
						t.Errorf("%s: replied %v, want the server's clock twice", what, o.reply)
					}
					if o.hash != nil {
						t.Errorf("%s: left %v", what, o.hash)
					}
				}
			}
			// 16 digits are not too many, whatever they begin with.
			padded := m.Args(1, 1)
			for i, arg := range padded[1:] {
				padded[i+1] = fmt.Sprintf("%016d", arg)
			}
			if o := p.call(t, m, p.newKey(), padded); o.reply[0] != "ALLOWED" {
				t.Errorf("%s with 16 digits in each argument: replied %v", program, o.reply)
			}
			for _, args := range [][]any{m.Args(1, 1)[1:], append(m.Args(1, 1), "1")} {
				if o := p.call(t, m, p.newKey(), args); o.reply[0] != "INVALID" {
					t.Errorf("%s with %d arguments: replied %v", program, len(args), o.reply)
				}
			}
			// A cost above the limit is out of range too, at its edge.
			if o := p.call(t, m, p.newKey(), m.Args(m.Limit()+1, 1)); o.reply[0] != "INVALID" {
				t.Errorf("%s with a cost above the limit: replied %v", program, o.reply)
			}
			if o := p.call(t, m, p.newKey(), m.Args(m.Limit(), 1)); o.reply[0] != "ALLOWED" {
				t.Errorf("%s with a cost at the limit: replied %v", program, o.reply)
			}
		}
	}
}

// TestForeignTypes puts keys of every other type where the state should be: STATE_INCOMPATIBLE, and
// they stay as they were (casebook 23).
func TestForeignTypes(t *testing.T) {
	ctx := t.Context()
	kinds := map[string]func(c *redis.Client, key string) error{
		"string":       func(c *redis.Client, key string) error { return c.Set(ctx, key, "x", 0).Err() },
		"empty string": func(c *redis.Client, key string) error { return c.Set(ctx, key, "", 0).Err() },
		"list":         func(c *redis.Client, key string) error { return c.RPush(ctx, key, "x").Err() },
		"set":          func(c *redis.Client, key string) error { return c.SAdd(ctx, key, "x").Err() },
		"sorted set":   func(c *redis.Client, key string) error { return c.ZAdd(ctx, key, redis.Z{Score: 1, Member: "x"}).Err() },
		"stream": func(c *redis.Client, key string) error {
			return c.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"a", "b"}}).Err()
		},
		"hash": func(c *redis.Client, key string) error { return c.HSet(ctx, key, "a", "b").Err() },
	}
	for lane, server := range servers(t) {
		p := dial(t, server.Addr, 2)
		for _, program := range vectors.Programs() {
			file, err := vectors.Load(program)
			if err != nil {
				t.Fatal(err)
			}
			m := vectors.Model(program, file.Vectors[0].Policy)
			source, ok := lua.Find(m.Program)
			if !ok {
				t.Fatal(program)
			}
			for kind, put := range kinds {
				key := p.newKey()
				if err := put(p.client, key); err != nil {
					t.Fatal(err)
				}
				before := p.client.Dump(ctx, key).Val()
				reply, err := p.client.Eval(ctx, source.Source, []string{key}, m.Args(1, 0)...).Slice()
				if err != nil || reply[0] != "STATE_INCOMPATIBLE" {
					t.Errorf("%s: %s over a %s: replied %v, %v", lane, program, kind, reply, err)
				}
				if after := p.client.Dump(ctx, key).Val(); after != before {
					t.Errorf("%s: %s changed a %s", lane, program, kind)
				}
			}
		}
	}
}

// TestProtocolsAgree gives the same replies by RESP2 and RESP3 (casebook 9); TYPE, whose reply differs
// by protocol and server, is read on the way.
func TestProtocolsAgree(t *testing.T) {
	for lane, server := range servers(t) {
		two, three := dial(t, server.Addr, 2), dial(t, server.Addr, 3)
		for _, program := range vectors.Programs() {
			file, err := vectors.Load(program)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range file.Vectors[:12] {
				m := vectors.Model(program, v.Policy)
				before := simulated(m, v.Before)
				keys := [2]string{two.newKey(), three.newKey() + ":3"}
				two.put(t, m, keys[0], before)
				three.put(t, m, keys[1], before)
				a, b := two.call(t, m, keys[0], m.Args(v.Cost, v.Now)), three.call(t, m, keys[1], m.Args(v.Cost, v.Now))
				three.put(t, m, keys[1], nil)
				if !reflect.DeepEqual(a.reply, b.reply) || !reflect.DeepEqual(a.hash, b.hash) {
					t.Errorf("%s: %s: RESP2 %v %v, RESP3 %v %v", lane, v.Name, a.reply, a.hash, b.reply, b.hash)
				}
			}
		}
	}
}
