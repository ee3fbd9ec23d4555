package cacheredis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// BreakerConfig describes a circuit breaker. Everything is required; what is not explained is as of
// LimiterConfig.
type BreakerConfig struct {
	Policies              *breaker.PolicySet
	Namespace             string
	Secret                []byte
	MaxInFlight           int
	CommandTimeout        time.Duration
	UnavailableRetryAfter time.Duration
}

// CircuitBreaker is the circuit-breaker port over a store. Its outcomes carry the store's source.
type CircuitBreaker struct {
	store          store.Store
	policies       *breaker.PolicySet
	prepared       map[*breaker.Policy]*preparedBreaker
	commandTimeout time.Duration
	retryAfter     time.Duration
	source         ratelimit.Source
	admission      admission
}

var _ breaker.CircuitBreakerPort = (*CircuitBreaker)(nil)

// preparedBreaker is what a call needs of a policy, made once.
type preparedBreaker struct {
	keys  policyKeys
	fixed []any // the arguments that all three programs begin with
}

// NewCircuitBreaker validates the configuration. Over a store with a caller's clock it uses keys of
// the kind sim.
func NewCircuitBreaker(s store.Store, config BreakerConfig) (*CircuitBreaker, error) {
	var faults []error
	refuse := func(format string, args ...any) { faults = append(faults, fmt.Errorf("cacheredis: "+format, args...)) }
	if s == nil {
		refuse("no store")
	}
	if config.Policies == nil {
		refuse("no policies")
	}
	if config.MaxInFlight < 1 || config.MaxInFlight > MaxInFlightLimit {
		refuse("max in flight is %d, want 1..%d", config.MaxInFlight, MaxInFlightLimit)
	}
	if config.CommandTimeout < MinCommandTimeout || config.CommandTimeout > MaxCommandTimeout {
		refuse("command timeout is %v, want %v..%v", config.CommandTimeout, MinCommandTimeout, MaxCommandTimeout)
	}
	if config.UnavailableRetryAfter < time.Millisecond || config.UnavailableRetryAfter > MaxUnavailableRetryAfter {
		refuse("unavailable retry-after is %v, want 1ms..%v", config.UnavailableRetryAfter, MaxUnavailableRetryAfter)
	}
	builder, err := NewKeyBuilder(config.Namespace, config.Secret)
	if err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	b := &CircuitBreaker{
		store:          s,
		policies:       config.Policies,
		prepared:       make(map[*breaker.Policy]*preparedBreaker),
		commandTimeout: config.CommandTimeout,
		retryAfter:     config.UnavailableRetryAfter,
	}
	switch s.Source() {
	case store.SourceGlobalRedis:
		b.source = ratelimit.SourceGlobalRedis
	case store.SourceLocalMemory:
		b.source = ratelimit.SourceLocalMemory
	case store.SourceInvalid:
		return nil, errors.New("cacheredis: the store does not say where its state lives")
	}
	kind := kindState
	if s.Clock() == store.ClockCaller {
		kind = kindSimulation
	}
	for _, policy := range config.Policies.All() {
		b.prepared[policy] = prepareBreaker(builder, policy, kind)
	}
	b.admission.init(config.MaxInFlight)
	return b, nil
}

func prepareBreaker(builder *KeyBuilder, policy *breaker.Policy, kind string) *preparedBreaker {
	m := policy.Machine()
	p := &preparedBreaker{keys: builder.breakerKeys(policy, kind)}
	p.fixed = append(p.fixed, fmt.Sprintf("%d:cb:%d:%s", schema, policy.Revision(), policy.Fingerprint()))
	for _, n := range []int64{
		m.Threshold, m.Buckets, m.BucketMillis, m.MinimumCalls, m.RatePermille, m.OpenTimeoutMillis, m.MaxProbes,
		m.ProbeLeaseMillis, m.ProbeSuccesses, m.Clock.GraceMillis, m.Clock.MaxRegressionMillis,
	} {
		p.fixed = append(p.fixed, encodeInteger(n))
	}
	return p
}

// arguments are those of one call: the policy, the program's own, and the clock, which the store fills
// in.
func (p *preparedBreaker) arguments(own ...any) []any {
	args := make([]any, 0, len(p.fixed)+len(own)+1)
	args = append(args, p.fixed...)
	args = append(args, own...)
	return append(args, int64(0))
}

// Acquire asks for a call; see breaker.CircuitBreakerPort. It returns within the command timeout,
// whatever the deadline.
func (b *CircuitBreaker) Acquire(ctx context.Context, request breaker.AcquireRequest) (breaker.AcquireOutcome, error) {
	policy, deadline, err := b.policies.AdmitAcquire(ctx, request)
	if err != nil {
		return nil, err
	}
	var random [breaker.TokenLength / 2]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails.
	token := hex.EncodeToString(random[:])
	t, failure := b.ask(ctx, policy, request.Resource, deadline, store.BreakerAcquireV1, parseAcquire, token)
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeAcquire(policy, request.Resource, token, t, b.source), nil
}

