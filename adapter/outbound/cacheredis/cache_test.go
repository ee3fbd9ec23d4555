package cacheredis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

var cacheLimits = cache.Limits{DefaultTTL: time.Minute, MaxValueBytes: 100}

func cacheFor(t testing.TB, s store.Store) *Cache {
	t.Helper()
	c, err := NewCache(s, CacheConfig{Name: "sessions", Namespace: "test", Secret: []byte(strings.Repeat("s", 32)), Limits: cacheLimits})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCacheConfig(t *testing.T) {
	t.Parallel()
	_, err := NewCache(nil, CacheConfig{Name: "a:b"})
	for _, want := range []string{"no store", `name has the character ':'`, "lifetime is 0s", "namespace of 0 characters"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestEntryForm(t *testing.T) {
	t.Parallel()
	token := cache.NewToken()
	for _, value := range []string{"", "v", ":", "1:", "\x00\xff"} {
		got, ok := decodeEntry(encodeEntry(token, value))
		if !ok || got != (cache.Observation{Value: value, Token: token}) {
			t.Errorf("%q: %+v, %v", value, got, ok)
		}
	}
	whole := encodeEntry(token, "")
	for _, bad := range []string{"", "v", whole[:len(whole)-1], "2" + whole[1:], whole[1:], strings.Replace(whole, string(token[3]), "=", 1), whole[:10] + ":" + whole[10:]} {
		if got, ok := decodeEntry(bad); ok {
			t.Errorf("%q is taken for an entry: %+v", bad, got)
		}
	}
}

// TestEntryKeys: names and keys that could run into each other do not, and a key is told by its digest
// alone.
func TestEntryKeys(t *testing.T) {
	t.Parallel()
	s := unreadyStore(t, "127.0.0.1:1")
	seen := map[string]string{}
	for _, name := range []string{"a", "ab", "sessions"} {
		c, err := NewCache(s, CacheConfig{Name: name, Namespace: "test", Secret: []byte(strings.Repeat("s", 32)), Limits: cacheLimits})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"b", "bc", "c", "", "k", "alice@example.org"} {
			physical := c.EntryKey(key)
			if other, twice := seen[physical]; twice {
				t.Errorf("%s/%s and %s share a key", name, key, other)
			}
			seen[physical] = name + "/" + key
			if !strings.HasPrefix(physical, "edgelimit:test:cache:"+name+":entry:") || strings.Contains(physical, "alice") || len(physical) != len("edgelimit:test:cache::entry:")+len(name)+43 {
				t.Errorf("the key of %s is %s", key, physical)
			}
		}
	}
}

// TestCacheFailures: each failure keeps what the store knows of it, under the operation of the cache; and
// a write of which nobody knows leaves the token by which the caller can find out.
func TestCacheFailures(t *testing.T) {
	t.Parallel()
	lost := drops("")
	for name, row := range map[string]struct {
		react     reaction
		certainty store.Certainty
		code      store.Code
		token     bool
	}{
		"refused":       {replies("-READONLY x\r\n"), store.Refused, store.CodeReadOnly, false},
		"no permission": {replies("-NOPERM x\r\n"), store.Refused, store.CodePermission, false},
		"failed":        {replies("-ERR x\r\n"), store.Uncertain, store.CodeProgramFailed, true},
		"lost":          {lost, store.Uncertain, store.CodeConnectionLost, true},
		"another type":  {replies("-WRONGTYPE x\r\n"), store.Mismatched, store.CodeWrongType, false},
		"another word":  {replies(bulk("WHAT")), store.Mismatched, store.CodeReply, true},
		"INVALID":       {replies(bulk("INVALID")), store.Mismatched, store.CodeReply, true},
		"a number":      {replies(":1\r\n"), store.Mismatched, store.CodeReply, true},
		"several":       {replies("*1\r\n" + bulk("APPLIED")), store.Mismatched, store.CodeReply, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startFake(t)
			c := cacheFor(t, storeFor(t, server.address()))
			ctx, cancel := context.WithTimeout(t.Context(), 20*testTimeout)
			defer cancel()
			for _, command := range []string{"EVALSHA", "SET"} {
				server.on(command, row.react)
			}
			judge := func(what string, token cache.Token, err error) {
				t.Helper()
				var failure *store.Error
				if !errors.As(err, &failure) || failure.Certainty != row.certainty || failure.Code != row.code || failure.Op != "cache "+what {
					t.Errorf("%s: %v, want %v (%v)", what, err, row.code, row.certainty)
				}
				if strings.Contains(err.Error(), "secret key") || strings.Contains(err.Error(), "secret value") {
					t.Errorf("%s: the error tells the key or the value: %v", what, err)
				}
				if (cache.CheckToken(token) == nil) != row.token {
					t.Errorf("%s: the token is %q", what, token)
				}
			}
			written, err := c.CompareAndReplace(ctx, "secret key", cache.NewToken(), "secret value", time.Second)
			judge("replace", written.Token, err)
			if written.Token != "" && !strings.Contains(strings.Join(server.received("EVALSHA"), " "), string(written.Token)) {
				t.Error("the token is not the one that was sent")
			}
			written, err = c.PutIfAbsent(ctx, "secret key", "secret value", time.Second)
			judge("put", written.Token, err)
			effect, err := c.DeleteByToken(ctx, "secret key", cache.NewToken())
			if !row.token {
				judge("delete", "", err)
			} else if err == nil {
				t.Error("delete has not failed")
			}
			if effect != cache.EffectInvalid {
				t.Errorf("delete: %v beside an error", effect)
			}
		})
	}
}

// TestCacheCommands: get and put are one plain command each, and everything is sent once.
func TestCacheCommands(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	c := cacheFor(t, storeFor(t, server.address()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*testTimeout)
	defer cancel()
	written, err := c.PutIfAbsent(ctx, "k", "v", cache.DefaultTTL)
	if err != nil || written.Effect != cache.EffectApplied {
		t.Fatal(written, err)
	}
	got := strings.Join(server.received("SET"), " ")
	if want := "SET " + c.EntryKey("k") + " 1:" + string(written.Token) + ":v NX PX 60000"; got != want {
		t.Errorf("put sent %q, want %q", got, want)
	}
	server.on("GET", replies(bulk("no entry")))
	_, err = c.Get(ctx, "k")
	wantFailure(t, asFailure(t, err), store.Mismatched, store.CodeWrongType)
	server.on("GET", replies("$-1\r\n"))
	if _, err := c.Get(ctx, "k"); !errors.Is(err, cache.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := c.CompareAndReplace(ctx, "k", written.Token, "w", 7*time.Second); err != nil {
		t.Error(err)
	}
	sent := server.received("EVALSHA")
	if len(sent) != 7 || sent[2] != "1" || sent[3] != c.EntryKey("k") || sent[4] != string(written.Token) || !strings.HasSuffix(sent[5], ":w") || sent[6] != "7000" {
		t.Errorf("replace sent %q", sent)
	}
	if n := server.count("SET") + server.count("GET") + server.count("EVALSHA") + server.count("EVAL"); n != 4 {
		t.Errorf("%d commands", n)
	}
}
