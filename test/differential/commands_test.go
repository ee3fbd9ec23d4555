package differential

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// startPrivate starts a server that nobody else uses, so that its statistics are this test's.
func startPrivate(t *testing.T) string {
	t.Helper()
	return lanes.StartProcess(t, lanes.Options{}).Addr
}

// commandCounts reads how often each command ran since the statistics were reset, but for the reset
// and the reading themselves.
func commandCounts(t *testing.T, client *redis.Client) map[string]int64 {
	t.Helper()
	text, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for line := range strings.SplitSeq(text, "\r\n") {
		command, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || strings.HasPrefix(command, "config") || command == "info" {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		counts[command] = n
	}
	return counts
}
