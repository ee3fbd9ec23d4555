package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// The names of the operations in errors.
const (
	opCacheGet     = "cache get"
	opCachePut     = "cache put"
	opCacheReplace = "cache replace"
	opCacheDelete  = "cache delete"
)

// CacheConfig describes a cache. Everything is required.
type CacheConfig struct {
	// Name keeps caches of one deployment apart: 1..64 characters of A-Z a-z 0-9 . _ -.
	Name string
	// Namespace keeps deployments that share a Redis apart; see KeyBuilder.
	Namespace string
	// Secret is at least ratelimit.MinSecretBytes, the same for every instance of a deployment.
	Secret []byte
	// Limits are the lifetime by default and the greatest value.
	Limits cache.Limits
}

// Cache is the cache port over a store, which must not be the rate limiter's: a cache may lose what it
// holds, and its failures are of another kind. Physical keys hold a digest of the caller's:
//
//	edgelimit:production:cache:sessions:entry:Zm9v…
//
// The store needs the programs of store.CachePrograms.
type Cache struct {
	store  store.Store
	limits cache.Limits
	keys   *KeyBuilder
	prefix string
	input  []byte
}

var _ cache.CachePort = (*Cache)(nil)

// NewCache validates the configuration, all faults at once.
func NewCache(s store.Store, config CacheConfig) (*Cache, error) {
	var faults []error
	if s == nil {
		faults = append(faults, errors.New("cacheredis: no store"))
	}
	if err := checkWord("name", config.Name); err != nil {
		faults = append(faults, err)
	}
	if err := config.Limits.Check(); err != nil {
		faults = append(faults, fmt.Errorf("cacheredis: %w", err))
	}
	builder, err := NewKeyBuilder(config.Namespace, config.Secret)
	if err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return &Cache{
		store: s, limits: config.Limits, keys: builder,
		prefix: builder.prefix(capabilityCache, config.Name, kindEntry), input: appendField(nil, config.Name),
	}, nil
}

// EntryKey is the physical key of an entry. It is for operators and tests that look at the store.
func (c *Cache) EntryKey(key string) string { return c.keys.key(c.prefix, c.input, []byte(key)) }

// failure gives an error of the store under the operation of the cache.
func failure(op string, err error) error {
	var typed *store.Error
	if !errors.As(err, &typed) {
		return &store.Error{Op: op, Certainty: store.Uncertain, Code: store.CodeInvalid, Err: err}
	}
	return &store.Error{Op: op, Certainty: typed.Certainty, Code: typed.Code, Err: typed.Err}
}

// foreign is what stands at a key and is no entry.
func foreign(op string) error {
	return &store.Error{
		Op: op, Certainty: store.Mismatched, Code: store.CodeWrongType, Err: errors.New("what stands at the key is no entry"),
	}
}

// unresolved gives the token that a failed write would have made, where it may have made it.
func unresolved(token cache.Token, err error) cache.Written {
	var typed *store.Error
	if errors.As(err, &typed) {
		switch typed.Certainty {
		case store.NotSent, store.Refused:
			return cache.Written{}
		case store.Mismatched:
			if typed.Code == store.CodeWrongType {
				return cache.Written{}
			}
		case store.Uncertain, store.CertaintyInvalid:
		}
	}
	return cache.Written{Token: token}
}

// Get gives the version that stands at a key; see cache.CachePort. One GET.
func (c *Cache) Get(ctx context.Context, key string) (cache.Observation, error) {
	if err := cache.CheckKey(key); err != nil {
		return cache.Observation{}, invalidArgument(opCacheGet, err)
	}
	entry, err := c.store.Get(ctx, c.EntryKey(key))
	if errors.Is(err, store.ErrNotFound) {
		return cache.Observation{}, cache.ErrNotFound
	}
	if err != nil {
		return cache.Observation{}, failure(opCacheGet, err)
	}
	observation, ok := decodeEntry(entry)
	if !ok {
		return cache.Observation{}, foreign(opCacheGet)
	}
	return observation, nil
}

// PutIfAbsent stores a value where nothing stands; see cache.CachePort. One SET NX, for which a key of
// any type or form is one that exists.
func (c *Cache) PutIfAbsent(ctx context.Context, key, value string, ttl time.Duration) (cache.Written, error) {
	lifetime, err := c.limits.CheckWrite(key, value, ttl)
	if err != nil {
		return cache.Written{}, invalidArgument(opCachePut, err)
	}
	token := cache.NewToken()
	stored, err := c.store.SetNX(ctx, c.EntryKey(key), encodeEntry(token, value), lifetime)
	if err != nil {
		err = failure(opCachePut, err)
		return unresolved(token, err), err
	}
	if !stored {
		return cache.Written{Effect: cache.EffectExists}, nil
	}
	return cache.Written{Effect: cache.EffectApplied, Token: token}, nil
}

// CompareAndReplace stores a value in the place of a version; see cache.CachePort. One program.
func (c *Cache) CompareAndReplace(ctx context.Context, key string, observed cache.Token, value string, ttl time.Duration) (cache.Written, error) {
	lifetime, err := c.limits.CheckWrite(key, value, ttl)
	if err = errors.Join(err, cache.CheckToken(observed)); err != nil {
		return cache.Written{}, invalidArgument(opCacheReplace, err)
	}
	token := cache.NewToken()
	effect, err := c.run(ctx, opCacheReplace, store.CacheReplaceV1, key,
		string(observed), encodeEntry(token, value), lifetime.Milliseconds())
	if err != nil {
		return unresolved(token, err), err
	}
	if effect != cache.EffectApplied {
		token = ""
	}
	return cache.Written{Effect: effect, Token: token}, nil
}

// DeleteByToken removes a version; see cache.CachePort. One program.
func (c *Cache) DeleteByToken(ctx context.Context, key string, observed cache.Token) (cache.Effect, error) {
	if err := errors.Join(cache.CheckKey(key), cache.CheckToken(observed)); err != nil {
		return cache.EffectInvalid, invalidArgument(opCacheDelete, err)
	}
	return c.run(ctx, opCacheDelete, store.CacheDeleteV1, key, string(observed))
}

// run evaluates a program and reads its one word.
func (c *Cache) run(ctx context.Context, op string, program *store.Program, key string, args ...any) (cache.Effect, error) {
	reply, err := c.store.Eval(ctx, program, []string{c.EntryKey(key)}, args)
	if err != nil {
		return cache.EffectInvalid, failure(op, err)
	}
	if reply.Len() == 1 && reply.At(0).Kind == store.ValueText {
		switch reply.At(0).Text {
		case "APPLIED":
			return cache.EffectApplied, nil
		case "CHANGED":
			return cache.EffectChanged, nil
		case "ABSENT":
			return cache.EffectAbsent, nil
		case "STATE_INCOMPATIBLE":
			return cache.EffectInvalid, foreign(op)
		}
	}
	return cache.EffectInvalid, unexpectedReply(op)
}
