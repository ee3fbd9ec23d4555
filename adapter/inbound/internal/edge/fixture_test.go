package edge

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// policies has one policy of each algorithm, named after it, and "edge" at the greatest limit.
func policies(t testing.TB) *ratelimit.PolicySet {
	t.Helper()
	var all []*ratelimit.RateLimitPolicy
	for _, p := range []struct {
		id         ratelimit.PolicyID
		algorithm  ratelimit.Algorithm
		parameters ratelimit.Parameters
	}{
		{"fixed", ratelimit.AlgorithmFixedWindow, ratelimit.FixedWindowParameters{Limit: 5, Window: time.Minute}},
		{"counter", ratelimit.AlgorithmSlidingWindowCounter, ratelimit.SlidingWindowCounterParameters{Limit: 30, Window: 10 * time.Second}},
		{"bucket", ratelimit.AlgorithmTokenBucket, ratelimit.TokenBucketParameters{Capacity: 100, RefillTokens: 30, RefillPeriod: time.Second}},
		{"gcra", ratelimit.AlgorithmGCRA, ratelimit.GCRAParameters{Limit: 10, Period: time.Minute, Burst: 4}},
		{"log", ratelimit.AlgorithmSlidingWindowLog, ratelimit.SlidingWindowLogParameters{Limit: 7, Window: 1500 * time.Millisecond}},
		{"edge", ratelimit.AlgorithmFixedWindow, ratelimit.FixedWindowParameters{Limit: 1<<53 - 1, Window: time.Millisecond}},
	} {
		policy, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
			ID: p.id, Revision: 1, Algorithm: p.algorithm, Parameters: p.parameters, MaxCost: 1,
			CleanupGrace: time.Minute, FailurePolicy: ratelimit.FailClosed,
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, policy)
	}
	set, err := ratelimit.NewPolicySet(all...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func digester(t testing.TB) *ratelimit.SubjectDigester {
	t.Helper()
	d, err := ratelimit.NewSubjectDigester([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// port answers what it is told, and keeps what it was asked.
type port struct {
	outcome ratelimit.Outcome
	err     error
	asked   []ratelimit.RateLimitRequest
}

func (p *port) Evaluate(_ context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	p.asked = append(p.asked, request)
	return p.outcome, p.err
}

var errAny = errors.New("secret of the request")
