package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MostKeys is the greatest value of Config.MaxKeys.
const MostKeys = 1 << 30

// Config is what a limiter is made of. Every field is required, but where it says so.
type Config struct {
	Policies *ratelimit.PolicySet
	// Clock reads the time; nil means the wall clock, whose steps are then seen after at most 100 ms. It is
	// called with a lock held, so it must be quick and must not call the limiter.
	Clock func() time.Time
	// MaxKeys bounds the live states over all policies, 1..MostKeys. A state takes 90 to 120 bytes. That
	// of a sliding window log counts as one and takes more: see the package's Bounds.
	MaxKeys int
	// UnavailableRetryAfter is the hint in Unavailable where no true time is known. At least 1 ms.
	UnavailableRetryAfter time.Duration
}

// EdgeRateLimiter decides in this process. Its constructor is NewEdgeRateLimiter.
type EdgeRateLimiter struct {
	states     *states
	policies   *ratelimit.PolicySet
	compiled   compiledSet
	retryAfter time.Duration
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
	l := &EdgeRateLimiter{states: newStates(config.MaxKeys, config.Clock), retryAfter: config.UnavailableRetryAfter}
	return l.WithPolicies(config.Policies)
}

// WithPolicies gives a limiter of other policies over the same states: both share keys, their bound and
// the clock, and both go on deciding. It is for changing policies while calls are under way.
//
// A policy that is in both, with the same revision and the same parameters, counts on where it was; a
// state belongs to the policy's ID, revision, algorithm and fingerprint. Any other policy starts fresh,
// and what an old one has left behind counts against MaxKeys until it expires by itself. Nothing is kept
// of past generations: a limiter that nobody holds any more is collected, whatever became of the others.
func (l *EdgeRateLimiter) WithPolicies(policies *ratelimit.PolicySet) (*EdgeRateLimiter, error) {
	if policies == nil {
		return nil, errors.New("memory: the policies are nil")
	}
	set, err := compileAll(policies, &l.states.naming)
	if err != nil {
		return nil, err
	}
	return &EdgeRateLimiter{states: l.states, policies: policies, compiled: set, retryAfter: l.retryAfter}, nil
}

// Evaluate decides once. See ratelimit.EdgeRateLimitPort.
//
// It is small enough to be inlined: where the caller holds an *EdgeRateLimiter rather than the port, and
// does not keep the outcome, nothing is allocated.
func (l *EdgeRateLimiter) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (outcome ratelimit.Outcome, err error) {
	var e ratelimit.Evaluated
	if l.evaluate(ctx, &request, &e, &outcome, &err) {
		outcome = e
	}
	return outcome, err
}

// evaluate is Evaluate. It reports whether the outcome is Evaluated, and then gives it in evaluated; any
// other outcome and the error are given in theirs.
func (l *EdgeRateLimiter) evaluate(
	ctx context.Context, request *ratelimit.RateLimitRequest,
	evaluated *ratelimit.Evaluated, other *ratelimit.Outcome, fault *error,
) bool {
	c := l.compiled.get(request.PolicyID)
	if c == nil {
		_, _, *fault = l.policies.Admit(ctx, *request)
		return false
	}
	deadline, err := c.policy.Admit(ctx, request)
	if err != nil {
		*fault = err
		return false
	}
	if cause := ctx.Err(); cause != nil {
		*other = l.unavailable(c, stopped(cause))
		return false
	}
	// Field by field: a literal would be made elsewhere and copied.
	var a ask
	a.policy, a.cost, a.deadline = c, request.Cost, deadline
	a.name = c.pad.name(&request.Subject)
	a.hash = l.states.naming.hash(a.name)
	switch l.states.decide(&a) {
	case verdictDeadline:
		*other = l.unavailable(c, ratelimit.UnavailableDeadline)
		return false
	case verdictFull:
		*other = l.unavailable(c, ratelimit.UnavailableCapacity)
		return false
	case verdictDecided:
	}
	if ratelimit.ConcludeEvaluated(c.policy, &a.decision, ratelimit.SourceLocalMemory, evaluated) {
		return true
	}
	*other = ratelimit.Conclude(c.policy, a.decision, ratelimit.SourceLocalMemory)
	return false
}

// stopped is the category of a context that is over.
func stopped(cause error) ratelimit.UnavailableCategory {
	if errors.Is(cause, context.DeadlineExceeded) {
		return ratelimit.UnavailableDeadline
	}
	return ratelimit.UnavailableCanceled
}

// LiveKeys is the number of states held over all policies, those of limiters made by WithPolicies and
// those that have expired and not yet been reclaimed among them.
func (l *EdgeRateLimiter) LiveKeys() int { return int(l.states.budget.held.Load()) }

func (l *EdgeRateLimiter) unavailable(c *compiled, category ratelimit.UnavailableCategory) ratelimit.Outcome {
	return ratelimit.Unavailable{PolicyID: c.policy.ID(), RetryAfter: l.retryAfter, Category: category}
}
