package store

import (
	"context"
	"time"
)

// Source names where the state behind a Store lives. Decisions carry it.
type Source uint8

const (
	// SourceInvalid is the invalid zero value.
	SourceInvalid Source = iota
	// SourceGlobalRedis is a Redis that all instances share.
	SourceGlobalRedis
	// SourceLocalMemory is the memory of this process.
	SourceLocalMemory
)

// Bounds of keys and lifetimes. Values are 0..MaxTextBytes of any bytes.
const (
	// MaxKeyBytes bounds a key, without the store's prefix. A key has at least one byte.
	MaxKeyBytes = 512
	// MaxKeys bounds the keys of one Del.
	MaxKeys = 1000
	// MinTTL and MaxTTL bound a lifetime, which is whole milliseconds: every key has a finite one.
	MinTTL = time.Millisecond
	MaxTTL = maxHorizon * time.Millisecond
)

// Store is the narrow persistence port: strings with a lifetime, and atomic programs.
//
// Every error is ErrNotFound or an *Error, whose Certainty says whether anything can have been
// changed. Every context must carry a deadline; without one a call is refused with
// CodeInvalidArgument, as is whatever is out of its bounds.
//
// # Lifetimes
//
// Set, SetNX and GetSet give the value the lifetime that they name, counted anew. IncrBy gives it on
// creation only: incrementing an existing key leaves its lifetime as it was. Reading changes none.
type Store interface {
	// Get gives a key's value, or ErrNotFound.
	Get(ctx context.Context, key string) (string, error)

	// Set stores a value, whatever stood at the key before.
	Set(ctx context.Context, key, value string, ttl time.Duration) error

	// SetNX stores a value where the key does not exist, and reports whether it did.
	SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error)

	// GetSet stores a value and gives the one before, or ErrNotFound where there was none; the value is
	// stored in both cases.
	GetSet(ctx context.Context, key, value string, ttl time.Duration) (string, error)

	// IncrBy adds delta to an integer, a missing key counting as 0, and gives the sum. Both are within
	// -(2^53-1)..2^53-1. A value that is no such integer in canonical decimal form is refused with
	// CodeNotInteger, a sum outside with CodeOutOfRange; then nothing is changed.
	IncrBy(ctx context.Context, key string, delta int64, ttl time.Duration) (int64, error)

	// Del removes 1..MaxKeys keys and gives how many there were. It is atomic for each key, not over
	// all of them: on a failure some may be gone, and the certainty is Uncertain unless none was sent.
	Del(ctx context.Context, keys ...string) (int64, error)

	// Eval runs program with the given keys (their number is the program's) and arguments. Each
	// argument is a string or an int64; any other type is refused with CodeInvalidArgument. It sends
	// the program once: by digest, and by its exact source only where the server said that it does
	// not know the digest. It keeps neither slice: the caller may use them again once it has returned.
	Eval(ctx context.Context, program *Program, keys []string, args []any) (Reply, error)

	// Ping asks whether the store answers. It changes nothing.
	Ping(ctx context.Context) error

	// Source says where the state lives.
	Source() Source

	// Clock says whose clock programs decide by.
	Clock() ClockSource

	// Close ends the store. Calls after it are refused with CodeClosed; a second Close does nothing.
	Close() error
}
