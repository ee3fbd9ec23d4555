package store

import (
	"fmt"
	"time"
)

// CheckKey holds a key to its bounds. It is for implementations.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKeyBytes {
		return fmt.Errorf("key of %d bytes, want 1..%d", len(key), MaxKeyBytes)
	}
	return nil
}

// CheckEntry holds a key, a value and a lifetime to their bounds. It is for implementations.
func CheckEntry(key, value string, ttl time.Duration) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if len(value) > MaxTextBytes {
		return fmt.Errorf("value of %d bytes, at most %d", len(value), MaxTextBytes)
	}
	if ttl < MinTTL || ttl > MaxTTL || ttl%time.Millisecond != 0 {
		return fmt.Errorf("lifetime is %v, want whole milliseconds in %v..%v", ttl, MinTTL, MaxTTL)
	}
	return nil
}

// CheckDelta holds an increment to -(2^53-1)..2^53-1. It is for implementations.
func CheckDelta(delta int64) error {
	if delta < -maxExact || delta > maxExact {
		return fmt.Errorf("delta is %d, want -(2^53-1)..2^53-1", delta)
	}
	return nil
}

// CheckKeys holds the keys of one Del to their bounds. It is for implementations.
func CheckKeys(keys []string) error {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return fmt.Errorf("%d keys, want 1..%d", len(keys), MaxKeys)
	}
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	return nil
}
