package memory

import (
	"container/heap"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
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

// MostCacheBytes is the greatest value of CacheConfig.MaxBytes.
const MostCacheBytes = 1 << 40

// CacheConfig is what a cache is made of. Every field is required, but where it says so.
type CacheConfig struct {
	// Clock reads the time; nil means time.Now. It is called with a lock held, so it must be quick and
	// must not call the cache.
	Clock func() time.Time
	// MaxEntries bounds the entries, 1..MostKeys, and MaxBytes their keys and values together,
	// 1..MostCacheBytes. At a bound entries that have expired go first, then the one that was used
	// least recently.
	MaxEntries int
	MaxBytes   int64
	// Limits are the lifetime by default and the greatest value.
	Limits cache.Limits
}

// Cache is the cache port in this process. Its constructor is NewCache.
type Cache struct {
	clock      func() time.Time
	limits     cache.Limits
	maxEntries int
	maxBytes   int64

	mu      sync.Mutex
	entries map[string]*cacheEntry
	expiry  expiryHeap
	used    *list.List // of *cacheEntry, the most recently used in front
	bytes   int64
}

var _ cache.CachePort = (*Cache)(nil)

// cacheEntry is one entry with its places in both orders.
type cacheEntry struct {
	key       string
	stands    cache.Observation
	expiresAt time.Time // the entry is there at that moment, and not after it
	place     int
	used      *list.Element
}

func (e *cacheEntry) size() int64 { return int64(len(e.key) + len(e.stands.Value)) }

// NewCache makes an empty cache, or says everything that is wrong with config.
func NewCache(config CacheConfig) (*Cache, error) {
	var faults []error
	if config.MaxEntries < 1 || config.MaxEntries > MostKeys {
		faults = append(faults, fmt.Errorf("memory: MaxEntries is %d, want 1..%d", config.MaxEntries, MostKeys))
	}
	if config.MaxBytes < 1 || config.MaxBytes > MostCacheBytes {
		faults = append(faults, fmt.Errorf("memory: MaxBytes is %d, want 1..%d", config.MaxBytes, int64(MostCacheBytes)))
	}
	if err := config.Limits.Check(); err != nil {
		faults = append(faults, fmt.Errorf("memory: %w", err))
	} else if most := int64(config.Limits.MaxValueBytes) + cache.MaxKeyBytes; config.MaxBytes < most {
		// Else an entry that the limits allow could never be stored.
		faults = append(faults, fmt.Errorf("memory: MaxBytes is %d, want room for the greatest entry, %d or more", config.MaxBytes, most))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	c := &Cache{
		clock: config.Clock, limits: config.Limits, maxEntries: config.MaxEntries, maxBytes: config.MaxBytes,
		entries: make(map[string]*cacheEntry), used: list.New(),
	}
	if c.clock == nil {
		c.clock = time.Now
	}
	return c, nil
}

// Entries is the number of entries held, those among them that have expired and not yet been
// reclaimed.
func (c *Cache) Entries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// refused gives the failure of a call whose arguments are wrong or whose time is over, nil for none.
// What it gives is the interface: a nil *store.Error would be an error.
func refused(ctx context.Context, op string, err error) error {
	_, bounded := ctx.Deadline()
	cause := ctx.Err()
	switch {
	case err != nil:
		return invalidArgument(op, err)
	case errors.Is(cause, context.Canceled):
		return &store.Error{Op: op, Certainty: store.NotSent, Code: store.CodeCanceled, Err: cause}
	case cause != nil:
		return &store.Error{Op: op, Certainty: store.NotSent, Code: store.CodeDeadline, Err: cause}
	case !bounded:
		return invalidArgument(op, errors.New("no deadline"))
	}
	return nil
}

// Get gives the version that stands at a key; see cache.CachePort.
func (c *Cache) Get(ctx context.Context, key string) (cache.Observation, error) {
	if err := refused(ctx, opCacheGet, cache.CheckKey(key)); err != nil {
		return cache.Observation{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(key, c.clock())
	if e == nil {
		return cache.Observation{}, cache.ErrNotFound
	}
	c.used.MoveToFront(e.used)
	return e.stands, nil
}

// PutIfAbsent stores a value where nothing stands; see cache.CachePort.
func (c *Cache) PutIfAbsent(ctx context.Context, key, value string, ttl time.Duration) (cache.Written, error) {
	lifetime, fault := c.limits.CheckWrite(key, value, ttl)
	if err := refused(ctx, opCachePut, fault); err != nil {
		return cache.Written{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	if c.find(key, now) != nil {
		return cache.Written{Effect: cache.EffectExists}, nil
	}
	return c.insert(now, key, value, lifetime), nil
}

// CompareAndReplace stores a value in the place of a version; see cache.CachePort.
func (c *Cache) CompareAndReplace(ctx context.Context, key string, observed cache.Token, value string, ttl time.Duration) (cache.Written, error) {
	lifetime, fault := c.limits.CheckWrite(key, value, ttl)
	if err := refused(ctx, opCacheReplace, errors.Join(fault, cache.CheckToken(observed))); err != nil {
		return cache.Written{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	e, effect := c.observe(key, observed, now)
	if effect != cache.EffectApplied {
		return cache.Written{Effect: effect}, nil
	}
	c.remove(e)
	return c.insert(now, key, value, lifetime), nil
}

// DeleteByToken removes a version; see cache.CachePort.
func (c *Cache) DeleteByToken(ctx context.Context, key string, observed cache.Token) (cache.Effect, error) {
	if err := refused(ctx, opCacheDelete, errors.Join(cache.CheckKey(key), cache.CheckToken(observed))); err != nil {
		return cache.EffectInvalid, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, effect := c.observe(key, observed, c.clock())
	if effect == cache.EffectApplied {
		c.remove(e)
	}
	return effect, nil
}

// observe gives the entry whose version was observed, with EffectApplied, or the reason why not.
func (c *Cache) observe(key string, observed cache.Token, now time.Time) (*cacheEntry, cache.Effect) {
	switch e := c.find(key, now); {
	case e == nil:
		return nil, cache.EffectAbsent
	case e.stands.Token != observed:
		return nil, cache.EffectChanged
	default:
		return e, cache.EffectApplied
	}
}

// find gives the entry at a key that has not expired, or nil. What it finds expired is removed.
func (c *Cache) find(key string, now time.Time) *cacheEntry {
	e := c.entries[key]
	if e != nil && now.After(e.expiresAt) {
		c.remove(e)
		return nil
	}
	return e
}

// cacheReclaim bounds the expired entries that a write removes where there is room: more than the one
// that it adds.
const cacheReclaim = 4

// expired reports whether any entry has expired.
func (c *Cache) expired(now time.Time) bool {
	return len(c.expiry) > 0 && now.After(c.expiry[0].expiresAt)
}

// insert adds an entry where none stands, and makes room for it.
func (c *Cache) insert(now time.Time, key, value string, ttl time.Duration) cache.Written {
	e := &cacheEntry{
		key: key, stands: cache.Observation{Value: value, Token: cache.NewToken()}, expiresAt: now.Add(ttl),
	}
	for range cacheReclaim {
		if !c.expired(now) {
			break
		}
		c.remove(c.expiry[0])
	}
	for len(c.entries) >= c.maxEntries || c.bytes+e.size() > c.maxBytes {
		goes := c.used.Back().Value.(*cacheEntry) //nolint:forcetypeassert // The list holds nothing else.
		if c.expired(now) {
			goes = c.expiry[0]
		}
		c.remove(goes)
	}
	c.entries[key] = e
	c.bytes += e.size()
	heap.Push(&c.expiry, e)
	e.used = c.used.PushFront(e)
	return cache.Written{Effect: cache.EffectApplied, Token: e.stands.Token}
}

func (c *Cache) remove(e *cacheEntry) {
	delete(c.entries, e.key)
	c.bytes -= e.size()
	heap.Remove(&c.expiry, e.place)
	c.used.Remove(e.used)
}
