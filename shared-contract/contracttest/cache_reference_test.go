package contracttest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// TestCacheReference runs the whole suite over a cache that can do everything: one map under one lock,
// with a clock that is moved by hand.
func TestCacheReference(t *testing.T) {
	t.Parallel()
	contracttest.RunCache(t, func(testing.TB) *contracttest.CacheBackend {
		return newCacheReference(os.Getenv(faultVariable)).backend()
	})
}

// held is one thing that stands at a key: an entry, or something foreign.
type held struct {
	cache.Observation
	foreign   contracttest.ForeignKind
	expiresAt time.Time
}

// cacheReference holds entries, as a remote store would, and the fault that it may have.
type cacheReference struct {
	fault string

	mu     sync.Mutex
	now    time.Time
	things map[string]*held
}

func newCacheReference(fault string) *cacheReference {
	return &cacheReference{fault: fault, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), things: map[string]*held{}}
}

func (r *cacheReference) backend() *contracttest.CacheBackend {
	return &contracttest.CacheBackend{
		New: func(_ testing.TB, name string, limits cache.Limits) cache.CachePort {
			return &referenceCache{r: r, name: name, limits: limits}
		},
		Reports: true, Shares: true, Held: true,
		Advance: func(d time.Duration) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.now = r.now.Add(d)
		},
		TTL: func(_ testing.TB, name, key string) (time.Duration, bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			thing := r.find(r.key(name, key))
			if thing == nil || thing.expiresAt.IsZero() {
				return 0, false
			}
			return thing.expiresAt.Sub(r.now), true
		},
		State: func(_ testing.TB, name, key string) string {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.fault == "leaves-expired" {
				if thing := r.things[r.key(name, key)]; thing != nil {
					return fmt.Sprint(thing.Observation)
				}
			}
			thing := r.find(r.key(name, key))
			if thing == nil {
				return ""
			}
			return fmt.Sprint(thing.Observation, thing.foreign)
		},
		PutForeign: func(_ testing.TB, name, key string, kind contracttest.ForeignKind) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.things[r.key(name, key)] = &held{foreign: kind}
		},
	}
}

func (r *cacheReference) key(name, key string) string {
	switch r.fault {
	case "names-collide":
		name = ""
	case "key-case-ignored":
		key = strings.ToLower(key)
	case "key-cut":
		key = key[:min(len(key), cache.MaxKeyBytes-1)]
	case "key-trimmed":
		key = strings.TrimRight(key, "\x00\n ")
	}
	return name + "/" + key
}

// find gives what stands at a key and has not expired.
func (r *cacheReference) find(key string) *held {
	thing := r.things[key]
	if thing == nil || !thing.expiresAt.IsZero() && r.now.After(thing.expiresAt) && r.fault != "never-expires" {
		return nil
	}
	return thing
}

// referenceCache is one instance.
type referenceCache struct {
	r      *cacheReference
	name   string
	limits cache.Limits
}

func (c *referenceCache) refuse(ctx context.Context, err error) error {
	refused := func(code store.Code) error {
		return &store.Error{Op: "reference", Certainty: store.NotSent, Code: code}
	}
	_, bounded := ctx.Deadline()
	switch {
	case err != nil && c.r.fault != "arguments-unchecked":
		return refused(store.CodeInvalidArgument)
	case errors.Is(ctx.Err(), context.Canceled) && c.r.fault != "cancel-ignored":
		return refused(store.CodeCanceled)
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.Canceled):
		return refused(store.CodeDeadline)
	case !bounded && c.r.fault != "deadline-not-wanted":
		return refused(store.CodeInvalidArgument)
	}
	return nil
}

func (c *referenceCache) foreign(thing *held) error {
	if thing != nil && thing.foreign != "" && c.r.fault != "forgives-foreign" {
		return &store.Error{Op: "reference", Certainty: store.Mismatched, Code: store.CodeWrongType}
	}
	return nil
}

