package contender

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Kind says what the decisions of a cell come to.
type Kind string

// The kinds.
const (
	// Allow: the limit is far above what a run can ask.
	Allow Kind = "allow"
	// Deny: one decision in 24 h may pass, and has.
	Deny Kind = "deny"
)

// The limits that every contender is given, over Redis and in memory.
const (
	// AllowLimit units each AllowPeriod over Redis, all of which may come at once.
	AllowLimit  = 1_000_000
	AllowPeriod = time.Minute
	// DenyLimit units each DenyPeriod.
	DenyLimit  = 1
	DenyPeriod = 24 * time.Hour
	// MemoryLimit units each MemoryPeriod in memory, where one key can be asked ten million times a
	// second.
	MemoryLimit  = 1_000_000_000
	MemoryPeriod = time.Second
	// LogLimit is the greatest limit of a sliding window log here, with LogPeriod over Redis and
	// LogMemoryPeriod in memory.
	LogLimit        = 10_000
	LogPeriod       = time.Second
	LogMemoryPeriod = time.Millisecond
)

// CommandTimeout is what one call of ours over Redis may take. It is long enough that it ends none.
const CommandTimeout = 2 * time.Second

// Role says what a contender is for.
type Role string

// The roles.
const (
	// Reference is what nothing over the same ground can be faster than by doing less.
	Reference Role = "reference"
	// Own is edgelimit.
	Own Role = "own"
	// Peer is another library.
	Peer Role = "peer"
)

// The names that others refer to.
const (
	PlainName        = "plain EVALSHA"
	AutoPipelineName = "EVALSHA, AutoPipeline"
	RedisRateName    = "redis_rate"
	ClockName        = "the clock alone"
)

// Setting is what a contender is opened with.
type Setting struct {
	Address  string // of the Redis server; empty in memory
	Kind     Kind
	Keys     int
	PoolSize int
	Callers  int // at most this many at once
	Policies int // over which keys are spread; what is not ours takes no notice. 0 means 1.
	// Period, over Redis, takes the place of AllowPeriod for a run that is longer than its keys would
	// live. Optional.
	Period time.Duration
}

// Decider is an opened contender. Decide is safe for concurrent use.
type Decider interface {
	// Decide asks once for the key of an index below Setting.Keys.
	Decide(ctx context.Context, key int) (allowed bool, err error)
	// Close ends what was opened. State in Redis stays.
	Close() error
}

// Contender is one way to decide.
type Contender struct {
	// Name is how tables call it; it has no version, which Module gives.
	Name string
	// Module is the path of the Go module that it is from.
	Module string
	Role   Role
	// Algorithm is what it decides by, in the words of its own documentation.
	Algorithm string
	// Note says what a reader has to know to compare.
	Note string
	// Fixed means that its answer does not depend on the kind: it is driven as Allow alone.
	Fixed bool
	// Unchecked means that the limit cannot be set above what a run asks, so that some denials are
	// right.
	Unchecked bool
	Open      func(ctx context.Context, setting Setting) (Decider, error)
}

// limits are what a setting means over Redis.
func limits(setting Setting) (limit int, period time.Duration) {
	switch {
	case setting.Kind == Deny:
		return DenyLimit, DenyPeriod
	case setting.Period > 0:
		return AllowLimit, setting.Period
	}
	return AllowLimit, AllowPeriod
}

// keyNames are the keys that peers are given, made beforehand: none of them makes its keys from an
// identity, so neither does the benchmark in their place.
func keyNames(setting Setting, owner string) []string {
	names := make([]string, setting.Keys)
	for i := range names {
		names[i] = fmt.Sprintf("bench:%s:%s:%s", owner, setting.Kind, strconv.Itoa(i))
	}
	return names
}

// noClose is for what holds nothing open.
type noClose struct{}

func (noClose) Close() error { return nil }
