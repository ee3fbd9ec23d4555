package denialcache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MostEntries is the greatest value of Config.MaxEntries.
const MostEntries = 1 << 20

// Config is what a cache is made of. Every field is required, but where it says so.
type Config struct {
	// Policies are those of the decorated port. A denial under another revision than the one here is not
	// cached.
	Policies *ratelimit.PolicySet
	// MaxEntries bounds the claims over all policies, 1..MostEntries. From 8 on it is rounded down to a
	// multiple of 8.
	MaxEntries int
	// Clock reads the time; optional, nil means time.Now. Two readings must differ by the time that has
	// passed between them, whatever happens to the wall clock: those of time.Now carry a monotonic
	// reading and do.
	Clock func() time.Time
}

// EdgeRateLimiter answers from claims what it can, and asks the port for the rest. Its constructor is
// New.
type EdgeRateLimiter struct {
	port     ratelimit.EdgeRateLimitPort
	policies *ratelimit.PolicySet
	known    map[*ratelimit.RateLimitPolicy]*known
	clock    func() time.Time
	start    time.Time // what claims count from
	claims   *table
	rules    rules
}

var _ ratelimit.EdgeRateLimitPort = (*EdgeRateLimiter)(nil)

// rules are what makes the cache exact. Tests replace one by a wrong one, to see that they would notice.
type rules struct {
	lifetime func(retryAfter time.Duration) time.Duration
	prevail  func(held, made *claim, now time.Duration) *claim
}

// New decorates a port with a cache that holds nothing yet, or says everything that is wrong.
func New(port ratelimit.EdgeRateLimitPort, config Config) (*EdgeRateLimiter, error) {
	var faults []error
	if port == nil {
		faults = append(faults, errors.New("denialcache: the port is nil"))
	}
	if _, twice := port.(*EdgeRateLimiter); twice {
		faults = append(faults, errors.New("denialcache: the port is a denial cache itself"))
	}
	if config.Policies == nil {
		faults = append(faults, errors.New("denialcache: Policies is nil"))
	}
	if config.MaxEntries < 1 || config.MaxEntries > MostEntries {
		faults = append(faults, fmt.Errorf("denialcache: MaxEntries is %d, want 1..%d", config.MaxEntries, MostEntries))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	clock := config.Clock
	if clock == nil {
		clock = time.Now
	}
	policies := config.Policies.All()
	table := make(map[*ratelimit.RateLimitPolicy]*known, len(policies))
	for i, policy := range policies {
		k, err := know(policy, uint32(i))
		if err != nil {
			return nil, err
		}
		table[policy] = k
	}
	return &EdgeRateLimiter{
		port: port, policies: config.Policies, known: table, clock: clock, start: clock(),
		claims: newTable(config.MaxEntries), rules: rules{lifetime: lifetime, prevail: prevail},
	}, nil
}

// Entries is the number of claims held, those among them that have ended and whose place was not taken
// yet.
func (l *EdgeRateLimiter) Entries() int { return int(l.claims.held.Load()) }

// Evaluate denies what a claim denies and asks the port for everything else, once. See
// ratelimit.EdgeRateLimitPort.
func (l *EdgeRateLimiter) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	policy, deadline, err := l.policies.Admit(ctx, request)
	if err != nil {
		return nil, err
	}
	reading := l.clock()
	send := reading.Sub(l.start)
	known := l.known[policy]
	k := known.key(request.Subject)
	hash := l.claims.hash(&k)
	if c := l.claims.find(hash, &k, request.Cost, send); c != nil && reading.Before(deadline) && ctx.Err() == nil {
		return known.denied(c, request.Cost, send), nil
	}
	outcome, err := l.port.Evaluate(ctx, request)
	if evaluated, ok := outcome.(ratelimit.Evaluated); ok && err == nil && known.vouches(&evaluated.Decision) {
		l.learn(hash, &k, request.Cost, &evaluated.Decision, send)
	}
	return outcome, err
}

// learn keeps what a denial claims.
func (l *EdgeRateLimiter) learn(hash uint64, k *key, cost int64, d *ratelimit.RateLimitDecision, send time.Duration) {
	reply := l.clock().Sub(l.start)
	until := send + l.rules.lifetime(d.RetryAfter)
	if until <= reply {
		return
	}
	l.claims.keep(hash, &claim{
		key: *k, cost: cost, until: until, reply: reply,
		retryAfter: d.RetryAfter, remaining: d.Remaining, resetAt: d.ResetAt,
	}, reply, l.rules.prevail)
}
