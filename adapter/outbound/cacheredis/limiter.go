package cacheredis

import (
	"context"
	"errors"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Bounds of LimiterConfig.
const (
	MaxInFlightLimit         = 1 << 20
	MaxUnavailableRetryAfter = time.Hour
)

// LimiterConfig describes a rate limiter. Everything but Circuit is required.
type LimiterConfig struct {
	Policies *ratelimit.PolicySet
	// Namespace keeps deployments that share a Redis apart; see KeyBuilder.
	Namespace string
	// Secret is at least ratelimit.MinSecretBytes, the same for every instance of a deployment.
	Secret []byte
	// MaxInFlight is the number of admission slots, 1..1<<20: evaluations beyond it are Unavailable at
	// once.
	MaxInFlight int
	// CommandTimeout is the store's: less time than that left means that nothing is sent.
	CommandTimeout time.Duration
	// UnavailableRetryAfter, 1 ms..1 h, is the hint in outcomes whose true time is not known.
	UnavailableRetryAfter time.Duration
	// Circuit answers at once while the store is lost. Optional; nil means that every evaluation asks the
	// store.
	Circuit *CircuitConfig
}

// EdgeRateLimiter is the rate-limit port over a store. Its decisions carry the store's source.
type EdgeRateLimiter struct {
	*coordination
	policies *ratelimit.PolicySet
	prepared map[*ratelimit.RateLimitPolicy]*prepared
}

var _ ratelimit.EdgeRateLimitPort = (*EdgeRateLimiter)(nil)

// NewEdgeRateLimiter validates the configuration. Over a store with a caller's clock it uses keys of
// the kind sim.
func NewEdgeRateLimiter(s store.Store, config LimiterConfig) (*EdgeRateLimiter, error) {
	var faults []error
	if config.Policies == nil {
		faults = append(faults, errNoPolicies)
	}
	c, err := newCoordination(s, coordinationConfig{
		namespace: config.Namespace, secret: config.Secret, maxInFlight: config.MaxInFlight,
		commandTimeout: config.CommandTimeout, unavailableRetryAfter: config.UnavailableRetryAfter,
		circuit: config.Circuit,
	}, faults...)
	if err != nil {
		return nil, err
	}
	return (&EdgeRateLimiter{coordination: c}).WithPolicies(config.Policies)
}

// WithPolicies gives a limiter that decides by other policies and shares everything else with this
// one: the store, the slots, and what Drain does. State belongs to a policy's ID and revision, so a
// policy that is the same in both goes on where it was.
func (l *EdgeRateLimiter) WithPolicies(policies *ratelimit.PolicySet) (*EdgeRateLimiter, error) {
	if policies == nil {
		return nil, errNoPolicies
	}
	all := policies.All()
	with := &EdgeRateLimiter{
		coordination: l.coordination, policies: policies,
		prepared: make(map[*ratelimit.RateLimitPolicy]*prepared, len(all)),
	}
	for _, policy := range all {
		with.prepared[policy] = prepare(l.builder, policy, l.kind)
	}
	return with, nil
}

var errNoPolicies = errors.New("cacheredis: no policies")

// Evaluate decides one request; see ratelimit.EdgeRateLimitPort. It returns within the command
// timeout, whatever the deadline.
func (l *EdgeRateLimiter) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	policy, deadline, err := l.policies.Admit(ctx, request)
	if err != nil {
		return nil, err
	}
	if v := l.enter(ctx, deadline); v.kind != verdictReply {
		return outcomeOf(policy, v), nil
	}
	defer l.leave()
	p := l.prepared[policy]
	q := p.question(request.Subject, request.Cost)
	reply, v := l.eval(ctx, p.program, q.keys[:], q.args)
	p.release(q)
	if v.kind == verdictReply {
		decision, err := parseDecision(reply, policy, request.Cost)
		if err == nil {
			return ratelimit.Conclude(policy, decision, l.source), nil
		}
		v = misfit(ratelimit.IncompatibleReply)
	}
	return outcomeOf(policy, v), nil
}

// outcomeOf is what a limiter answers where there is no reply, or none that it can read.
func outcomeOf(policy *ratelimit.RateLimitPolicy, v verdict) ratelimit.Outcome {
	switch v.kind {
	case verdictUnavailable:
		return ratelimit.Unavailable{PolicyID: policy.ID(), RetryAfter: v.retryAfter, Category: v.unavailable}
	case verdictIncompatible:
		return ratelimit.Incompatible{PolicyID: policy.ID(), Category: v.incompatible}
	case verdictIndeterminate, verdictReply:
	}
	return ratelimit.Indeterminate{PolicyID: policy.ID(), RetryAfter: v.retryAfter}
}

// CircuitState is that of the circuit around the store, breaker.StateInvalid where there is none. It
// shows a state as long as nobody asks: an open circuit whose timeout is over stays open until the next
// evaluation, which is the probe.
func (l *EdgeRateLimiter) CircuitState() breaker.State { return l.circuit.state() }

// StateKey is the physical key of a subject's state under a policy, or "" where there is no such
// policy. It is for operators and tests that look at the store.
func (l *EdgeRateLimiter) StateKey(policy ratelimit.PolicyID, subject ratelimit.SubjectDigest) string {
	p, ok := l.prepared[l.policies.Get(policy)]
	if !ok || subject.IsZero() {
		return ""
	}
	return p.keys.of(subject)
}

// category gives the reason that callers see for a code that left nothing spent. It is invalid for
// codes that say that the call itself was wrong.
func category(code store.Code) ratelimit.UnavailableCategory {
	switch code {
	case store.CodeNotReady:
		return ratelimit.UnavailableNotReady
	case store.CodeClosed:
		return ratelimit.UnavailableClosed
	case store.CodeCanceled:
		return ratelimit.UnavailableCanceled
	case store.CodeDeadline:
		return ratelimit.UnavailableDeadline
	case store.CodePoolExhausted:
		return ratelimit.UnavailablePool
	case store.CodeQueueFull:
		return ratelimit.UnavailableQueue
	case store.CodeConnect, store.CodeConnectionLost:
		return ratelimit.UnavailableConnection
	case store.CodeTLS:
		return ratelimit.UnavailableTLS
	case store.CodeHandshake:
		return ratelimit.UnavailableHandshake
	case store.CodeAuthentication:
		return ratelimit.UnavailableAuthentication
	case store.CodeServerVersion:
		return ratelimit.UnavailableServerVersion
	case store.CodeCapacity:
		return ratelimit.UnavailableCapacity
	case store.CodeLoading:
		return ratelimit.UnavailableLoading
	case store.CodeReadOnly:
		return ratelimit.UnavailableReadOnly
	case store.CodeMasterDown:
		return ratelimit.UnavailableMasterDown
	case store.CodeClusterDown, store.CodeMoved:
		return ratelimit.UnavailableCluster
	case store.CodePermission:
		return ratelimit.UnavailablePermission
	case store.CodeOutOfMemory:
		return ratelimit.UnavailableOutOfMemory
	case store.CodePersistence:
		return ratelimit.UnavailablePersistence
	case store.CodeReplicas:
		return ratelimit.UnavailableReplicas
	case store.CodeBusy:
		return ratelimit.UnavailableBusy
	case store.CodeInvalid, store.CodeInvalidArgument, store.CodeUnknownProgram,
		store.CodeNotInteger, store.CodeOutOfRange, store.CodeProgramFailed, store.CodeWrongType, store.CodeReply:
	}
	return ratelimit.UnavailableInvalid
}
