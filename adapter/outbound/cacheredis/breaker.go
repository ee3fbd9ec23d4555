package cacheredis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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
	*coordination
	policies *breaker.PolicySet
	prepared map[*breaker.Policy]*preparedBreaker
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
	if config.Policies == nil {
		faults = append(faults, errNoPolicies)
	}
	c, err := newCoordination(s, coordinationConfig{
		namespace: config.Namespace, secret: config.Secret, maxInFlight: config.MaxInFlight,
		commandTimeout: config.CommandTimeout, unavailableRetryAfter: config.UnavailableRetryAfter,
	}, faults...)
	if err != nil {
		return nil, err
	}
	b := &CircuitBreaker{coordination: c, policies: config.Policies, prepared: make(map[*breaker.Policy]*preparedBreaker)}
	for _, policy := range config.Policies.All() {
		b.prepared[policy] = prepareBreaker(c.builder, policy, c.kind)
	}
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
	t, failure := b.run(ctx, policy, request.Resource, deadline, store.BreakerAcquireV1, parseAcquire, token)
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
	t, failure := b.run(ctx, policy, permit.Resource, deadline, store.BreakerRecordV1, parseRecord,
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
	t, failure := b.run(ctx, policy, request.Resource, deadline, store.BreakerReadV1, parseRead)
	if failure != nil {
		return failure, nil
	}
	return breaker.ConcludeRead(policy, t, b.source), nil
}

// run runs one program and reads its reply.
func (b *CircuitBreaker) run(
	ctx context.Context, policy *breaker.Policy, resource breaker.ResourceDigest, deadline time.Time,
	program *store.Program, parse func(store.Reply, *breaker.Policy) (breaker.Transition, error), own ...any,
) (breaker.Transition, breaker.Failure) {
	if v := b.enter(ctx, deadline); v.kind != verdictReply {
		return breaker.Transition{}, failureOf(policy, v)
	}
	defer b.leave()
	p := b.prepared[policy]
	reply, v := b.eval(ctx, program, []string{p.keys.of(resource)}, p.arguments(own...))
	if v.kind == verdictReply {
		t, err := parse(reply, policy)
		if err == nil {
			return t, nil
		}
		v = misfit(ratelimit.IncompatibleReply)
	}
	return breaker.Transition{}, failureOf(policy, v)
}

// failureOf is what a breaker answers where there is no reply, or none that it can read.
func failureOf(policy *breaker.Policy, v verdict) breaker.Failure {
	switch v.kind {
	case verdictUnavailable:
		return breaker.Unavailable{PolicyID: policy.ID(), RetryAfter: v.retryAfter, Category: v.unavailable}
	case verdictIncompatible:
		return breaker.Incompatible{PolicyID: policy.ID(), Category: v.incompatible}
	case verdictIndeterminate, verdictReply:
	}
	return breaker.Indeterminate{PolicyID: policy.ID(), RetryAfter: v.retryAfter}
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
