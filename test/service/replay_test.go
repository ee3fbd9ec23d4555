package service

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/test/lanes"
)

const (
	replayPolicies = "docs/examples/replay/policies.yaml"
	accessLog      = "test/testdata/access-combined.log.gz"
	accessRequests = 10_000
)

// TestReplayDecidesTheSame replays the access log on memory and on Redis with the program itself: every
// line is equal but for the source, every policy of the example is there, and nothing is left behind.
func TestReplayDecidesTheSame(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(config.Source{File: filepath.Join(root, replayPolicies)})
	if err != nil {
		t.Fatal(err)
	}
	policies := cfg.RateLimit.Policies.All()
	algorithms := map[string]bool{}
	for _, policy := range policies {
		algorithms[policy.Algorithm().String()] = true
	}
	for _, want := range []string{"fixed-window", "sliding-window-counter", "token-bucket", "gcra", "sliding-window-log"} {
		if !algorithms[want] {
			t.Errorf("no policy of the example is a %s", want)
		}
	}

	dir := t.TempDir()
	inMemory := filepath.Join(dir, "memory.ndjson")
	r := run(t, nil, "replay", "--config", replayPolicies, "--json", "--out", inMemory, accessLog)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	summary := r.stdout
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			space := namespace()
			removeAfter(t, server.Addr, space)
			inRedis := filepath.Join(dir, server.Lane+".ndjson")
			// The greatest command timeout: each evaluation must have more time than that.
			r := run(t, []string{
				"EDGELIMIT_APP__RATE_LIMIT__REDIS__ADDRESS=" + server.Addr, "EDGELIMIT_APP__RATE_LIMIT__KEY__NAMESPACE=" + space,
				"EDGELIMIT_APP__RATE_LIMIT__REDIS__COMMAND_TIMEOUT=10s", "EDGELIMIT_APP__SERVICE__DEFAULT_DEADLINE=15s",
				"EDGELIMIT_APP__SERVICE__MAX_DEADLINE=20s",
			}, "replay", "--config", replayPolicies, "--provider", "redis", "--json", "--out", inRedis, accessLog)
			if r.code != 0 || r.stderr != "" {
				t.Fatalf("%+v", r)
			}
			if got := strings.Replace(r.stdout, `"provider": "redis"`, `"provider": "memory"`, 1); got != summary || got == r.stdout {
				t.Errorf("on Redis\n%s\nin memory\n%s", r.stdout, summary)
			}
			lines, denied := compareLines(t, inMemory, inRedis)
			if lines != accessRequests*len(policies) {
				t.Errorf("%d lines for %d policies", lines, len(policies))
			}
			t.Logf("%s: %d lines are equal, %d denials among them", server, lines, denied)
			if keys := keysOf(t.Context(), t, connect(t, server.Addr), space); len(keys) > 0 {
				t.Errorf("%d keys are left, such as %s", len(keys), keys[0])
			}
		})
	}
}

// source is the one field in which the providers differ.
var source = regexp.MustCompile(`"source":"([A-Z_]+)"`)

func compareLines(t *testing.T, memory, redis string) (lines, denied int) {
	t.Helper()
	left, right := scan(t, memory), scan(t, redis)
	for left.Scan() {
		lines++
		if !right.Scan() {
			t.Fatalf("line %d is missing on Redis", lines)
		}
		a, b := source.FindSubmatch(left.Bytes()), source.FindSubmatch(right.Bytes())
		if len(a) != 2 || len(b) != 2 || string(a[1]) != "LOCAL_MEMORY" || string(b[1]) != "GLOBAL_REDIS" {
			t.Fatalf("line %d: sources: %s %s", lines, left.Text(), right.Text())
		}
		if !bytes.Equal(source.ReplaceAll(left.Bytes(), nil), source.ReplaceAll(right.Bytes(), nil)) {
			t.Fatalf("line %d:\n%s\n%s", lines, left.Text(), right.Text())
		}
		if bytes.Contains(left.Bytes(), []byte(`"allowed":false`)) {
			denied++
		}
	}
	if right.Scan() {
		t.Error("Redis has more lines")
	}
	return lines, denied
}

func scan(t *testing.T, path string) *bufio.Scanner {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return bufio.NewScanner(f)
}
