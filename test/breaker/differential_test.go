package breaker

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/test/embedded"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// Histories of differing policies, and steps in each.
const (
	histories = 100
	steps     = 80
)

// TestProgramsDecideAsTheTransitions runs random histories on the Lua programs and on the pure
// transitions: every field of every reply, every field stored and every lifetime are the same.
func TestProgramsDecideAsTheTransitions(t *testing.T) {
	for _, server := range lanes.All(t) {
		t.Run(server.Product+" "+server.Version, func(t *testing.T) {
			t.Parallel()
			compareHistories(t, server.Addr, histories)
		})
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		compareHistories(t, embedded.Start(t, time.UnixMilli(start)).Addr(), histories/2)
	})
}

func compareHistories(t *testing.T, address string, histories uint64) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	seen := map[string]int{}
	for seed := range histories {
		compareHistory(t, client, seed, seen)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	// A generator that never gets somewhere would prove nothing about it.
	for _, status := range breaker.Statuses() {
		if status != breaker.StatusInvalid && seen[status.String()] < 5 {
			t.Errorf("%v came %d times", status, seen[status.String()])
		}
	}
	for _, change := range []string{"closed>open", "half-open>open", "half-open>closed", "open>half-open"} {
		if seen[change] < 5 {
			t.Errorf("%s came %d times", change, seen[change])
		}
	}
	t.Logf("%v", seen)
}

func compareHistory(t *testing.T, client *redis.Client, seed uint64, seen map[string]int) {
	t.Helper()
	h := newHistory(rand.New(rand.NewPCG(seed, 1)))
	key := fmt.Sprintf("edgelimit-test:breaker:%d:%d:%d", os.Getpid(), time.Now().UnixNano(), seed)
	defer client.Del(context.WithoutCancel(t.Context()), key)
	var hash map[string]string
	state := breaker.StateClosed
	for range steps {
		if h.random.IntN(40) == 0 {
			edited := h.edit(hash)
			put(t, client, key, edited)
			hash = edited
		}
		c := h.step()
		want := h.model.run(c, hash)
		got, after, ttlBefore, ttl := run(t, client, key, c, c.args(h.model))
		if fmt.Sprint(got...) != fmt.Sprint(want.reply...) {
			t.Fatalf("%s %v over %v:\n got %v\nwant %v", c.program.ID(), c.args(h.model), hash, got, want.reply)
		}
		if !maps.Equal(after, want.after) {
			t.Fatalf("%s %v over %v left\n got %v\nwant %v", c.program.ID(), c.args(h.model), hash, after, want.after)
		}
		checkTTL(t, ttl, ttlBefore, want.ttl)
		h.learn(c, want.transition)
		seen[want.transition.Status.String()]++
		if now := want.transition.State; now != breaker.StateInvalid {
			seen[state.String()+">"+now.String()]++
			state = now
			h.state = now
		}
		hash = after
		if !fine(h, hash) && h.random.IntN(3) == 0 {
			put(t, client, key, nil) // A damaged state decides nothing any more.
			hash = nil
		}
	}
}

func fine(h *history, hash map[string]string) bool {
	_, ok := h.model.parse(hash)
	return ok
}

func source(t *testing.T, c call) string {
	t.Helper()
	program, ok := lua.Find(c.program)
	if !ok {
		t.Fatalf("no program %s", c.program.ID())
	}
	return program.Source
}

// put makes a key hold exactly this hash, for an hour.
func put(t *testing.T, client *redis.Client, key string, hash map[string]string) {
	t.Helper()
	_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Del(t.Context(), key)
		if hash != nil {
			pipe.HSet(t.Context(), key, hash)
			pipe.PExpire(t.Context(), key, time.Hour)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run calls a program once, between two looks at the lifetime, and reads what it leaves.
func run(t *testing.T, client *redis.Client, key string, c call, args []any) (reply []any, hash map[string]string, before, after int64) {
	t.Helper()
	ctx := t.Context()
	var eval, first, last *redis.Cmd
	var fields *redis.MapStringStringCmd
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		first = pipe.Do(ctx, "PTTL", key)
		eval = pipe.Eval(ctx, source(t, c), []string{key}, args...)
		fields = pipe.HGetAll(ctx, key)
		last = pipe.Do(ctx, "PTTL", key)
		return nil
	})
	if err != nil {
		t.Fatalf("%s %v: %v", c.program.ID(), args, err)
	}
	if reply, err = eval.Slice(); err != nil {
		t.Fatalf("%s %v: %v", c.program.ID(), args, err)
	}
	before, err1 := first.Int64()
	after, err2 := last.Int64()
	if err1 != nil || err2 != nil {
		t.Fatalf("PTTL: %v, %v", err1, err2)
	}
	if len(fields.Val()) > 0 {
		hash = fields.Val()
	}
	return reply, hash, before, after
}

// checkTTL: the lifetime is the one set, or the one before, less the time that passed since.
func checkTTL(t *testing.T, got, before, set int64) {
	t.Helper()
	const slack = 10_000
	want := before
	if set > 0 {
		want = set
	}
	if want < 0 && got != want || want >= 0 && (got > want || got < want-slack) {
		t.Fatalf("a lifetime of %d ms, want %d", got, want)
	}
}
