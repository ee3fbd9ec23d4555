package breaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// InvalidRequestError means that a caller asked what cannot be asked. Nothing was sent.
type InvalidRequestError struct {
	Fault RequestFault
	// Reason is for people. It holds no resource.
	Reason string
}

// Error gives the fault and the reason.
func (e *InvalidRequestError) Error() string {
	return fmt.Sprintf("breaker: invalid request: %v: %s", e.Fault, e.Reason)
}

// PolicySet holds the policies of a provider by ID.
type PolicySet struct {
	byID map[PolicyID]*Policy
}

// NewPolicySet holds one or more policies; two of one ID are refused, whatever their revisions.
func NewPolicySet(policies ...*Policy) (*PolicySet, error) {
	if len(policies) == 0 {
		return nil, errors.New("breaker: no policy")
	}
	set := &PolicySet{byID: make(map[PolicyID]*Policy, len(policies))}
	for _, p := range policies {
		if p == nil || p.fingerprint == "" {
			return nil, errors.New("breaker: a policy that no constructor made")
		}
		if _, twice := set.byID[p.ID()]; twice {
			return nil, fmt.Errorf("breaker: two policies %q", p.ID())
		}
		set.byID[p.ID()] = p
	}
	return set, nil
}

// Get gives the policy of an ID, or nil.
func (s *PolicySet) Get(id PolicyID) *Policy { return s.byID[id] }

// All lists the policies by ID.
func (s *PolicySet) All() []*Policy {
	return slices.SortedFunc(maps.Values(s.byID), func(a, b *Policy) int { return cmp.Compare(a.ID(), b.ID()) })
}

// AdmitAcquire judges a request as every provider must: it gives the policy and the deadline that
// counts, or an *InvalidRequestError.
func (s *PolicySet) AdmitAcquire(ctx context.Context, request AcquireRequest) (*Policy, time.Time, error) {
	return s.admit(ctx, request.PolicyID, request.Resource, request.Deadline)
}

// AdmitRead is AdmitAcquire for Read.
func (s *PolicySet) AdmitRead(ctx context.Context, request ReadRequest) (*Policy, time.Time, error) {
	return s.admit(ctx, request.PolicyID, request.Resource, request.Deadline)
}

// AdmitRecord is AdmitAcquire for Record.
func (s *PolicySet) AdmitRecord(ctx context.Context, request RecordRequest) (*Policy, time.Time, error) {
	permit := request.Permit
	policy, deadline, err := s.admit(ctx, permit.PolicyID, permit.Resource, request.Deadline)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case permit.PolicyRevision != policy.Revision():
		return nil, time.Time{}, &InvalidRequestError{
			Fault: FaultPermit, Reason: fmt.Sprintf("it is of revision %d, policy %s has %d", permit.PolicyRevision, policy.ID(), policy.Revision()),
		}
	case permit.Kind != PermitCall && permit.Kind != PermitProbe, !ValidToken(permit.Token),
		permit.Generation < 0 || permit.Generation > maxNow, permit.AcquiredAt < 0 || permit.AcquiredAt > maxNow:
		return nil, time.Time{}, &InvalidRequestError{Fault: FaultPermit, Reason: "it is none that Acquire gave"}
	case request.Result != ResultSuccess && request.Result != ResultFailure && request.Result != ResultNeither:
		return nil, time.Time{}, &InvalidRequestError{Fault: FaultResult, Reason: "want SUCCESS, FAILURE or NEITHER"}
	}
	return policy, deadline, nil
}

func (s *PolicySet) admit(ctx context.Context, id PolicyID, resource ResourceDigest, deadline time.Time) (*Policy, time.Time, error) {
	policy := s.byID[id]
	if policy == nil {
		return nil, time.Time{}, &InvalidRequestError{Fault: FaultUnknownPolicy, Reason: "no policy has this ID"}
	}
	if resource.IsZero() {
		return nil, time.Time{}, &InvalidRequestError{Fault: FaultResource, Reason: "the resource digest is missing"}
	}
	if fromContext, ok := ctx.Deadline(); ok && (deadline.IsZero() || fromContext.Before(deadline)) {
		deadline = fromContext
	}
	if deadline.IsZero() {
		return nil, time.Time{}, &InvalidRequestError{Fault: FaultDeadline, Reason: "neither the request nor its context has a deadline"}
	}
	return policy, deadline, nil
}
