package cache_test

import (
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	seen := map[cache.Token]bool{}
	characters := map[rune]bool{}
	for range 2000 {
		token := cache.NewToken()
		if err := cache.CheckToken(token); err != nil || seen[token] {
			t.Fatalf("token %q: %v, seen before: %v", token, err, seen[token])
		}
		seen[token] = true
		for _, c := range token {
			characters[c] = true
		}
	}
	if len(characters) != 64 {
		t.Errorf("%d characters are in use, want 64", len(characters))
	}
	whole := strings.Repeat("A", cache.TokenBytes)
	for _, bad := range []string{"", "A", whole + "A", whole[1:], whole[1:] + ":", whole[1:] + " ", whole[1:] + "\x00", whole[1:] + "=", whole[2:] + "é"} {
		if cache.CheckToken(cache.Token(bad)) == nil {
			t.Errorf("%q is taken for a token", bad)
		}
	}
	if cache.CheckToken(cache.Token("azAZ09-_azAZ09-_azAZ09")) != nil {
		t.Error("a token of every kind of character is refused")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	fine := cache.Limits{DefaultTTL: time.Minute, MaxValueBytes: 3}
	for what, limits := range map[string]cache.Limits{
		"default lifetime is 0s": {MaxValueBytes: 3}, "default lifetime is -1ns": {DefaultTTL: cache.DefaultTTL, MaxValueBytes: 3},
		"default lifetime is 1.000001s":      {DefaultTTL: time.Second + time.Microsecond, MaxValueBytes: 3},
		"greatest value is 0 bytes":          {DefaultTTL: time.Minute},
		"greatest value is 524225 bytes":     {DefaultTTL: time.Minute, MaxValueBytes: cache.MaxValueBytes + 1},
		"default lifetime is 876600h0m0.001": {DefaultTTL: cache.MaxTTL + time.Millisecond, MaxValueBytes: 3},
	} {
		if err := limits.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v: %v, want %q", limits, err, what)
		}
	}
	for _, limits := range []cache.Limits{fine, {DefaultTTL: cache.MinTTL, MaxValueBytes: 1}, {DefaultTTL: cache.MaxTTL, MaxValueBytes: cache.MaxValueBytes}} {
		if err := limits.Check(); err != nil {
			t.Errorf("%+v: %v", limits, err)
		}
	}
	for _, c := range []struct {
		key, value string
		ttl, want  time.Duration
	}{
		{"k", "", time.Second, time.Second},
		{"k", "abc", cache.DefaultTTL, time.Minute},
		{"k", "abcd", time.Second, -1},
		{"", "a", time.Second, -1},
		{strings.Repeat("k", cache.MaxKeyBytes+1), "a", time.Second, -1},
		{"k", "a", 0, -1},
		{"k", "a", -2, -1},
		{"k", "a", time.Microsecond, -1},
		{"k", "a", cache.MaxTTL, cache.MaxTTL},
		{"k", "a", cache.MaxTTL + 1, -1},
	} {
		got, err := fine.CheckWrite(c.key, c.value, c.ttl)
		if (err == nil) != (c.want > 0) || err == nil && got != c.want {
			t.Errorf("%.10q %q %v: %v, %v, want %v", c.key, c.value, c.ttl, got, err, c.want)
		}
	}
}

// TestProgramsKnowTheBounds: the descriptors of the programs carry the bounds of this package without
// importing it.
func TestProgramsKnowTheBounds(t *testing.T) {
	t.Parallel()
	for _, program := range store.CachePrograms() {
		observed := program.Args[0]
		if observed.Name != "observed" || observed.Min != cache.TokenBytes || observed.Max != cache.TokenBytes {
			t.Errorf("%s: %+v", program.ID(), observed)
		}
	}
	entry := store.CacheReplaceV1.Args[1]
	if header := int(entry.Min); header != len("1::")+cache.TokenBytes || header+cache.MaxValueBytes > store.MaxTextBytes {
		t.Errorf("an entry has %d bytes beside its value, and values go up to %d", header, cache.MaxValueBytes)
	}
}

func TestEffectWords(t *testing.T) {
	t.Parallel()
	want := []string{"INVALID", "APPLIED", "EXISTS", "CHANGED", "ABSENT", "SKIPPED", "UNKNOWN"}
	for i, word := range want {
		if got := cache.Effect(i).String(); got != word {
			t.Errorf("effect %d is %s, want %s", i, got, word)
		}
	}
	if got := cache.Effect(len(want)).String(); got != "INVALID" {
		t.Errorf("an effect that does not exist is %s", got)
	}
}
