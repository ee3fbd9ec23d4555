package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Bounds of LimiterConfig.
const (
	MaxInFlightLimit         = 1 << 20
	MaxUnavailableRetryAfter = time.Hour
)

// LimiterConfig describes a rate limiter. Everything is required.
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
}

// EdgeRateLimiter is the rate-limit port over a store. Its decisions carry the store's source.
type EdgeRateLimiter struct {
	store          store.Store
	policies       *ratelimit.PolicySet
	prepared       map[*ratelimit.RateLimitPolicy]*prepared
	commandTimeout time.Duration
	retryAfter     time.Duration
	source         ratelimit.Source
	admission      admission
}

var _ ratelimit.EdgeRateLimitPort = (*EdgeRateLimiter)(nil)

// NewEdgeRateLimiter validates the configuration. Over a store with a caller's clock it uses keys of
// the kind sim.
func NewEdgeRateLimiter(s store.Store, config LimiterConfig) (*EdgeRateLimiter, error) {
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
	l := &EdgeRateLimiter{
		store:          s,
		policies:       config.Policies,
		prepared:       make(map[*ratelimit.RateLimitPolicy]*prepared),
		commandTimeout: config.CommandTimeout,
		retryAfter:     config.UnavailableRetryAfter,
	}
	switch s.Source() {
	case store.SourceGlobalRedis:
		l.source = ratelimit.SourceGlobalRedis
	case store.SourceLocalMemory:
		l.source = ratelimit.SourceLocalMemory
	case store.SourceInvalid:
		return nil, errors.New("cacheredis: the store does not say where its state lives")
	}
	kind := kindState
	if s.Clock() == store.ClockCaller {
		kind = kindSimulation
	}
	for _, policy := range config.Policies.All() {
		l.prepared[policy] = prepare(builder, policy, kind)
	}
	l.admission.init(config.MaxInFlight)
	return l, nil
}

// Evaluate decides one request; see ratelimit.EdgeRateLimitPort. It returns within the command
// timeout, whatever the deadline.
func (l *EdgeRateLimiter) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	policy, deadline, err := l.policies.Admit(ctx, request)
	if err != nil {
		return nil, err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return l.unavailable(policy, ratelimit.UnavailableCanceled), nil
	}
	if time.Until(deadline) < l.commandTimeout {
		return l.unavailable(policy, ratelimit.UnavailableDeadline), nil
	}
	switch l.admission.enter() {
	case admissionFull:
		return l.unavailable(policy, ratelimit.UnavailableAdmission), nil
	case admissionClosed:
		return l.unavailable(policy, ratelimit.UnavailableClosed), nil
	case admissionGranted:
	}
	defer l.admission.leave()

	ctx, cancel := context.WithTimeout(ctx, l.commandTimeout)
	defer cancel()
	p := l.prepared[policy]
	key := p.keys.of(request.Subject)
	reply, err := l.store.Eval(ctx, p.program, []string{key}, p.arguments(request.Cost))
	if err != nil {
		return l.failed(policy, err), nil
	}
	decision, err := parseDecision(reply, policy, request.Cost)
	if err != nil {
		return ratelimit.Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleReply}, nil
	}
	return ratelimit.Conclude(policy, decision, l.source), nil
}

// StateKey is the physical key of a subject's state under a policy, or "" where there is no such
// policy. It is for operators and tests that look at the store.
func (l *EdgeRateLimiter) StateKey(policy ratelimit.PolicyID, subject ratelimit.SubjectDigest) string {
	p, ok := l.prepared[l.policies.Get(policy)]
	if !ok || subject.IsZero() {
		return ""
	}
	return p.keys.of(subject)
}

// Drain refuses new evaluations as closed and waits until those in flight have ended or ctx has.
func (l *EdgeRateLimiter) Drain(ctx context.Context) error { return l.admission.drain(ctx) }

// InFlight is the number of evaluations in flight.
func (l *EdgeRateLimiter) InFlight() int { return l.admission.inUse() }

func (l *EdgeRateLimiter) unavailable(policy *ratelimit.RateLimitPolicy, category ratelimit.UnavailableCategory) ratelimit.Outcome {
	return ratelimit.Unavailable{PolicyID: policy.ID(), RetryAfter: l.retryAfter, Category: category}
}

// failed turns a store's error into an outcome, by its certainty and code alone.
func (l *EdgeRateLimiter) failed(policy *ratelimit.RateLimitPolicy, err error) ratelimit.Outcome {
	var failure *store.Error
	if !errors.As(err, &failure) {
		return ratelimit.Indeterminate{PolicyID: policy.ID(), RetryAfter: l.retryAfter}
	}
	switch failure.Certainty {
	case store.NotSent, store.Refused:
		if reason := category(failure.Code); reason != ratelimit.UnavailableInvalid {
			return l.unavailable(policy, reason)
		}
		return ratelimit.Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleProgram}
	case store.Mismatched:
		if failure.Code == store.CodeWrongType {
			return ratelimit.Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleState}
		}
		return ratelimit.Incompatible{PolicyID: policy.ID(), Category: ratelimit.IncompatibleReply}
	case store.Uncertain, store.CertaintyInvalid:
	}
	return ratelimit.Indeterminate{PolicyID: policy.ID(), RetryAfter: l.retryAfter}
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
