package memory

import (
	"container/heap"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// BreakerConfig is what a circuit breaker is made of. Every field is required, but where it says so.
type BreakerConfig struct {
	Policies *breaker.PolicySet
	// Clock reads the time; nil means time.Now. It is called with a lock held, so it must be quick and
	// must not call the breaker.
	Clock func() time.Time
	// MaxKeys bounds the stored states over all policies, 1..MostKeys. A state takes about 1.5 kB. A
	// breaker that is closed and has counted nothing has none.
	MaxKeys int
	// UnavailableRetryAfter is the hint in Unavailable where no true time is known. At least 1 ms.
	UnavailableRetryAfter time.Duration
}

// CircuitBreaker is the circuit-breaker port in this process. Its constructor is NewCircuitBreaker.
type CircuitBreaker struct {
	policies   *breaker.PolicySet
	clock      func() time.Time
	maxKeys    int
	retryAfter time.Duration

	mu     sync.Mutex
	states map[breakerKey]*breakerState
	order  breakerOrder // by expiry, the earliest first
}

var _ breaker.CircuitBreakerPort = (*CircuitBreaker)(nil)

type breakerKey struct {
	policy   *breaker.Policy
	resource breaker.ResourceDigest
}

type breakerState struct {
	key       breakerKey
	stored    breaker.Stored
	expiresAt int64 // ms
	place     int   // in CircuitBreaker.order
}

// NewCircuitBreaker makes a breaker with no state, or says everything that is wrong with config.
func NewCircuitBreaker(config BreakerConfig) (*CircuitBreaker, error) {
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
	b := &CircuitBreaker{
		policies: config.Policies, clock: config.Clock, maxKeys: config.MaxKeys, retryAfter: config.UnavailableRetryAfter,
		states: make(map[breakerKey]*breakerState),
	}
	if b.clock == nil {
		b.clock = time.Now
	}
	return b, nil
}

// Acquire asks for a call; see breaker.CircuitBreakerPort.
func (b *CircuitBreaker) Acquire(ctx context.Context, request breaker.AcquireRequest) (breaker.AcquireOutcome, error) {
	policy, deadline, err := b.policies.AdmitAcquire(ctx, request)
	if err != nil {
		return nil, err
	}
	var random [breaker.TokenLength / 2]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails.
	token := hex.EncodeToString(random[:])
	m := policy.Machine()
	t, failure := b.decide(ctx, policy, request.Resource, deadline, func(s breaker.Stored, now int64) (breaker.Transition, breaker.Stored) {
		return m.Acquire(s, now, token)
	})
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeAcquire(policy, request.Resource, token, t, ratelimit.SourceLocalMemory), nil
}

// Record tells a result; see breaker.CircuitBreakerPort.
func (b *CircuitBreaker) Record(ctx context.Context, request breaker.RecordRequest) (breaker.RecordOutcome, error) {
	policy, deadline, err := b.policies.AdmitRecord(ctx, request)
	if err != nil {
		return nil, err
	}
	m, permit := policy.Machine(), request.Permit
	t, failure := b.decide(ctx, policy, permit.Resource, deadline, func(s breaker.Stored, now int64) (breaker.Transition, breaker.Stored) {
		return m.Record(s, now, breaker.Report{
			Kind: permit.Kind, Token: permit.Token, Generation: permit.Generation, AcquiredAt: permit.AcquiredAt, Result: request.Result,
		})
	})
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeRecord(policy, t, ratelimit.SourceLocalMemory), nil
}

// Read tells the state; see breaker.CircuitBreakerPort.
func (b *CircuitBreaker) Read(ctx context.Context, request breaker.ReadRequest) (breaker.ReadOutcome, error) {
	policy, deadline, err := b.policies.AdmitRead(ctx, request)
	if err != nil {
		return nil, err
	}
	m := policy.Machine()
	t, failure := b.decide(ctx, policy, request.Resource, deadline, func(s breaker.Stored, now int64) (breaker.Transition, breaker.Stored) {
		return m.Read(s, now), s
	})
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeRead(policy, t, ratelimit.SourceLocalMemory), nil
}

// StoredStates is the number of states held, those among them that have expired and not yet been
// reclaimed.
func (b *CircuitBreaker) StoredStates() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.states)
}

// decide reads the clock, runs one transition and stores what it writes, all under the lock.
func (b *CircuitBreaker) decide(
	ctx context.Context, policy *breaker.Policy, resource breaker.ResourceDigest, deadline time.Time,
	run func(s breaker.Stored, now int64) (breaker.Transition, breaker.Stored),
) (breaker.Transition, breaker.Failure) {
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return breaker.Transition{}, b.unavailable(policy, ratelimit.UnavailableDeadline)
		}
		return breaker.Transition{}, b.unavailable(policy, ratelimit.UnavailableCanceled)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	reading := b.clock()
	if !reading.Before(deadline) {
		return breaker.Transition{}, b.unavailable(policy, ratelimit.UnavailableDeadline)
	}
	now := reading.UnixMilli()
	if now < 0 || now > algorithm.MaxNowMillis {
		return breaker.Refused(breaker.StatusInvalid, now), nil
	}
	b.reclaim(now)
	key := breakerKey{policy: policy, resource: resource}
	state := b.states[key]
	var before breaker.Stored
	if state != nil {
		before = state.stored
	}
	t, after := run(before, now)
	switch {
	case !t.Writes:
	case state == nil && len(b.states) >= b.maxKeys:
		return breaker.Transition{}, b.unavailable(policy, ratelimit.UnavailableCapacity)
	case state == nil:
		state = &breakerState{key: key, stored: after, expiresAt: t.EffectiveNowMillis + policy.Machine().LifetimeMillis()}
		b.states[key] = state
		heap.Push(&b.order, state)
	default:
		state.stored, state.expiresAt = after, t.EffectiveNowMillis+policy.Machine().LifetimeMillis()
		heap.Fix(&b.order, state.place)
	}
	return t, nil
}

// reclaimedBreakers bounds the expired states that one call removes: more than it can add.
const reclaimedBreakers = 4

// reclaim removes states that have expired.
func (b *CircuitBreaker) reclaim(now int64) {
	for range reclaimedBreakers {
		if len(b.order) == 0 || b.order[0].expiresAt > now {
			return
		}
		gone, _ := heap.Pop(&b.order).(*breakerState) // It holds nothing else.
		delete(b.states, gone.key)
	}
}

func (b *CircuitBreaker) unavailable(policy *breaker.Policy, category ratelimit.UnavailableCategory) breaker.Failure {
	return breaker.Unavailable{PolicyID: policy.ID(), RetryAfter: b.retryAfter, Category: category}
}

// breakerOrder is a heap of states by expiry.
type breakerOrder []*breakerState

func (o breakerOrder) Len() int           { return len(o) }
func (o breakerOrder) Less(i, j int) bool { return o[i].expiresAt < o[j].expiresAt }

func (o breakerOrder) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = i, j
}

// Push adds a state, for container/heap.
func (o *breakerOrder) Push(x any) {
	state, _ := x.(*breakerState) // It holds nothing else.
	state.place = len(*o)
	*o = append(*o, state)
}

// Pop removes the last state, for container/heap.
func (o *breakerOrder) Pop() any {
	last := len(*o) - 1
	state := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return state
}
