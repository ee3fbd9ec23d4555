package footprint

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// kind is a kind of state, with how to make one at a new key.
type kind struct {
	what  string
	keys  int // over which the mean is taken, at most
	build func(t *testing.T, s *server) string
}

func kinds() []kind {
	var all []kind
	add := func(what string, most int, build func(t *testing.T, s *server) string) {
		all = append(all, kind{what, most, build})
	}
	for _, r := range rates() {
		entries := []int{1}
		if r.program == store.RateSlidingLogV1 {
			entries = []int{1, 10, 100, 1000}
		}
		for _, n := range entries {
			what, most := r.name, math.MaxInt
			if len(entries) > 1 {
				what = fmt.Sprintf("%s, %d live", r.name, n)
			}
			if n == 1000 {
				most = max(*keys/50, 1) // They hardly differ, and making one takes a thousand evaluations.
			}
			add(what, most, func(t *testing.T, s *server) string {
				key := s.key("rate", "state")
				for range n {
					if word := s.run(t, r.program, key, r.args(5000, hour, 1)...); word != "ALLOWED" {
						t.Fatalf("%s: %s", r.name, word)
					}
				}
				return key
			})
		}
	}
	breaker := func(threshold int64) func(t *testing.T, s *server) string {
		return func(t *testing.T, s *server) string {
			key := s.key("breaker", "state")
			now := time.Now().UnixMilli()
			if word := s.run(t, store.BreakerRecordV1, key,
				breakerArgs(threshold, hour, 3, "CALL", breakerToken, int64(0), now, "FAILURE")...); word != "COUNTED" {
				t.Fatalf("breaker: %s", word)
			}
			return key
		}
	}
	add("breaker of consecutive failures, 3 probes", math.MaxInt, breaker(5))
	add("breaker of a failure rate, 10 buckets, 3 probes", math.MaxInt, breaker(0))
	for _, size := range []int{0, 100, 1000} {
		add(fmt.Sprintf("cache entry of %d bytes", size), math.MaxInt, func(t *testing.T, s *server) string {
			key := s.key("cache", "entry")
			entry := "1:AAAAAAAAAAAAAAAAAAAAAA:" + strings.Repeat("v", size)
			if err := s.client.Set(t.Context(), key, entry, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			return key
		})
	}
	return all
}

// usage gives the encoding of a key and the bytes that Redis says it takes.
func (s *server) usage(t *testing.T, key string) (string, int64) {
	t.Helper()
	encoding, err := s.client.ObjectEncoding(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := s.client.MemoryUsage(t.Context(), key, 0).Result()
	if err != nil {
		t.Fatal(err)
	}
	return encoding, bytes
}

// TestMemory: what the page says of the bytes of each kind of state is what Redis says.
func TestMemory(t *testing.T) {
	server := lanes.Default(t)
	s := connect(t, server.Addr)
	measured := fmt.Sprintf("| state (%s %s, mean over %d keys) | encoding | bytes |", server.Product, server.Version, *keys)
	_, before, _ := split(t, "memory")
	tolerance := 0.3 // Other versions keep other structures.
	if strings.Contains(before, fmt.Sprintf("(%s %s,", server.Product, server.Version)) {
		tolerance = 0.05
	}
	var rows []string
	said := map[string][]string{}
	if !*update {
		for _, row := range table(t, "memory") {
			cells := strings.Split(strings.Trim(row, "| "), " | ")
			if len(cells) != 3 {
				t.Fatalf("row %q", row)
			}
			said[cells[0]] = cells[1:]
		}
	}
	for _, k := range kinds() {
		n := min(*keys, k.keys)
		sum, encoding := int64(0), ""
		for range n {
			e, bytes := s.usage(t, k.build(t, s))
			sum, encoding = sum+bytes, e
		}
		mean := float64(sum) / float64(n)
		rows = append(rows, fmt.Sprintf("| %s | %s | %.0f |", k.what, encoding, mean))
		if *update {
			continue
		}
		cells := said[k.what]
		delete(said, k.what)
		if cells == nil {
			t.Errorf("the page says nothing of %s", k.what)
			continue
		}
		bytes, err := strconv.ParseFloat(cells[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(bytes-mean) > tolerance*mean || tolerance < 0.1 && cells[0] != encoding {
			t.Errorf("%s: the page says %s bytes as %s, measured are %.0f as %s", k.what, cells[1], cells[0], mean, encoding)
		}
	}
	for what := range said {
		t.Errorf("the page tells of %s, which is not measured", what)
	}
	if *update {
		rewrite(t, "memory", measured, rows)
	}
}
