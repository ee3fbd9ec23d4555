package service

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// connect gives a client of the test's own.
func connect(t testing.TB, address string, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	options := &redis.Options{Addr: address, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ReadTimeout: patience}
	for _, f := range change {
		f(options)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// do sends a command that must succeed.
func do(t testing.TB, client *redis.Client, command ...any) any {
	t.Helper()
	reply, err := client.Do(t.Context(), command...).Result()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return reply
}

// keysOf lists the keys of a namespace.
func keysOf(ctx context.Context, t testing.TB, client *redis.Client, namespace string) []string {
	t.Helper()
	var keys []string
	scan := client.Scan(ctx, 0, "edgelimit:"+namespace+":*", 1000).Iterator()
	for scan.Next(ctx) {
		keys = append(keys, scan.Val())
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// stateKey gives the one state key of a namespace.
func stateKey(t testing.TB, client *redis.Client, namespace string) string {
	t.Helper()
	var keys []string
	for _, key := range keysOf(t.Context(), t, client, namespace) {
		if strings.Contains(key, ":state:") {
			keys = append(keys, key)
		}
	}
	if len(keys) != 1 {
		t.Fatalf("state keys: %v", keys)
	}
	return keys[0]
}

// removeAfter leaves nothing of a namespace behind on a shared server.
func removeAfter(t testing.TB, address, namespace string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // which has ended before a cleanup begins
		for _, key := range keysOf(ctx, t, client, namespace) {
			if err := client.Del(ctx, key).Err(); err != nil {
				t.Errorf("remove %s: %v", key, err)
			}
		}
		_ = client.Close()
	})
}

// commandCounts reads how often each command ran since the statistics were reset.
func commandCounts(t testing.TB, client *redis.Client) map[string]int64 {
	t.Helper()
	text, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for line := range strings.SplitSeq(text, "\r\n") {
		command, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		if counts[command], err = strconv.ParseInt(calls, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return counts
}

// monitor records everything that a server is told until the returned function is called, which gives
// the record.
func monitor(t testing.TB, address string) (stop func() string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	if line, err := reader.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("MONITOR: %q %v", line, err)
	}
	var record strings.Builder
	seen, ended := make(chan struct{}), make(chan struct{})
	mark := fmt.Sprintf("mark-%d", time.Now().UnixNano())
	go func() {
		defer close(ended)
		found := sync.OnceFunc(func() { close(seen) })
		for {
			line, err := reader.ReadString('\n')
			record.WriteString(line)
			if strings.Contains(line, mark) {
				found()
			}
			if err != nil {
				return
			}
		}
	}()
	client := connect(t, address)
	return sync.OnceValue(func() string {
		// The record is whole when it shows a command that came after all that is asked about.
		do(t, client, "ECHO", mark)
		select {
		case <-seen:
		case <-time.After(patience):
			t.Error("MONITOR does not show the last command")
		}
		_ = conn.Close()
		<-ended
		return record.String()
	})
}
