package cache

import (
	"context"
	"errors"
	"time"
)

// ErrNotFound means that there is no entry. It comes bare, never inside a *store.Error: the cache did
// answer.
var ErrNotFound = errors.New("cache: not found")

// CachePort keeps values under keys, in a space of names of its own.
//
// Every error is ErrNotFound or a *store.Error. Every context must carry a deadline; without one a
// call is refused with store.CodeInvalidArgument, as is whatever is out of its bounds.
//
// # Lifetimes
//
// Each write that takes effect gives the entry the lifetime that it names, counted anew; DefaultTTL
// names the provider's. Reading changes none. There is no entry without a finite one.
//
// # Uncertain writes
//
// A write that failed with store.Uncertain may have taken effect. Its Written then carries the token
// that it would have made, so that the caller may Get and compare: nobody else makes that token.
type CachePort interface {
	// Get gives the version that stands at a key, or ErrNotFound.
	Get(ctx context.Context, key string) (Observation, error)

	// PutIfAbsent stores a value where there is no entry: EffectApplied or EffectExists.
	PutIfAbsent(ctx context.Context, key, value string, ttl time.Duration) (Written, error)

	// CompareAndReplace stores a value where the version observed stands: EffectApplied,
	// EffectChanged or EffectAbsent.
	CompareAndReplace(ctx context.Context, key string, observed Token, value string, ttl time.Duration) (Written, error)

	// DeleteByToken removes the entry where the version observed stands: EffectApplied, EffectChanged
	// or EffectAbsent.
	DeleteByToken(ctx context.Context, key string, observed Token) (Effect, error)
}

// Observation is one version of an entry.
type Observation struct {
	Value string
	Token Token
}

// Written is what became of a write.
type Written struct {
	Effect Effect
	// Token is that of the version made: set where Effect is EffectApplied, and beside an error or an
	// effect that leaves it open whether it was made.
	Token Token
}

// Effect says what became of a write.
type Effect uint8

const (
	// EffectInvalid is the invalid zero value.
	EffectInvalid Effect = iota
	// EffectApplied means that the write took effect.
	EffectApplied
	// EffectExists means that an entry stands at the key; nothing was changed.
	EffectExists
	// EffectChanged means that another version stands at the key; nothing was changed.
	EffectChanged
	// EffectAbsent means that no entry stands at the key; nothing was changed.
	EffectAbsent
	// EffectSkipped means that the cache was unavailable and nothing was changed. A provider answers
	// it never, only the decorator of package failopen.
	EffectSkipped
	// EffectUnknown means that the cache was unavailable and it is not known whether the write took
	// effect. A provider answers it never, only the decorator of package failopen.
	EffectUnknown
)

var effectWords = [...]string{
	EffectInvalid: "INVALID", EffectApplied: "APPLIED", EffectExists: "EXISTS", EffectChanged: "CHANGED",
	EffectAbsent: "ABSENT", EffectSkipped: "SKIPPED", EffectUnknown: "UNKNOWN",
}

// String gives the effect's word.
func (e Effect) String() string {
	if int(e) >= len(effectWords) {
		return effectWords[EffectInvalid]
	}
	return effectWords[e]
}