func (c *referenceCache) Get(ctx context.Context, key string) (cache.Observation, error) {
	if err := c.refuse(ctx, cache.CheckKey(key)); err != nil {
		return cache.Observation{}, err
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	thing := c.r.find(c.r.key(c.name, key))
	if thing == nil {
		if c.r.fault == "miss-is-wrapped" {
			return cache.Observation{}, fmt.Errorf("get: %w", cache.ErrNotFound)
		}
		return cache.Observation{}, cache.ErrNotFound
	}
	switch c.r.fault {
	case "reading-prolongs":
		thing.expiresAt = thing.expiresAt.Add(time.Second)
	case "reading-makes-a-version":
		thing.Token = cache.NewToken()
	}
	return thing.Observation, c.foreign(thing)
}

func (c *referenceCache) write(key, value string, ttl time.Duration, before *held) cache.Written {
	token := cache.NewToken()
	value = strings.TrimSuffix(value, map[bool]string{true: "\x00"}[c.r.fault == "value-trimmed"])
	switch {
	case c.r.fault == "token-of-value":
		token = cache.Token(fmt.Sprintf("%022x", len(value)))
	case c.r.fault == "token-kept" && before != nil:
		token = before.Token
	}
	thing := &held{Observation: cache.Observation{Value: value, Token: token}, expiresAt: c.r.now.Add(ttl)}
	switch {
	case c.r.fault == "no-lifetime":
		thing.expiresAt = time.Time{}
	case c.r.fault == "lifetime-kept" && before != nil:
		thing.expiresAt = before.expiresAt
	}
	c.r.things[c.r.key(c.name, key)] = thing
	return cache.Written{Effect: cache.EffectApplied, Token: token}
}

func (c *referenceCache) PutIfAbsent(ctx context.Context, key, value string, ttl time.Duration) (cache.Written, error) {
	lifetime, fault := c.limits.CheckWrite(key, value, ttl)
	if err := c.refuse(ctx, fault); err != nil {
		return cache.Written{}, err
	}
	if c.r.fault == "default-lifetime-wrong" && ttl == cache.DefaultTTL {
		lifetime = time.Hour
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	thing := c.r.find(c.r.key(c.name, key))
	if thing != nil && c.r.fault != "put-overwrites" {
		if c.r.fault == "put-prolongs" {
			thing.expiresAt = c.r.now.Add(lifetime)
		}
		if c.r.fault == "token-beside-exists" {
			return cache.Written{Effect: cache.EffectExists, Token: cache.NewToken()}, nil
		}
		return cache.Written{Effect: cache.EffectExists}, nil
	}
	return c.write(key, value, lifetime, nil), nil
}

func (c *referenceCache) CompareAndReplace(ctx context.Context, key string, observed cache.Token, value string, ttl time.Duration) (cache.Written, error) {
	lifetime, fault := c.limits.CheckWrite(key, value, ttl)
	if err := c.refuse(ctx, errors.Join(fault, cache.CheckToken(observed))); err != nil {
		return cache.Written{}, err
	}
	c.r.mu.Lock()
	thing := c.r.find(c.r.key(c.name, key))
	if c.r.fault == "not-atomic" {
		c.r.mu.Unlock()
		time.Sleep(time.Millisecond)
		c.r.mu.Lock()
	}
	defer c.r.mu.Unlock()
	if err := c.foreign(thing); err != nil {
		return cache.Written{}, err
	}
	switch {
	case thing == nil && c.r.fault == "replace-creates":
	case thing == nil:
		return cache.Written{Effect: cache.EffectAbsent}, nil
	case thing.Token != observed && c.r.fault != "token-ignored":
		return cache.Written{Effect: cache.EffectChanged}, nil
	}
	return c.write(key, value, lifetime, thing), nil
}

func (c *referenceCache) DeleteByToken(ctx context.Context, key string, observed cache.Token) (cache.Effect, error) {
	if err := c.refuse(ctx, errors.Join(cache.CheckKey(key), cache.CheckToken(observed))); err != nil {
		return cache.EffectInvalid, err
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	physical := c.r.key(c.name, key)
	thing := c.r.find(physical)
	if err := c.foreign(thing); err != nil {
		return cache.EffectInvalid, err
	}
	switch {
	case thing == nil && c.r.fault != "absent-is-removed":
		return cache.EffectAbsent, nil
	case thing != nil && thing.Token != observed && c.r.fault != "delete-ignores-token":
		return cache.EffectChanged, nil
	}
	if c.r.fault != "delete-keeps" {
		delete(c.r.things, physical)
	}
	return cache.EffectApplied, nil
}

// TestCacheSuiteFindsFaults runs the suite in a process of its own over the reference with one
// deliberate fault at a time. It must fail, and in the subtest that is there for that fault.
func TestCacheSuiteFindsFaults(t *testing.T) {
	if os.Getenv(faultVariable) != "" {
		t.Fatal("a faulty process must run TestCacheReference alone")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for fault, where := range map[string][]string{
		"put-overwrites":          {"PutThenGet", "OnePutWins", "ForeignKeys"},
		"put-prolongs":            {"LifetimesAreExact"},
		"token-beside-exists":     {"PutThenGet"},
		"token-ignored":           {"ReplaceByToken", "EqualValuesAreOtherVersions", "OneReplacementWins"},
		"token-kept":              {"ReplaceByToken", "EqualValuesAreOtherVersions"},
		"token-of-value":          {"EqualValuesAreOtherVersions", "TokensAreUnique"},
		"not-atomic":              {"OneReplacementWins", "NoUpdateIsLost"},
		"replace-creates":         {"MissIsBare", "DeleteByToken"},
		"delete-ignores-token":    {"DeleteByToken", "EqualValuesAreOtherVersions"},
		"delete-keeps":            {"PutThenGet", "DeleteByToken", "OneRemovalWins"},
		"absent-is-removed":       {"MissIsBare", "OneRemovalWins"},
		"reading-makes-a-version": {"PutThenGet", "ReadingKeepsTheVersion"},
		"reading-prolongs":        {"LifetimesAreExact"},
		"lifetime-kept":           {"LifetimesAreExact", "LifetimesAreFinite"},
		"no-lifetime":             {"LifetimesAreFinite", "EntriesExpire"},
		"never-expires":           {"EntriesExpire", "LifetimesAreExact"},
		"leaves-expired":          {"ExpiredEntriesLeaveNothing"},
		"default-lifetime-wrong":  {"LifetimesAreExact"},
		"miss-is-wrapped":         {"MissIsBare"},
		"value-trimmed":           {"AnyBytes"},
		"names-collide":           {"NamesAreApart"},
		"key-case-ignored":        {"AnyKey"},
		"key-cut":                 {"AnyKey"},
		"key-trimmed":             {"AnyKey"},
		"arguments-unchecked":     {"WrongArguments", "ValuesAreBounded"},
		"cancel-ignored":          {"Contexts"},
		"deadline-not-wanted":     {"Contexts"},
		"forgives-foreign":        {"ForeignKeys"},
	} {
		t.Run(fault, func(t *testing.T) {
			command := exec.Command(self, "-test.run=^TestCacheReference$/"+only(where), "-test.count=1")
			command.Env = append(os.Environ(), faultVariable+"="+fault)
			output, err := command.CombinedOutput()
			if err == nil {
				t.Fatalf("the suite passes a cache with the fault %s", fault)
			}
			if strings.Contains(string(output), "panic: ") {
				t.Fatalf("the suite panics:\n%s", output)
			}
			for _, name := range where {
				if !strings.Contains(string(output), "--- FAIL: TestCacheReference/"+name+" ") {
					t.Errorf("TestCacheReference/%s does not notice the fault %s", name, fault)
				}
			}
		})
	}
}
