package parity

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// command is one that a handler may use: as Redis takes it, and as a Tx does.
type command struct {
	redis []any // without the key, which stands after the first
	tx    func(tx *memory.Tx, key string) (string, error)
}

func whether(yes bool, err error) (string, error) {
	if yes {
		return "i:1", err
	}
	return "i:0", err
}

func count(n int64, err error) (string, error) { return fmt.Sprintf("i:%d", n), err }

func members(all []memory.Member, err error) (string, error) {
	flat := make([]any, 0, 2*len(all))
	for _, m := range all {
		flat = append(flat, m.Name, fmt.Sprint(m.Score))
	}
	return text(flat, nil), err
}

func done(err error) (string, error) { return `s:"OK"`, err }

// bound writes the bound of a range of scores.
func bound(n int64) string {
	switch n {
	case math.MinInt64:
		return "-inf"
	case math.MaxInt64:
		return "+inf"
	}
	return decimal(n)
}

// randomCommand gives any of them, on names and scores so few that they meet.
func randomCommand(r *rand.Rand) command {
	name := pick(r, "", "a", "b", "c\x00", "\xff", "z", "00", "0")
	value := pick(r, "", "1", "v\x00", "\xfe")
	score := pick[int64](r, -mostExact, -1, 0, 1, 2, 3, 1_700_000_000_000, mostExact)
	low, high := pick[int64](r, math.MinInt64, -1, 0, 1, 2, 3, mostExact), pick[int64](r, math.MaxInt64, math.MaxInt64, -2, 0, 1, 2, mostExact)
	start, stop := r.Int64N(9)-4, r.Int64N(9)-4
	offset, limit := r.Int64N(4)-1, r.Int64N(5)-1
	ms := pick[int64](r, -5, 0, 1, 2, 100, mostHorizon)
	switch r.IntN(20) {
	case 0:
		return command{[]any{"TYPE"}, func(tx *memory.Tx, key string) (string, error) { return fmt.Sprintf("s:%q", tx.Type(key)), nil }}
	case 1:
		return command{[]any{"EXISTS"}, func(tx *memory.Tx, key string) (string, error) { return whether(tx.Exists(key), nil) }}
	case 2:
		return command{[]any{"DEL"}, func(tx *memory.Tx, key string) (string, error) { return count(tx.Delete(key), nil) }}
	case 3:
		return command{[]any{"PTTL"}, func(tx *memory.Tx, key string) (string, error) { return count(tx.PTTL(key), nil) }}
	case 4:
		return command{[]any{"PEXPIRE", ms}, func(tx *memory.Tx, key string) (string, error) { return whether(tx.PExpire(key, ms), nil) }}
	case 5:
		return command{[]any{"GET"}, func(tx *memory.Tx, key string) (string, error) {
			found, ok, err := tx.GetString(key)
			if !ok {
				return "nil", err
			}
			return fmt.Sprintf("s:%q", found), err
		}}
	case 6:
		ms = max(ms, 1)
		return command{[]any{"SET", value, "PX", ms}, func(tx *memory.Tx, key string) (string, error) { return done(tx.SetString(key, value, ms)) }}
	case 7:
		return command{[]any{"SET", value, "KEEPTTL"}, func(tx *memory.Tx, key string) (string, error) { return done(tx.SetStringKeepTTL(key, value)) }}
	case 8:
		return command{[]any{"HMGET", name, "a", "b"}, func(tx *memory.Tx, key string) (string, error) {
			values, err := tx.HashGet(key, name, "a", "b")
			flat := make([]any, len(values))
			for i, v := range values {
				if v.Kind == store.ValueText {
					flat[i] = v.Text
				}
			}
			return text(flat, nil), err
		}}
	case 9, 10:
		return command{[]any{"HMSET", name, value, "b", "2"}, func(tx *memory.Tx, key string) (string, error) { return done(tx.HashSet(key, name, value, "b", "2")) }}
	case 11:
		return command{[]any{"HDEL", name, "b"}, func(tx *memory.Tx, key string) (string, error) { return count(tx.HashDelete(key, name, "b")) }}
	case 12, 13, 14:
		return command{[]any{"ZADD", score, name}, func(tx *memory.Tx, key string) (string, error) { return whether(tx.ZAdd(key, score, name)) }}
	case 15:
		return command{[]any{"ZREM", name, "a"}, func(tx *memory.Tx, key string) (string, error) { return count(tx.ZRem(key, name, "a")) }}
	case 16:
		return command{[]any{"ZREMRANGEBYSCORE", bound(low), bound(high)}, func(tx *memory.Tx, key string) (string, error) {
			return count(tx.ZRemRangeByScore(key, low, high))
		}}
	case 17:
		return command{[]any{"ZRANGE", start, stop, "WITHSCORES"}, func(tx *memory.Tx, key string) (string, error) { return members(tx.ZRangeByRank(key, start, stop)) }}
	case 18:
		return command{[]any{"ZRANGE", bound(low), bound(high), "BYSCORE", "LIMIT", offset, limit, "WITHSCORES"}, func(tx *memory.Tx, key string) (string, error) {
			return members(tx.ZRangeByScore(key, low, high, offset, limit))
		}}
	default:
		switch r.IntN(3) {
		case 0:
			return command{[]any{"ZCARD"}, func(tx *memory.Tx, key string) (string, error) { return count(tx.ZCard(key)) }}
		case 1:
			return command{[]any{"ZCOUNT", bound(low), bound(high)}, func(tx *memory.Tx, key string) (string, error) { return count(tx.ZCount(key, low, high)) }}
		default:
			return command{[]any{"ZSCORE", name}, func(tx *memory.Tx, key string) (string, error) {
				found, ok, err := tx.ZScore(key, name)
				if !ok {
					return "nil", err
				}
				return fmt.Sprintf("s:%q", decimal(found)), err
			}}
		}
	}
}

// TestCommands: what handlers are written in does what the Redis commands of those names do, wrong
// types and moments of expiry among it.
func TestCommands(t *testing.T) {
	r := source(t)
	server, _, m := clocked(t)
	now := int64(30 * year)
	keys := []string{"x", "y", "z"}
	for step := range 2 * *steps {
		if r.IntN(8) == 0 {
			now += pick[int64](r, -3, 1, 1, 2, 99, 100, 101)
			server.setClock(now)
			m.setClock(now)
			// What has expired is gone now, and does not come back when the clock is set back.
			for _, key := range keys {
				server.look(t, key)
				m.look(t, key)
			}
		}
		key := pick(r, keys...)
		c := randomCommand(r)
		var want string
		m.within(t, key, func(tx *memory.Tx, key string) (err error) {
			if want, err = c.tx(tx, key); errors.Is(err, memory.ErrWrongType) {
				want, err = wrongType, nil
			}
			return err
		})
		args := append([]any{c.redis[0], server.prefix + key}, c.redis[1:]...)
		got := text(server.client.Do(t.Context(), args...).Result())
		left, pttl := server.look(t, key)
		wantLeft, wantTTL := m.look(t, key)
		if got != want || !left.equal(wantLeft) || pttl != wantTTL {
			t.Fatalf("step %d: %q on %s: Redis %s, left %v for %d ms; memory %s, left %v for %d ms", step, c.redis, key, got, left, pttl, want, wantLeft, wantTTL)
		}
	}
}
