package service

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestRefusals leads a Redis that a service uses into each state in which it refuses. Each is told by
// its own category, nothing is spent, and the service goes on by itself when the state is over.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		category string
		circuit  bool // opens after a few: nobody answers
		args     []string
		into     func(t *testing.T, server *lanes.Process, client *redis.Client)
		out      func(t *testing.T, server *lanes.Process, client *redis.Client)
	}{
		{
			category: "READ_ONLY", // a master became a replica
			into: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "REPLICAOF", "127.0.0.1", "1")
			},
			out: func(t *testing.T, _ *lanes.Process, client *redis.Client) { do(t, client, "REPLICAOF", "NO", "ONE") },
		},
		{
			category: "MASTER_DOWN", // a replica that takes writes, but serves nothing without its master
			into: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "CONFIG", "SET", "replica-serve-stale-data", "no", "replica-read-only", "no")
				do(t, client, "REPLICAOF", "127.0.0.1", "1")
			},
			out: func(t *testing.T, _ *lanes.Process, client *redis.Client) { do(t, client, "REPLICAOF", "NO", "ONE") },
		},
		{
			category: "OUT_OF_MEMORY",
			into: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1")
			},
			out: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "CONFIG", "SET", "maxmemory", "0")
			},
		},
		{
			category: "REPLICAS",
			into: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "CONFIG", "SET", "min-replicas-to-write", "1")
			},
			out: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "CONFIG", "SET", "min-replicas-to-write", "0")
			},
		},
		{
			category: "PERSISTENCE", // a dump that cannot be put in its place, since a directory is there
			args:     []string{"--save", "3600 1"},
			into: func(t *testing.T, server *lanes.Process, client *redis.Client) {
				if err := os.MkdirAll(filepath.Join(server.Dir, "dump.rdb", "taken"), 0o700); err != nil {
					t.Fatal(err)
				}
				do(t, client, "BGSAVE")
				eventually(t, "the dump fails", func() error {
					info, err := client.Info(t.Context(), "persistence").Result()
					if err != nil || !strings.Contains(info, "rdb_last_bgsave_status:err") {
						return fmt.Errorf("%w %s", err, info)
					}
					return nil
				})
			},
			out: func(t *testing.T, _ *lanes.Process, client *redis.Client) { do(t, client, "CONFIG", "SET", "save", "") },
		},
		{
			category: "BUSY", // a script of someone else's does not end
			into: func(t *testing.T, server *lanes.Process, client *redis.Client) {
				do(t, client, "CONFIG", "SET", "busy-reply-threshold", "1")
				other := connect(t, server.Addr)
				go func() { _ = other.Eval(t.Context(), "while true do end", nil).Err() }()
			},
			out: func(t *testing.T, _ *lanes.Process, client *redis.Client) { do(t, client, "SCRIPT", "KILL") },
		},
		{
			category: "PERMISSION",
			into: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "ACL", "SETUSER", "limiter", "-evalsha")
			},
			out: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "ACL", "SETUSER", "limiter", "+evalsha")
			},
		},
		{
			category: "AUTHENTICATION", // the password was changed, and connections are made anew
			into: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "ACL", "SETUSER", "limiter", "<the-right-password", ">another-password")
				do(t, client, "CLIENT", "KILL", "USER", "limiter")
			},
			out: func(t *testing.T, _ *lanes.Process, client *redis.Client) {
				do(t, client, "ACL", "SETUSER", "limiter", ">the-right-password")
			},
		},
		{
			category: "CONNECTION", circuit: true,
			into: func(_ *testing.T, server *lanes.Process, _ *redis.Client) { server.Kill() },
			out: func(t *testing.T, server *lanes.Process, client *redis.Client) {
				server.Restart()
				addLimiter(t, client)
			},
		},
	} {
		t.Run(c.category, func(t *testing.T) {
			t.Parallel()
			server := lanes.StartProcess(t, lanes.Options{Args: c.args})
			client := connect(t, server.Addr)
			addLimiter(t, client)
			s := serveReady(t, settings{
				address: server.Addr, namespace: namespace(), policies: deep,
				redis: ", username: limiter, password: the-right-password",
			}.file(t))
			if a := s.one(oneSubject); a.word() != "EVALUATED" || a.Decision.Remaining != deepLimit-1 {
				t.Fatalf("%+v", a)
			}
			c.into(t, server, client)
			s.becomes(oneSubject, "UNAVAILABLE "+c.category)
			for range 20 {
				a := s.one(oneSubject)
				if a.word() != "UNAVAILABLE "+c.category && (!c.circuit || a.word() != "UNAVAILABLE CIRCUIT") {
					t.Errorf("%+v", a)
				}
			}
			c.out(t, server, client)
			s.becomes(oneSubject, "EVALUATED")
			s.awaitReady()
		})
	}
}

