package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// InvalidRequestError means that a caller asked what cannot be asked. Nothing was sent or spent.
type InvalidRequestError struct {
	Fault RequestFault
	// Reason is for people. It holds no subject.
	Reason string
}

// Error gives the fault and the reason.
func (e *InvalidRequestError) Error() string {
	return fmt.Sprintf("ratelimit: invalid request: %v: %s", e.Fault, e.Reason)
}

// PolicySet holds the policies of a provider by ID.
type PolicySet struct {
	byID map[PolicyID]*RateLimitPolicy
}

// NewPolicySet holds one or more policies; two of one ID are refused, whatever their revisions.
func NewPolicySet(policies ...*RateLimitPolicy) (*PolicySet, error) {
	if len(policies) == 0 {
		return nil, errors.New("ratelimit: no policy")
	}
	set := &PolicySet{byID: make(map[PolicyID]*RateLimitPolicy, len(policies))}
	for _, p := range policies {
		if p == nil || p.parameters == nil {
			return nil, errors.New("ratelimit: a policy that no constructor made")
		}
		if _, twice := set.byID[p.id]; twice {
			return nil, fmt.Errorf("ratelimit: two policies %q", p.id)
		}
		set.byID[p.id] = p
	}
	return set, nil
}

// Get gives the policy of an ID, or nil.
func (s *PolicySet) Get(id PolicyID) *RateLimitPolicy { return s.byID[id] }

// All lists the policies by ID.
func (s *PolicySet) All() []*RateLimitPolicy {
	all := make([]*RateLimitPolicy, 0, len(s.byID))
	for _, p := range s.byID {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *RateLimitPolicy) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return all
}

// Admit judges a request as every provider must: it gives the policy and the deadline that counts,
// or an *InvalidRequestError.
func (s *PolicySet) Admit(ctx context.Context, request RateLimitRequest) (*RateLimitPolicy, time.Time, error) {
	policy := s.byID[request.PolicyID]
	if policy == nil {
		return nil, time.Time{}, &InvalidRequestError{Fault: FaultUnknownPolicy, Reason: "no policy has this ID"}
	}
	deadline, err := policy.Admit(ctx, &request)
	if err != nil {
		return nil, time.Time{}, err
	}
	return policy, deadline, nil
}

// Admit is PolicySet.Admit for a provider that has found the policy of the request's PolicyID itself: it
// gives the deadline that counts, or an *InvalidRequestError. It neither keeps nor changes the request.
func (p *RateLimitPolicy) Admit(ctx context.Context, request *RateLimitRequest) (time.Time, error) {
	if request.EvaluationID != "" {
		return time.Time{}, &InvalidRequestError{Fault: FaultEvaluationID, Reason: "evaluations are not deduplicated in this revision"}
	}
	if request.Subject.IsZero() {
		return time.Time{}, &InvalidRequestError{Fault: FaultSubject, Reason: "the subject digest is missing"}
	}
	if request.Cost < 1 || request.Cost > p.maxCost {
		return time.Time{}, &InvalidRequestError{Fault: FaultCost, Reason: fmt.Sprintf("cost is %d, policy %s takes 1..%d", request.Cost, p.id, p.maxCost)}
	}
	deadline := request.Deadline
	if fromContext, ok := ctx.Deadline(); ok && (deadline.IsZero() || fromContext.Before(deadline)) {
		deadline = fromContext
	}
	if deadline.IsZero() {
		return time.Time{}, &InvalidRequestError{Fault: FaultDeadline, Reason: "neither the request nor its context has a deadline"}
	}
	return deadline, nil
}
