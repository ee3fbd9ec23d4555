package envoy

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestNothingRepeatsADescriptor looks for the values of descriptors in all keys and values of the store, in
// the log, and in errors.
func TestNothingRepeatsADescriptor(t *testing.T) {
	t.Parallel()
	const who = "alice@example"
	server := lanes.StartProcess(t, lanes.Options{})
	log := &logBuffer{}
	_, client := open(t, settings(t, "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: year, requests_per_unit: 5}}\n- {key: a, value: \""+who+"\", rate_limit: {unit: year, requests_per_unit: 4}}\n"), composed(t, server.Addr), log)
	zero := uint64(0)
	for _, s := range []step{
		{Ask: []string{"a=" + who}},
		{Ask: []string{"a=" + who + "2"}},
		{Ask: []string{"a=" + who}, Hits: 4},
		{Ask: []string{"a=" + who}, Limit: "3/DAY"},
		{Ask: []string{"a=" + who, who + "=x"}},
		{Ask: []string{"a=" + who}, OwnHits: &zero},
		{Ask: []string{"a=" + who + strings.Repeat("x", 66_000)}},
		{Ask: []string{"a=" + who}, Limit: "3/NEVER"},
	} {
		if _, err := call(t.Context(), client, s.request(t, "d")); err != nil && strings.Contains(err.Error(), who) {
			t.Errorf("%v", err)
		}
	}
	store := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = store.Close() })
	keys, err := store.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) < 3 {
		t.Fatalf("%v, %v", keys, err)
	}
	for _, key := range keys {
		if ttl := store.PTTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("%s lives for %v", key, ttl)
		}
		state, err := store.Dump(t.Context(), key).Result()
		if err != nil || strings.Contains(key+state, "alice") {
			t.Errorf("%s: %v", key, err)
		}
	}
	if strings.Contains(log.String(), "alice") {
		t.Errorf("%s", log)
	}
}

// TestCollisions asks for descriptors that a separator could make one, and for values of 10 kB that differ
// in their last byte: each counts alone.
func TestCollisions(t *testing.T) {
	t.Parallel()
	const rules = "domain: d\ndescriptors:\n" +
		"- key: a\n  rate_limit: &l {unit: year, requests_per_unit: 1}\n  descriptors: [{key: b, rate_limit: *l}, {key: a, rate_limit: *l}]\n" +
		"- {key: a_b, rate_limit: *l}\n- {key: a_, rate_limit: *l}\n- {key: 'a,b', rate_limit: *l}\n- {key: ключ, rate_limit: *l}\n"
	long := strings.Repeat("x", 10<<10)
	for name, address := range map[string]string{"memory": "", "redis": lanes.Default(t).Addr} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, client := open(t, settings(t, rules), composed(t, address), nil)
			for _, entries := range [][]string{
				{"a", "b"},
				{"a_b", ""},
				{"a_", "b"},
				{"a", "_b"},
				{"a_b", "_"},
				{"a", ""},
				{"a", "", "b", ""},
				{"a", "", "a", ""},
				{"a", "b", "b", ""},
				{"a", "", "b", "b"},
				{"a", "b_b"},
				{"a", "a=b"},
				{"a", "\x00"},
				{"a", "\x00\x00"},
				{"a,b", "c"},
				{"a", "b,c"},
				{"ключ", "значение"},
				{"a", "é"},
				{"a", "e\u0301"},
				{"a", "😀"},
				{"a", " b"},
				{"a", "b "},
				{"a", "B"},
				{"a", long},
				{"a", long + "x"},
				{"a", long[1:] + "y"},
				{"a", "x", "b", long},
			} {
				for i, want := range []string{"OK", "OVER_LIMIT"} {
					r := (step{Ask: []string{""}}).request(t, "d")
					r.Descriptors[0] = descriptor(entries...)
					response, err := call(t.Context(), client, r)
					if err != nil || response.GetOverallCode().String() != want || response.GetStatuses()[0].GetCurrentLimit() == nil {
						t.Errorf("%.40q, ask %d: %v, %v", entries, i, response, err)
					}
				}
			}
		})
	}
}

// TestResets: on a clock that goes on, a reset is within the window, and a denied request that comes when
// it was told to passes.
func TestResets(t *testing.T) {
	t.Parallel()
	cfg := settings(t, "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: second, requests_per_unit: 1}}\n- {key: b, rate_limit: {unit: day, requests_per_unit: 2}}\n")
	cfg.Headers.Limit, cfg.Headers.Remaining, cfg.Headers.Reset, cfg.Headers.RetryAfter = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"
	_, client := open(t, cfg, composed(t, lanes.Default(t).Addr), nil)
	response, err := call(t.Context(), client, (step{Ask: []string{"b=x"}}).request(t, "d"))
	if err != nil {
		t.Fatal(err)
	}
	reset := response.GetStatuses()[0].GetDurationUntilReset().AsDuration()
	now := time.Now()
	left := 24*time.Hour - time.Duration(now.UnixMilli()%(24*time.Hour).Milliseconds())*time.Millisecond
	if off := math.Abs(float64(reset - left)); off > float64(10*time.Second) && off < float64(24*time.Hour-10*time.Second) || reset%time.Second != 0 {
		t.Errorf("a day ends in %v, said %v", left, reset)
	}
	names := ""
	for _, h := range response.GetResponseHeadersToAdd() {
		names += h.GetKey() + " "
	}
	if names != "RateLimit-Limit RateLimit-Remaining RateLimit-Reset " {
		t.Errorf("headers %s", names)
	}
	ask := func() string {
		response, err := call(t.Context(), client, (step{Ask: []string{"a=x"}}).request(t, "d"))
		if err != nil {
			t.Fatal(err)
		}
		if response.GetOverallCode().String() == "OVER_LIMIT" {
			if d := response.GetStatuses()[0].GetDurationUntilReset().AsDuration(); d != time.Second {
				t.Errorf("a second ends in %v", d)
			}
		}
		return response.GetOverallCode().String()
	}
	eventually(t, "a denial", func() error {
		if ask() != "OVER_LIMIT" {
			return errAllowed
		}
		return nil
	})
	eventually(t, "the next second", func() error {
		if ask() != "OK" {
			return errDenied
		}
		return nil
	})
}
