package footprint

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// server runs programs on one Redis, on keys as long as those of a deployment: a namespace of 10
// characters, a policy of 11 and a digest of 43.
type server struct {
	client    *redis.Client
	namespace string
	made      []string
}

var namespaces atomic.Int64

func connect(t *testing.T, address string) *server {
	t.Helper()
	s := &server{
		client:    redis.NewClient(&redis.Options{Addr: address, Protocol: 2, MaxRetries: -1, DisableIdentity: true}),
		namespace: fmt.Sprintf("fp%08d", (time.Now().UnixNano()/1000+namespaces.Add(1))%100_000_000),
	}
	t.Cleanup(func() {
		for _, key := range s.made {
			s.client.Del(t.Context(), key)
		}
		_ = s.client.Close()
	})
	return s
}

func (s *server) key(capability, kind string) string {
	key := fmt.Sprintf("edgelimit:%s:%s:api-default:%s:%043d", s.namespace, capability, kind, len(s.made))
	s.made = append(s.made, key)
	return key
}

// run runs a program and gives the first value of its reply.
func (s *server) run(t *testing.T, program *store.Program, key string, args ...any) string {
	t.Helper()
	source, ok := lua.Find(program)
	if !ok {
		t.Fatalf("no program %s", program.ID())
	}
	reply, err := s.client.EvalSha(t.Context(), source.SHA1, []string{key}, args...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = s.client.Eval(t.Context(), source.Source, []string{key}, args...).Result()
	}
	if err != nil {
		t.Fatalf("%s %v: %v", program.ID(), args, err)
	}
	if fields, several := reply.([]any); several {
		reply = fields[0]
	}
	return fmt.Sprint(reply)
}

const (
	hour  = int64(3_600_000)
	grace = int64(60_000)
	back  = int64(2_000)
)

// rate is one algorithm under a policy that admits limit units each period ms.
type rate struct {
	name    string
	program *store.Program
	tag     string
	own     func(limit, period int64) []any
}

func rates() []rate {
	window := func(limit, period int64) []any { return []any{limit, period} }
	return []rate{
		{"fixed-window", store.RateFixedWindowV1, "fw", window},
		{"sliding-window-counter", store.RateSlidingCounterV1, "sc", window},
		{"token-bucket", store.RateTokenBucketV1, "tb", func(limit, period int64) []any { return []any{limit, limit, period} }},
		{"gcra", store.RateGCRAV1, "gc", func(limit, period int64) []any { return []any{limit, period, limit} }},
		{"sliding-window-log", store.RateSlidingLogV1, "sl", window},
	}
}

// args are those of one evaluation on the server's clock. The identity is as long as a real one.
func (r rate) args(limit, period, cost int64) []any {
	args := append([]any{"1:" + r.tag + ":1:0123456789abcdef"}, r.own(limit, period)...)
	return append(args, grace, back, cost, int64(0))
}

const breakerToken = "0123456789abcdef0123456789abcdef"

// breakerArgs are those of a breaker of consecutive failures, or of a failure rate over ten buckets.
func breakerArgs(threshold, timeout, probes int64, more ...any) []any {
	args := []any{"1:cb:1:0123456789abcdef", threshold, int64(0), int64(0), int64(0), int64(0)}
	if threshold == 0 {
		args = []any{"1:cb:1:0123456789abcdef", threshold, int64(10), int64(1000), int64(20), int64(500)}
	}
	args = append(args, timeout, probes, hour, int64(1), grace, back)
	return append(append(args, more...), int64(0))
}
