package redisproc

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestParseCommands(t *testing.T) {
	t.Parallel()
	info := parseInfo("# Commandstats\r\ncmdstat_EVALSHA:calls=3,usec=12,usec_per_call=4.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_eval:calls=1,usec=8,usec_per_call=8.00\r\ncmdstat_config|resetstat:calls=1,usec=2,usec_per_call=2.00\r\nother:1\r\n")
	got, err := parseCommands(info)
	want := map[string]Call{"evalsha": {3, 12}, "eval": {1, 8}, "config|resetstat": {1, 2}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if all := (Counters{Commands: got}).Scripts(); all != (Call{4, 20}) {
		t.Errorf("scripts altogether %v", all)
	}
	if _, err := parseCommands(map[string]string{"cmdstat_get": "calls=x,usec=1"}); err == nil {
		t.Error("a count that is no number is accepted")
	}
}

// The environment names servers for all tests, so this one is not parallel.
func TestAServerAnswersCountsAndEnds(t *testing.T) {
	t.Setenv(AddressVariable, "")
	server, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if connection, err := net.DialTimeout("tcp", server.Address, time.Second); err == nil {
			_ = connection.Close()
			t.Error("the server still answers after Close")
		}
		if _, err := os.Stat(server.dir); !os.IsNotExist(err) {
			t.Errorf("its directory is left: %v", err)
		}
	}()
	if !server.Own() || !strings.Contains(server.Version, ".") {
		t.Errorf("%+v", server)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Address})
	defer func() { _ = client.Close() }()
	if err := server.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := client.Eval(t.Context(), "return redis.call('INCR', KEYS[1])", []string{"bench:k"}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	counters, err := server.Counters(t.Context())
	if err != nil || counters.Scripts().Calls != 5 || counters.Commands["incr"].Calls != 5 || counters.CPUMicros <= 0 {
		t.Errorf("%+v, %v", counters, err)
	}
	if memory, err := server.MemoryBytes(t.Context()); err != nil || memory < 1<<18 {
		t.Errorf("%d bytes, %v", memory, err)
	}
	// Another benchmark may use it as a server of the user's: what is not the benchmark's stays.
	t.Setenv(AddressVariable, server.Address)
	if err := client.Set(t.Context(), "theirs", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	guest, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := guest.Clear(t.Context()); err != nil || guest.Own() {
		t.Errorf("own %v, %v", guest.Own(), err)
	}
	if err := guest.Close(); err != nil {
		t.Error(err)
	}
	if n, err := client.Exists(t.Context(), "theirs", "bench:k").Result(); err != nil || n != 1 {
		t.Errorf("%d of the two keys are left, %v", n, err)
	}
	if err := server.Clear(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Setenv(AddressVariable, "")
	t.Setenv(BinaryVariable, filepath.Join(t.TempDir(), "none"))
	if _, err := Start(t.Context()); err == nil || !strings.Contains(err.Error(), "redis-server") {
		t.Errorf("%v", err)
	}
	t.Setenv(BinaryVariable, "false")
	if _, err := Start(t.Context()); err == nil || !strings.Contains(err.Error(), "did not start") {
		t.Errorf("%v", err)
	}
}
