package differential

import (
	"reflect"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/test/model"
	"github.com/edgelimit/edgelimit/test/vectors"
)

// counter counts the commands that a program sends.
func counter(t *testing.T, client *redis.Client, m *model.Model, key string) func(args []any) map[string]int64 {
	ctx := t.Context()
	return func(args []any) map[string]int64 {
		t.Helper()
		if err := client.ConfigResetStat(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		source, _ := lua.Find(m.Program)
		if err := client.Eval(ctx, source.Source, []string{key}, args...).Err(); err != nil {
			t.Fatal(err)
		}
		return commandCounts(t, client)
	}
}

// TestOneRead counts the commands of each call in commandstats: one read, one write, PEXPIRE only
// where the lifetime must move, TYPE only where the read does not explain itself.
func TestOneRead(t *testing.T) {
	p := dial(t, startPrivate(t), 2)
	for _, program := range vectors.Programs() {
		file, err := vectors.Load(program)
		if err != nil {
			t.Fatal(err)
		}
		m := vectors.Model(program, file.Vectors[0].Policy)
		if m.SortedSet() {
			continue // TestCallsOfTheSlidingLog
		}
		count := counter(t, p.client, m, p.newKey())
		for _, c := range []struct {
			what string
			cost int64
			want map[string]int64
		}{
			{"on a new key", 1, map[string]int64{"eval": 1, "time": 1, "hget": 1, "type": 1, "pexpire": 2, "hset": 1}},
			{"again", 1, map[string]int64{"eval": 1, "time": 1, "hget": 1, "hset": 1}},
			{"denied", m.Limit(), map[string]int64{"eval": 1, "time": 1, "hget": 1}},
		} {
			if got := count(m.Args(c.cost, 0)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s %s: %v, want %v", program, c.what, got, c.want)
			}
		}
	}
}

// TestCallsOfTheSlidingLog: one read as long as the oldest entry is live, a second where time has moved
// over it, and a search only where costs are uneven; three writes, and none of a denial.
func TestCallsOfTheSlidingLog(t *testing.T) {
	p := dial(t, startPrivate(t), 2)
	m := vectors.Model("rate-sliding-log-v1", vectors.Policy{Revision: 1, Limit: 1000, Window: 1000, Grace: 60_000})
	count := counter(t, p.client, m, p.newKey())
	const start = 1_800_000_000_000
	one, search := map[string]int64{"eval": 1, "time": 1, "zrange": 1}, map[string]int64{"eval": 1, "time": 1, "zrange": 11}
	for _, c := range []struct {
		what     string
		at, cost int64
		want     map[string]int64
	}{
		{"on a new key", 0, 1, map[string]int64{"eval": 1, "time": 1, "zrange": 1, "zremrangebyscore": 1, "pexpire": 2, "zadd": 1}},
		{"again", 10, 900, map[string]int64{"eval": 1, "time": 1, "zrange": 1, "zremrangebyscore": 1, "pexpire": 1, "zadd": 1}},
		{"denied until the oldest goes", 20, 100, one},
		{"denied until another goes", 20, 101, search},
		{"when the oldest has gone", 1000, 1, map[string]int64{"eval": 1, "time": 1, "zrange": 2, "zremrangebyscore": 1, "pexpire": 1, "zadd": 1}},
		{"when all have gone", 2000, 1, map[string]int64{"eval": 1, "time": 1, "zrange": 1, "zremrangebyscore": 1, "pexpire": 2, "zadd": 1}},
	} {
		got := count(m.Args(c.cost, start+c.at))
		if c.want["zrange"] > 2 && got["zrange"] > 2 && got["zrange"] <= c.want["zrange"] {
			got["zrange"] = c.want["zrange"] // At most the logarithm of the limit.
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