// addLimiter makes the user that services connect as.
func addLimiter(t *testing.T, client *redis.Client) {
	t.Helper()
	do(t, client, "ACL", "SETUSER", "limiter", "reset", "on", ">the-right-password", "~edgelimit:*", "+@all")
}

// TestNeverReady holds a service that cannot use its Redis from the beginning to name the reason, and
// to need nobody when that is over.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reason string
		args         []string
		redis        string
		out          []any
	}{
		{"WrongPassword", "WRONGPASS", []string{"--requirepass", "right"}, ", password: wrong", []any{"CONFIG", "SET", "requirepass", "wrong"}},
		{"NoPassword", "NOAUTH", []string{"--requirepass", "right"}, "", []any{"CONFIG", "SET", "requirepass", ""}},
		{"Replica", "READONLY", []string{"--replicaof", "127.0.0.1 1"}, "", []any{"REPLICAOF", "NO", "ONE"}},
		{"Full", "OOM", []string{"--maxmemory", "1", "--maxmemory-policy", "noeviction"}, "", []any{"CONFIG", "SET", "maxmemory", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := lanes.StartProcess(t, lanes.Options{Args: c.args})
			s := serve(t, settings{address: server.Addr, namespace: namespace(), policies: deep, redis: c.redis}.file(t))
			eventually(t, "readyz names the reason", func() error {
				if status, body := s.get("/readyz"); status != 503 || !strings.Contains(body, c.reason) {
					return fmt.Errorf("%d %s", status, body)
				}
				return nil
			})
			if a := s.one(oneSubject); a.word() != "UNAVAILABLE NOT_READY" {
				t.Errorf("%+v", a)
			}
			client := connect(t, server.Addr, func(o *redis.Options) {
				if strings.Contains(c.name, "Password") {
					o.Password = "right"
				}
			})
			do(t, client, c.out...)
			s.awaitReady()
			s.becomes(oneSubject, "EVALUATED")
			if strings.Contains(s.log(), "wrong") {
				t.Errorf("the password is in the log: %s", s.log())
			}
		})
	}
}

// TestForeignKeys puts what is not ours at the key of a state. It is told, and left as it is.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	server := lanes.Default(t)
	client := connect(t, server.Addr)
	space := namespace()
	removeAfter(t, server.Addr, space)
	s := serveReady(t, settings{address: server.Addr, namespace: space, policies: deep}.file(t))
	s.becomes(oneSubject, "EVALUATED")
	key := stateKey(t, client, space)
	for name, put := range map[string][]any{
		"string":       {"SET", key, "foreign"},
		"empty string": {"SET", key, ""},
		"list":         {"RPUSH", key, "foreign"},
		"set":          {"SADD", key, "foreign"},
		"sorted set":   {"ZADD", key, 1, "foreign"},
		"stream":       {"XADD", key, "*", "foreign", "1"},
		"hash":         {"HSET", key, "foreign", "1"},
		"our hash":     {"HSET", key, "1:fw:1:another", "1 1 1"},
	} {
		do(t, client, "DEL", key)
		do(t, client, put...)
		before := do(t, client, "DUMP", key)
		for range 3 {
			if a := s.one(oneSubject); a.word() != "INCOMPATIBLE STATE" || a.PolicyID != "deep" {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if after := do(t, client, "DUMP", key); after != before {
			t.Errorf("%s: was changed", name)
		}
	}
	do(t, client, "DEL", key)
	if a := s.one(oneSubject); a.word() != "EVALUATED" || a.Decision.Remaining != deepLimit-1 {
		t.Errorf("%+v", a)
	}
}

// TestClockOfRedisGoesBack leads the server's own clock back: a small step is tolerated, a large one is
// told with the exact time after which all is well, and nothing is spent meanwhile.
func TestClockOfRedisGoesBack(t *testing.T) {
	t.Parallel()
	server := lanes.StartFaketime(t)
	s := serveReady(t, settings{
		address: server.Addr, namespace: namespace(),
		policies: deep[:len(deep)-1] + ", max-clock-regression: 2s}",
	}.file(t))
	if a := s.one(oneSubject); a.word() != "EVALUATED" || a.Decision.Remaining != deepLimit-1 {
		t.Fatalf("%+v", a)
	}
	server.Advance(-2 * time.Second)
	if a := s.one(oneSubject); a.word() != "EVALUATED" || a.Decision.Remaining != deepLimit-2 {
		t.Errorf("2 s back: %+v", a)
	}
	server.Advance(-10 * time.Minute)
	if a := s.one(oneSubject); a.word() != "UNAVAILABLE CLOCK_UNSAFE" || *a.RetryAfterMillis != (10*time.Minute).Milliseconds() {
		t.Errorf("10 min back: %+v", a)
	}
	server.Advance(10 * time.Minute)
	if a := s.one(oneSubject); a.word() != "EVALUATED" || a.Decision.Remaining != deepLimit-3 {
		t.Errorf("and again: %+v", a)
	}
}
