package footprint

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// inOrder are the commands of programs, in the order in which they are sent.
var inOrder = []string{
	"time", "get", "getrange", "hget", "hmget", "zrange", "exists", "type", "zremrangebyscore", "pexpire", "hset", "zadd", "set", "del",
}

// counts gives how often each command ran since the statistics were reset, without the program's own.
func (s *server) counts(t *testing.T) map[string]int64 {
	t.Helper()
	text, err := s.client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for line := range strings.Lines(text) {
		command, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || strings.HasPrefix(command, "config") || command == "info" || command == "eval" || command == "evalsha" {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		if counts[command], err = strconv.ParseInt(number, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return counts
}

// told writes commands as the page does.
func told(t *testing.T, counts map[string]int64) (string, int64) {
	t.Helper()
	var words []string
	sum := int64(0)
	for _, command := range inOrder {
		n := counts[command]
		delete(counts, command)
		sum += n
		switch word := strings.ToUpper(command); {
		case n == 1:
			words = append(words, word)
		case n > 1:
			words = append(words, fmt.Sprintf("%d %s", n, word))
		}
	}
	if len(counts) > 0 {
		t.Errorf("commands that nobody expects: %v", counts)
	}
	return strings.Join(words, ", "), sum
}

// situation is one row: what is done before, the run that is counted, and the word that it must answer.
type situation struct {
	program *store.Program
	what    string
	before  func(key string)
	args    func() []any
	word    string
}

func situations(t *testing.T, s *server) []situation {
	t.Helper()
	var all []situation
	args := func(a ...any) func() []any { return func() []any { return a } }
	for _, r := range rates() {
		one := r.args(10, hour, 1)
		first := func(key string) { s.run(t, r.program, key, one...) }
		brief := r.args(10, 20, 1)
		log := r.program == store.RateSlidingLogV1
		all = append(all,
			situation{r.program, "admits, new subject", nil, args(one...), "ALLOWED"},
			situation{r.program, "admits", first, args(one...), "ALLOWED"},
			situation{r.program, "denies", first, args(r.args(10, hour, 10)...), "DENIED"},
		)
		if log {
			entries := func(key string) {
				for _, cost := range []int64{1, 1, 1, 1, 3, 3} {
					s.run(t, r.program, key, r.args(10, hour, cost)...)
				}
			}
			all = append(all, situation{r.program, "denies, and searches 6 live", entries, args(r.args(10, hour, 4)...), "DENIED"})
			continue
		}
		all = append(all, situation{r.program, "admits, and moves the lifetime", func(key string) {
			s.run(t, r.program, key, brief...)
			time.Sleep(25 * time.Millisecond) // A window, or the time to fill, must pass for real.
		}, args(brief...), "ALLOWED"})
	}
	return append(all, otherSituations(t, s)...)
}

func otherSituations(t *testing.T, s *server) []situation {
	t.Helper()
	const other = "fedcba9876543210fedcba9876543210"
	policy := func(more ...any) []any { return breakerArgs(2, 1, 1, more...) }
	record := func(kind, result string, since int64) []any {
		return policy(kind, breakerToken, since, time.Now().UnixMilli(), result)
	}
	run := func(program *store.Program, key string, args []any) { s.run(t, program, key, args...) }
	failure := func(key string) { run(store.BreakerRecordV1, key, record("CALL", "FAILURE", 0)) }
	open := func(key string) {
		failure(key)
		failure(key)
		time.Sleep(3 * time.Millisecond) // The open timeout must pass for real.
	}
	probed := func(key string) {
		open(key)
		run(store.BreakerAcquireV1, key, policy(breakerToken))
	}
	set := func(text string) func(key string) {
		return func(key string) {
			if err := s.client.Set(t.Context(), key, text, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	const token = "AAAAAAAAAAAAAAAAAAAAAA"
	entry := "1:" + token + ":v"
	return []situation{
		{store.BreakerAcquireV1, "closed, new resource", nil, func() []any { return policy(breakerToken) }, "CALL"},
		{store.BreakerAcquireV1, "closed", failure, func() []any { return policy(breakerToken) }, "CALL"},
		{store.BreakerAcquireV1, "half-open, takes a slot", open, func() []any { return policy(breakerToken) }, "PROBE"},
		{store.BreakerAcquireV1, "half-open, no slot free", probed, func() []any { return policy(other) }, "REJECTED"},
		{store.BreakerRecordV1, "a success where none failed", nil, func() []any { return record("CALL", "SUCCESS", 0) }, "COUNTED"},
		{store.BreakerRecordV1, "the first failure of a new resource", nil, func() []any { return record("CALL", "FAILURE", 0) }, "COUNTED"},
		{store.BreakerRecordV1, "a failure that trips", failure, func() []any { return record("CALL", "FAILURE", 0) }, "COUNTED"},
		{store.BreakerRecordV1, "a probe", probed, func() []any { return record("PROBE", "SUCCESS", 0) }, "COUNTED"},
		{store.BreakerReadV1, "any", failure, func() []any { return policy() }, "READ"},
		{store.StoreIncrByV1, "new key", nil, func() []any { return []any{1, hour} }, "1"},
		{store.StoreIncrByV1, "key there", set("1"), func() []any { return []any{1, hour} }, "2"},
		{store.CacheReplaceV1, "the version observed stands", set(entry), func() []any { return []any{token, entry, hour} }, "APPLIED"},
		{store.CacheReplaceV1, "another version stands", set(entry), func() []any { return []any{token[1:] + "B", entry, hour} }, "CHANGED"},
		{store.CacheReplaceV1, "nothing stands", nil, func() []any { return []any{token, entry, hour} }, "ABSENT"},
		{store.CacheDeleteV1, "the version observed stands", set(entry), func() []any { return []any{token} }, "APPLIED"},
	}
}

// TestCalls: what the page says of the commands inside each program is what commandstats counts.
func TestCalls(t *testing.T) {
	s := connect(t, lanes.StartProcess(t, lanes.Options{}).Addr)
	var rows []string
	covered := map[string]bool{}
	for _, c := range situations(t, s) {
		key := s.key("calls", "state")
		if c.before != nil {
			c.before(key)
		}
		args := c.args()
		if err := s.client.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if word := s.run(t, c.program, key, args...); word != c.word {
			t.Errorf("%s, %s: replied %s, want %s", c.program.ID(), c.what, word, c.word)
		}
		words, sum := told(t, s.counts(t))
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %d |", c.program.ID(), c.what, words, sum))
		covered[c.program.ID()] = true
	}
	for _, p := range store.Programs() {
		if !covered[p.ID()] {
			t.Errorf("%s is not measured", p.ID())
		}
	}
	if *update {
		rewrite(t, "calls", "| program | situation | commands inside | calls |", rows)
		return
	}
	if diff := cmp.Diff(table(t, "calls"), rows); diff != "" {
		t.Errorf("the page says something else (-page +measured):\n%s", diff)
	}
}