// Record tells a result; see breaker.CircuitBreakerPort. It returns within the command timeout,
// whatever the deadline.
func (b *CircuitBreaker) Record(ctx context.Context, request breaker.RecordRequest) (breaker.RecordOutcome, error) {
	policy, deadline, err := b.policies.AdmitRecord(ctx, request)
	if err != nil {
		return nil, err
	}
	permit := request.Permit
	t, failure := b.ask(ctx, policy, permit.Resource, deadline, store.BreakerRecordV1, parseRecord,
		permit.Kind.String(), permit.Token, permit.Generation, permit.AcquiredAt, request.Result.String())
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeRecord(policy, t, b.source), nil
}

// Read tells the state; see breaker.CircuitBreakerPort. It returns within the command timeout,
// whatever the deadline.
func (b *CircuitBreaker) Read(ctx context.Context, request breaker.ReadRequest) (breaker.ReadOutcome, error) {
	policy, deadline, err := b.policies.AdmitRead(ctx, request)
	if err != nil {
		return nil, err
	}
	t, failure := b.ask(ctx, policy, request.Resource, deadline, store.BreakerReadV1, parseRead)
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeRead(policy, t, b.source), nil
}

// ask runs one program and reads its reply.
func (b *CircuitBreaker) ask(
	ctx context.Context, policy *breaker.Policy, resource breaker.ResourceDigest, deadline time.Time,
	program *store.Program, parse func(store.Reply, *breaker.Policy) (breaker.Transition, error), own ...any,
) (breaker.Transition, breaker.Failure) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return breaker.Transition{}, b.unavailable(policy, ratelimit.UnavailableCanceled)
	}
	if time.Until(deadline) < b.commandTimeout {
		return breaker.Transition{}, b.unavailable(policy, ratelimit.UnavailableDeadline)
	}
	switch b.admission.enter() {
	case admissionFull:
		return breaker.Transition{}, b.unavailable(policy, ratelimit.UnavailableAdmission)
	case admissionClosed:
		return breaker.Transition{}, b.unavailable(policy, ratelimit.UnavailableClosed)
	case admissionGranted, admissionInvalid:
	}
	defer b.admission.leave()

	ctx, cancel := context.WithTimeout(ctx, b.commandTimeout)
	defer cancel()
	p := b.prepared[policy]
	reply, err := b.store.Eval(ctx, program, []string{p.keys.of(resource)}, p.arguments(own...))
	if err != nil {
		return breaker.Transition{}, b.failed(policy, err)
	}
	t, err := parse(reply, policy)
	if err != nil {
		return breaker.Transition{}, breaker.Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleReply}
	}
	return t, nil
}

// StateKey is the physical key of a resource's state under a policy, or "" where there is no such
// policy. It is for operators and tests that look at the store.
func (b *CircuitBreaker) StateKey(policy breaker.PolicyID, resource breaker.ResourceDigest) string {
	p, ok := b.prepared[b.policies.Get(policy)]
	if !ok || resource.IsZero() {
		return ""
	}
	return p.keys.of(resource)
}

// Drain refuses new calls as closed and waits until those in flight have ended or ctx has.
func (b *CircuitBreaker) Drain(ctx context.Context) error { return b.admission.drain(ctx) }

func (b *CircuitBreaker) unavailable(policy *breaker.Policy, category ratelimit.UnavailableCategory) breaker.Failure {
	return breaker.Unavailable{PolicyID: policy.ID(), RetryAfter: b.retryAfter, Category: category}
}

// failed turns a store's error into an outcome, by its certainty and code alone.
func (b *CircuitBreaker) failed(policy *breaker.Policy, err error) breaker.Failure {
	var failure *store.Error
	if !errors.As(err, &failure) {
		return breaker.Indeterminate{PolicyID: policy.ID(), RetryAfter: b.retryAfter}
	}
	switch failure.Certainty {
	case store.NotSent, store.Refused:
		if reason := category(failure.Code); reason != ratelimit.UnavailableInvalid {
			return b.unavailable(policy, reason)
		}
		return breaker.Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleProgram}
	case store.Mismatched:
		if failure.Code == store.CodeWrongType {
			return breaker.Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleState}
		}
		return breaker.Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleReply}
	case store.Uncertain, store.CertaintyInvalid:
	}
	return breaker.Indeterminate{PolicyID: policy.ID(), RetryAfter: b.retryAfter}
}
