package denialcache

import (
	"crypto/sha256"
	"sync/atomic"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MaxHold bounds how long a claim is believed, and so for how long a denial can be wrong where the
// store has lost its state or its clock has stepped.
const MaxHold = 10 * time.Second

// drift is the share, one in so many, by which the clocks of the store and of this process may run apart.
const drift = 1000

// lifetime is how long after send a denial with this retry-after is believed; not positive where it
// is not worth it.
func lifetime(retryAfter time.Duration) time.Duration {
	r := min(retryAfter, MaxHold)
	return r - time.Millisecond - r/drift
}

// key names what a claim is about. The ID of the policy is its position in the set, which holds one
// revision of each.
type key struct {
	digest   [sha256.Size]byte
	policy   uint32
	revision uint32
}

// claim says that costs of cost and above are denied until until. It does not change, but for asked.
// Times count from EdgeRateLimiter.start.
type claim struct {
	key        key
	cost       int64
	until      time.Duration
	reply      time.Duration // when the denial had come: the store decided before that
	retryAfter time.Duration // of the denial
	remaining  int64         // of the denial
	resetAt    time.Time     // of the denial
	asked      atomic.Bool   // answered since its set last chose one to go
}

// answers reports whether the claim denies a cost at now.
func (c *claim) answers(k *key, cost int64, now time.Duration) bool {
	return cost >= c.cost && now < c.until && now >= c.reply && c.key == *k
}

// prevail chooses between two claims about one subject. Both are true, so either may stay; the
// package's doc says why no third may be made of them.
func prevail(held, made *claim, now time.Duration) *claim {
	switch {
	case held.until <= now, made.cost < held.cost, made.cost == held.cost && made.until > held.until:
		return made
	default:
		return held
	}
}

// known is a policy with what answers need of it.
type known struct {
	policy *ratelimit.RateLimitPolicy
	index  uint32
	limit  int64
	wait   wait
}

func know(policy *ratelimit.RateLimitPolicy, index uint32) (*known, error) {
	w, err := waitOf(policy)
	if err != nil {
		return nil, err
	}
	return &known{policy: policy, index: index, limit: policy.Limit(), wait: w}, nil
}

func (k *known) key(subject ratelimit.SubjectDigest) key {
	return key{digest: subject.Bytes(), policy: k.index, revision: uint32(k.policy.Revision())} //nolint:gosec // G115: at most MaxPolicyRevision.
}

// vouches reports whether a decision is a denial that a claim can be made of: under this very policy, by
// its algorithm, and taken by a store. A cached denial is none, since its retry-after is a bound.
func (k *known) vouches(d *ratelimit.RateLimitDecision) bool {
	return !d.Allowed && d.PolicyID == k.policy.ID() && d.PolicyRevision == k.policy.Revision() && d.Limit == k.limit &&
		d.Certainty == k.policy.Certainty() && (d.Source == ratelimit.SourceGlobalRedis || d.Source == ratelimit.SourceLocalMemory)
}

// denied is the outcome of a cost that a claim denies.
func (k *known) denied(c *claim, cost int64, now time.Duration) ratelimit.Outcome {
	wait := c.retryAfter
	if cost > c.cost {
		wait = k.wait.above(wait, cost-c.cost)
	}
	// What the store's clock has moved by at least. The wait is whole milliseconds, and above what has
	// passed since the denial was sent, so at least one is left.
	passed := now - c.reply
	passed -= (passed + drift - 1) / drift
	return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{
		Allowed:        false,
		Limit:          k.limit,
		Remaining:      c.remaining,
		RetryAfter:     wait - passed.Truncate(time.Millisecond),
		ResetAt:        c.resetAt,
		PolicyID:       k.policy.ID(),
		PolicyRevision: k.policy.Revision(),
		Source:         ratelimit.SourceDenialCache,
		Certainty:      k.policy.Certainty(),
	}}
}
