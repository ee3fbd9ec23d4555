package store

import "context"

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

// Store evaluates programs atomically.
//
// Every error is an *Error; its Certainty says whether anything can have been changed.
type Store interface {
	// Eval runs program with the given keys (their number is the program's) and arguments. Each
	// argument is a string or an int64; any other type is refused with CodeInvalidArgument. It sends
	// the program once: by digest, and by its exact source only where the server said that it does
	// not know the digest. The context must carry a deadline; without one Eval refuses with
	// CodeInvalidArgument.
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
