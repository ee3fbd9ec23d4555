package memory

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MostKeys is the greatest value of Config.MaxKeys.
const MostKeys = 1 << 30

// Config is what a limiter is made of. Every field is required, but where it says so.
type Config struct {
	Policies *ratelimit.PolicySet
	// Clock reads the time; nil means time.Now. It is called with a lock held, so it must be quick and
	// must not call the limiter.
	Clock func() time.Time
	// MaxKeys bounds the live states over all policies, 1..MostKeys. A state takes about 200 bytes. That
	// of a sliding window log counts as one and takes more: see the package's Bounds.
	MaxKeys int
	// UnavailableRetryAfter is the hint in Unavailable where no true time is known. At least 1 ms.
	UnavailableRetryAfter time.Duration
}

// EdgeRateLimiter decides in this process. Its constructor is NewEdgeRateLimiter.
type EdgeRateLimiter struct {
	policies   *ratelimit.PolicySet
	compiled   map[*ratelimit.RateLimitPolicy]*compiled
	clock      func() time.Time
	retryAfter time.Duration
	seed       maphash.Seed
	shards     []shard
	budget     *budget
}

var _ ratelimit.EdgeRateLimitPort = (*EdgeRateLimiter)(nil)

// NewEdgeRateLimiter makes a limiter with no state, or says everything that is wrong with config.
func NewEdgeRateLimiter(config Config) (*EdgeRateLimiter, error) {
	var faults []error
	if config.Policies == nil {
		faults = append(faults, errors.New("memory: Policies is nil"))
	}
	if config.MaxKeys < 1 || config.MaxKeys > MostKeys {
		faults = append(faults, fmt.Errorf("memory: MaxKeys is %d, want 1..%d", config.MaxKeys, MostKeys))
	}
	if config.UnavailableRetryAfter < time.Millisecond {
		faults = append(faults, fmt.Errorf("memory: UnavailableRetryAfter is %v, want 1ms or more", config.UnavailableRetryAfter))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	policies := config.Policies.All()
	table := make(map[*ratelimit.RateLimitPolicy]*compiled, len(policies))
	for i, policy := range policies {
		c, err := compile(policy, uint32(i))
		if err != nil {
			return nil, err
		}
		table[policy] = c
	}
	clock := config.Clock
	if clock == nil {
		clock = time.Now
	}
	l := &EdgeRateLimiter{
		policies: config.Policies, compiled: table, clock: clock, retryAfter: config.UnavailableRetryAfter,
		seed: maphash.MakeSeed(), shards: make([]shard, shardsFor(config.MaxKeys)),
		budget: &budget{most: int64(config.MaxKeys)},
	}
	for i := range l.shards {
		l.shards[i].init(l.budget)
	}
	return l, nil
}

const (
	fewestShards = 64
	mostShards   = 1024
	keysPerShard = 512
)

// shardsFor gives a power of two: enough that locks are seldom contended and that a shard's
// rebuilding is short, few enough to look at all of them in one call.
func shardsFor(keys int) int {
	n := fewestShards
	for n < mostShards && n*keysPerShard < keys {
		n *= 2
	}
	return n
}

// LiveKeys is the number of states held, those among them that have expired and not yet been
// reclaimed.
func (l *EdgeRateLimiter) LiveKeys() int { return int(l.budget.held.Load()) }

// Evaluate decides once. See ratelimit.EdgeRateLimitPort.
func (l *EdgeRateLimiter) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	policy, deadline, err := l.policies.Admit(ctx, request)
	if err != nil {
		return nil, err
	}
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return l.unavailable(policy, ratelimit.UnavailableDeadline), nil
		}
		return l.unavailable(policy, ratelimit.UnavailableCanceled), nil
	}
	a := ask{policy: l.compiled[policy], deadline: deadline, cost: request.Cost}
	a.key = key{digest: request.Subject.Bytes(), policy: a.policy.index}
	d, verdict := l.decide(&a)
	switch verdict {
	case verdictDeadline:
		return l.unavailable(policy, ratelimit.UnavailableDeadline), nil
	case verdictFull:
		return l.unavailable(policy, ratelimit.UnavailableCapacity), nil
	case verdictDecided:
	}
	return ratelimit.Conclude(policy, d, ratelimit.SourceLocalMemory), nil
}

func (l *EdgeRateLimiter) unavailable(policy *ratelimit.RateLimitPolicy, category ratelimit.UnavailableCategory) ratelimit.Outcome {
	return ratelimit.Unavailable{PolicyID: policy.ID(), RetryAfter: l.retryAfter, Category: category}
}

// ask is one question on its way through the shards.
type ask struct {
	policy   *compiled
	key      key
	deadline time.Time
	cost     int64
}

// verdict says how a shard dealt with a question.
type verdict uint8

const (
	// verdictDecided: the decision stands.
	verdictDecided verdict = iota
	// verdictDeadline: the deadline was over at the clock reading; nothing was decided.
	verdictDeadline
	// verdictFull: a new state was needed and there was no room for it; nothing was decided.
	verdictFull
)

// decide decides without an allocation, unless a shard has to grow or shrink.
func (l *EdgeRateLimiter) decide(a *ask) (algorithm.Decision, verdict) {
	own := l.shardOf(&a.key)
	reply := l.shards[own].decide(l.clock, a, false)
	if reply.verdict == verdictFull {
		// The place of an expired state anywhere is taken over, not freed and taken: so one search is
		// enough, whatever others do meanwhile.
		if !l.takeOver(own, reply.now) {
			return algorithm.Decision{}, verdictFull
		}
		reply = l.shards[own].decide(l.clock, a, true)
	}
	if reply.verdict == verdictDecided {
		l.shards[(own+reply.turn)&(len(l.shards)-1)].sweep(reply.now)
	}
	return reply.decision, reply.verdict
}

// shardOf mixes the digest with a seed of this process: callers choose digests.
func (l *EdgeRateLimiter) shardOf(k *key) int {
	return int(maphash.Bytes(l.seed, k.digest[:]) & uint64(len(l.shards)-1)) //nolint:gosec // G115: below mostShards.
}

// takeOver looks through all shards, beginning with one, for an expired state, removes it and keeps
// its place in the budget. Shards are locked one at a time, and only where one has expired.
func (l *EdgeRateLimiter) takeOver(first int, now int64) bool {
	for i := range l.shards {
		if l.shards[(first+i)&(len(l.shards)-1)].evictOne(now) {
			return true
		}
	}
	return false
}
