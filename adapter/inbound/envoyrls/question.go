package envoyrls

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// plan says how a descriptor is answered.
type plan uint8

const (
	planInvalid plan = iota
	// planNone: no rule applies, or the one that does is replaced.
	planNone
	// planUnlimited: a rule without a limit applies.
	planUnlimited
	// planDeny: nothing passes here, and nobody has to be asked: the limit is 0.
	planDeny
	// planBeyond: more hits than the rule takes at once. Nothing is spent.
	planBeyond
	// planAsk: the port is asked.
	planAsk
)

// question is a descriptor with the rule that applies to it.
type question struct {
	plan     plan
	rule     *rules.Rule // nil for a limit that the request brought along, and with planNone
	mode     rules.Mode
	limit    *ratelimitv3.RateLimitResponse_RateLimit // nil where there is none
	override override                                 // where the request brought a limit along

	port    ratelimit.EdgeRateLimitPort
	request ratelimit.RateLimitRequest

	outcome ratelimit.Outcome // of planAsk
	err     error             // of planAsk: what no outcome says
}

// window is the span of time that a limit of a question is for.
func (q *question) window() (length int64) {
	if q.rule != nil {
		return q.rule.Unit.Duration().Milliseconds()
	}
	return q.override.window().Milliseconds()
}

// resolve finds the rule of each descriptor under one generation.
func (s *Service) resolve(g *generation, domain string, descriptors []descriptor) ([]question, error) {
	questions := make([]question, len(descriptors))
	var replaced map[string]bool
	var identity []byte
	for i := range descriptors {
		d, q := &descriptors[i], &questions[i]
		match := g.rules.Find(domain, d.entries)
		q.plan, q.mode = planNone, rules.ModeEnforce
		switch {
		case !match.KnownDomain:
			continue
		case d.hasLimit:
			match = rules.Match{}
			if err := s.resolveOverride(q, d); err != nil {
				return nil, err
			}
		case match.Rule == nil:
			continue
		default:
			resolveRule(q, g, match.Rule, d.hits)
			for _, name := range match.Rule.Replaces {
				if replaced == nil {
					replaced = make(map[string]bool)
				}
				replaced[name] = true
			}
		}
		if q.plan != planAsk {
			continue
		}
		identity = appendIdentity(identity[:0], domain, d.entries, match)
		subject, err := s.config.Digester.Digest(string(identity))
		if err != nil {
			return nil, invalid("descriptors[%d] is longer than %d bytes", i, ratelimit.MaxIdentityBytes)
		}
		q.request.Subject = subject
	}
	for i := range questions {
		q := &questions[i]
		if q.rule != nil && q.rule.Name != "" && replaced[q.rule.Name] && q.plan != planUnlimited {
			*q = question{plan: planNone, mode: rules.ModeEnforce}
		}
	}
	return questions, nil
}

func resolveRule(q *question, g *generation, rule *rules.Rule, hits uint64) {
	q.rule, q.mode = rule, rule.Mode
	switch rule.Effect {
	case rules.EffectUnlimited:
		q.plan = planUnlimited
		return
	case rules.EffectDeny:
		q.plan = planDeny
	case rules.EffectLimit:
		q.ask(g.port, rule.Policy, hits)
	case rules.EffectInvalid:
	}
	q.limit = &ratelimitv3.RateLimitResponse_RateLimit{
		Name: rule.Name, RequestsPerUnit: rule.RequestsPerUnit, Unit: wireUnit(rule.Unit),
	}
}

func (s *Service) resolveOverride(q *question, d *descriptor) error {
	q.override = d.override
	q.limit = &ratelimitv3.RateLimitResponse_RateLimit{
		RequestsPerUnit: d.override.requests, Unit: wireUnit(d.override.unit),
	}
	if d.override.multiplier != 1 {
		q.limit.UnitMultiplier = wrapperspb.UInt32(d.override.multiplier)
	}
	if d.override.requests == 0 {
		q.plan = planDeny
		return nil
	}
	by, err := s.overrides.get(d.override)
	if err != nil {
		s.logger.Error("envoy: a limit that a request brings along makes no policy", "error", err)
		return status.Error(codes.Internal, "a limit of the request could not be used")
	}
	q.ask(by.port, by.policy, d.hits)
	return nil
}

// ask plans to ask a port, unless no answer could be an allowance.
func (q *question) ask(port ratelimit.EdgeRateLimitPort, policy *ratelimit.RateLimitPolicy, hits uint64) {
	if hits > uint64(policy.MaxCost()) { //nolint:gosec // G115: a cost is positive.
		q.plan = planBeyond
		return
	}
	q.plan, q.port = planAsk, port
	q.request.PolicyID, q.request.Cost = policy.ID(), int64(hits) //nolint:gosec // G115: at most MaxCost.
}

func wireUnit(u rules.Unit) ratelimitv3.RateLimitResponse_RateLimit_Unit {
	switch u {
	case rules.UnitSecond:
		return ratelimitv3.RateLimitResponse_RateLimit_SECOND
	case rules.UnitMinute:
		return ratelimitv3.RateLimitResponse_RateLimit_MINUTE
	case rules.UnitHour:
		return ratelimitv3.RateLimitResponse_RateLimit_HOUR
	case rules.UnitDay:
		return ratelimitv3.RateLimitResponse_RateLimit_DAY
	case rules.UnitWeek:
		return ratelimitv3.RateLimitResponse_RateLimit_WEEK
	case rules.UnitMonth:
		return ratelimitv3.RateLimitResponse_RateLimit_MONTH
	case rules.UnitYear:
		return ratelimitv3.RateLimitResponse_RateLimit_YEAR
	case rules.UnitInvalid:
	}
	return ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN
}

// evaluate asks the ports. Questions that count at the same place are asked in their order, all others
// at the same time.
func (s *Service) evaluate(ctx context.Context, questions []question) {
	var asked []*question
	for i := range questions {
		if questions[i].plan == planAsk {
			asked = append(asked, &questions[i])
		}
	}
	if len(asked) == 0 {
		return
	}
	if sameState(asked) {
		for _, q := range asked {
			s.evaluateOne(ctx, q)
		}
		return
	}
	var wait sync.WaitGroup
	for _, q := range asked[1:] {
		wait.Go(func() { s.evaluateOne(ctx, q) })
	}
	s.evaluateOne(ctx, asked[0])
	wait.Wait()
}

// sameState reports whether two questions count at the same place.
func sameState(asked []*question) bool {
	if len(asked) == 1 {
		return false
	}
	type place struct {
		policy  ratelimit.PolicyID
		subject ratelimit.SubjectDigest
	}
	seen := make(map[place]bool, len(asked))
	for _, q := range asked {
		at := place{q.request.PolicyID, q.request.Subject}
		if seen[at] {
			return true
		}
		seen[at] = true
	}
	return false
}

var errNoOutcome = errors.New("the port gave no outcome")

// evaluateOne asks once. A panic of the port is an error of this question: it must end neither the
// process nor its neighbours.
func (s *Service) evaluateOne(ctx context.Context, q *question) {
	defer func() {
		if p := recover(); p != nil {
			s.logger.ErrorContext(ctx, "envoy: panic", "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			q.outcome, q.err = nil, fmt.Errorf("envoyrls: panic of type %T", p)
		}
	}()
	q.outcome, q.err = q.port.Evaluate(ctx, q.request)
	if q.outcome == nil && q.err == nil {
		q.err = errNoOutcome
	}
}
