package cache

import (
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Bounds of keys, values and lifetimes. A key is 1..MaxKeyBytes of any bytes, a value
// 0..MaxValueBytes of any bytes; a provider may be configured with a lower bound for values.
const (
	// MaxKeyBytes bounds a key.
	MaxKeyBytes = store.MaxKeyBytes
	// MaxValueBytes leaves a store room for what it keeps beside the value.
	MaxValueBytes = store.MaxTextBytes - 64
	// MinTTL and MaxTTL bound a lifetime, which is whole milliseconds.
	MinTTL = store.MinTTL
	MaxTTL = store.MaxTTL
	// DefaultTTL, as the lifetime of a write, names the one that the provider was configured with. It
	// is no lifetime itself, and neither is 0.
	DefaultTTL time.Duration = -1
)

// Limits are what a provider was configured with.
type Limits struct {
	// DefaultTTL is the lifetime that cache.DefaultTTL names: MinTTL..MaxTTL, whole milliseconds.
	DefaultTTL time.Duration
	// MaxValueBytes is the greatest value that is stored: 1..MaxValueBytes.
	MaxValueBytes int
}

// Check holds the limits to their ranges. It is for implementations.
func (l Limits) Check() error {
	if err := checkTTL(l.DefaultTTL); err != nil {
		return fmt.Errorf("default %w", err)
	}
	if l.MaxValueBytes < 1 || l.MaxValueBytes > MaxValueBytes {
		return fmt.Errorf("greatest value is %d bytes, want 1..%d", l.MaxValueBytes, MaxValueBytes)
	}
	return nil
}

// CheckKey holds a key to its bounds. It is for implementations.
func CheckKey(key string) error { return store.CheckKey(key) }

// CheckWrite holds a key, a value and a lifetime to their bounds and gives the lifetime that is meant.
// It is for implementations.
func (l Limits) CheckWrite(key, value string, ttl time.Duration) (time.Duration, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	if len(value) > l.MaxValueBytes {
		return 0, fmt.Errorf("value of %d bytes, at most %d", len(value), l.MaxValueBytes)
	}
	if ttl == DefaultTTL {
		return l.DefaultTTL, nil
	}
	return ttl, checkTTL(ttl)
}

func checkTTL(ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL || ttl%time.Millisecond != 0 {
		return fmt.Errorf("lifetime is %v, want whole milliseconds in %v..%v", ttl, MinTTL, MaxTTL)
	}
	return nil
}
