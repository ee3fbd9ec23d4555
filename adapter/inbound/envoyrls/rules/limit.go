package rules

import (
	"errors"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// rule reads rate_limit of a descriptor and what belongs to it, and gives the node its rule.
func (p *parser) rule(at *node, n *yaml.Node, fields map[string]*yaml.Node, path string) {
	shadow := p.boolean(fields[keyShadowMode], join(path, keyShadowMode))
	quota := p.boolean(fields[keyQuotaMode], join(path, keyQuotaMode))
	for _, key := range []string{keyDetailedMetric, keyValueToMetric} {
		if p.boolean(fields[key], join(path, key)) {
			p.note(fields[key], join(path, key), "has no effect: metrics are by policy and hold no values of descriptors")
		}
	}
	metadata := p.metadata(fields[keyMetadata], join(path, keyMetadata))
	limit := fields[keyRateLimit]
	if limit == nil {
		for _, key := range []string{keyShadowMode, keyQuotaMode, keyMetadata} {
			if fields[key] != nil {
				p.note(fields[key], join(path, key), "has no effect without %s", keyRateLimit)
			}
		}
		if own := fields[keyOwn]; own != nil {
			p.fault(own, join(path, keyOwn), "has nothing to say without %s", keyRateLimit)
		}
		return
	}
	r := &Rule{
		Domain: p.domain, Descriptor: showSteps(p.steps), File: p.file, Line: n.Line, Path: path,
		Mode: ModeEnforce, Metadata: metadata,
	}
	switch {
	case shadow:
		r.Mode = ModeShadow
		if quota {
			p.note(fields[keyQuotaMode], join(path, keyQuotaMode), "has no effect beside %s", keyShadowMode)
		}
	case quota:
		r.Mode = ModeQuota
	}
	before := len(p.faults)
	p.limit(r, limit, join(path, keyRateLimit))
	own := p.own(fields[keyOwn], join(path, keyOwn), r)
	if len(p.faults) > before {
		return
	}
	if r.Effect == EffectLimit {
		p.policy(r, own, limit, path)
	}
	at.rule = r
	p.rules.all = append(p.rules.all, r)
}

// limit reads what stands in rate_limit.
func (p *parser) limit(r *Rule, n *yaml.Node, path string) {
	fields := p.mapping(n, path, keyUnit, keyRequests, keyUnlimited, keyName, keyReplaces)
	r.Name = p.text(fields[keyName], join(path, keyName))
	r.Replaces = p.replaces(fields[keyReplaces], join(path, keyReplaces), r.Name)
	word := p.text(fields[keyUnit], join(path, keyUnit))
	requests := p.count64(fields[keyRequests], join(path, keyRequests))
	if p.boolean(fields[keyUnlimited], join(path, keyUnlimited)) {
		r.Effect = EffectUnlimited
		if fields[keyUnit] != nil {
			p.fault(fields[keyUnit], join(path, keyUnit), "stands beside %s: what is not limited has no unit", keyUnlimited)
		}
		if fields[keyRequests] != nil {
			p.note(fields[keyRequests], join(path, keyRequests), "has no effect beside %s", keyUnlimited)
		}
		return
	}
	r.Unit = parseUnit(word)
	switch {
	case fields[keyUnit] == nil:
		p.fault(n, join(path, keyUnit), "is missing, want %s", unitWords())
	case r.Unit == UnitInvalid && word != "":
		p.fault(fields[keyUnit], join(path, keyUnit), "is %s, want %s", quote(word), unitWords())
	case r.Unit == UnitInvalid && fields[keyUnit].Value == "":
		p.fault(fields[keyUnit], join(path, keyUnit), "is empty, want %s", unitWords())
	}
	r.RequestsPerUnit = requests
	r.Effect = EffectLimit
	if requests == 0 {
		r.Effect = EffectDeny
	}
	if fields[keyRequests] == nil {
		p.note(n, join(path, keyRequests), "is missing and counts as 0: the rule denies everything")
	}
}

func (p *parser) count64(n *yaml.Node, path string) uint32 {
	return uint32(p.document.count(n, path, 0, math.MaxUint32)) //nolint:gosec // G115: the range is checked.
}

func unitWords() string {
	words := make([]string, 0, len(units))
	for _, u := range units[UnitSecond:] {
		words = append(words, u.word)
	}
	return "one of " + strings.Join(words, ", ")
}

func (p *parser) replaces(n *yaml.Node, path, own string) []string {
	var names []string
	for i, element := range p.list(n, path) {
		at := index(path, i)
		before := len(p.faults)
		fields := p.mapping(element, at, keyName)
		name := p.text(fields[keyName], join(at, keyName))
		switch {
		case len(p.faults) > before:
		case name == "":
			p.fault(element, join(at, keyName), "is missing or empty, want the name of the rule that is replaced")
		case name == own:
			p.fault(element, join(at, keyName), "is %s, the name of this rule: it cannot replace itself", quote(name))
		}
		names = append(names, name)
	}
	return names
}

// ownKeys is our own block beside rate_limit.
type ownKeys struct {
	algorithm ratelimit.Algorithm
	burst     int64 // 0 where it is absent
	maxCost   int64 // 0 where it is absent
	fields    map[string]*yaml.Node
}

func (p *parser) own(n *yaml.Node, path string, r *Rule) ownKeys {
	own := ownKeys{algorithm: ratelimit.AlgorithmFixedWindow}
	if n == nil {
		return own
	}
	if r.Effect == EffectUnlimited || r.Effect == EffectDeny {
		p.fault(n, path, "stands beside a rule that decides nothing: it is %s", map[Effect]string{
			EffectUnlimited: keyUnlimited, EffectDeny: keyRequests + " 0",
		}[r.Effect])
		return own
	}
	own.fields = p.mapping(n, path, keyAlgorithm, keyBurst, keyMaxCost)
	if word := own.fields[keyAlgorithm]; word != nil {
		own.algorithm = parseAlgorithm(p.text(word, join(path, keyAlgorithm)))
		if own.algorithm == ratelimit.AlgorithmInvalid {
			p.fault(word, join(path, keyAlgorithm), "is %s, want %s", describe(word), algorithmWords())
		}
	}
	// A remaining count is 32 bits on the wire.
	own.burst = p.document.count(own.fields[keyBurst], join(path, keyBurst), 1, math.MaxUint32)
	own.maxCost = p.document.count(own.fields[keyMaxCost], join(path, keyMaxCost), 1, math.MaxUint32)
	if own.fields[keyBurst] != nil && own.algorithm != ratelimit.AlgorithmTokenBucket && own.algorithm != ratelimit.AlgorithmGCRA &&
		own.algorithm != ratelimit.AlgorithmInvalid {
		p.fault(own.fields[keyBurst], join(path, keyBurst), "belongs to token-bucket and gcra, not to %v", own.algorithm)
	}
	return own
}

func parseAlgorithm(word string) ratelimit.Algorithm {
	for _, a := range ratelimit.Algorithms() {
		if a.String() == word {
			return a
		}
	}
	return ratelimit.AlgorithmInvalid
}

func algorithmWords() string {
	var words []string
	for _, a := range ratelimit.Algorithms() {
		words = append(words, a.String())
	}
	return "one of " + strings.Join(words, ", ")
}

// policy makes the policy of a rule that limits.
func (p *parser) policy(r *Rule, own ownKeys, n *yaml.Node, path string) {
	config := ratelimit.RateLimitPolicyConfig{
		ID:                 policyID(p.domain, p.steps),
		Algorithm:          own.algorithm,
		CleanupGrace:       p.options.CleanupGrace,
		MaxClockRegression: p.options.MaxClockRegression,
		FailurePolicy:      ratelimit.FailClosed,
	}
	requests, unit := int64(r.RequestsPerUnit), r.Unit.Duration()
	burst := own.burst
	if burst == 0 {
		burst = requests
	}
	most := requests
	switch own.algorithm {
	case ratelimit.AlgorithmFixedWindow:
		config.Parameters = ratelimit.FixedWindowParameters{Limit: requests, Window: unit}
	case ratelimit.AlgorithmSlidingWindowCounter:
		config.Parameters = ratelimit.SlidingWindowCounterParameters{Limit: requests, Window: unit}
	case ratelimit.AlgorithmTokenBucket:
		config.Parameters = ratelimit.TokenBucketParameters{Capacity: burst, RefillTokens: requests, RefillPeriod: unit}
		most = burst
	case ratelimit.AlgorithmGCRA:
		config.Parameters = ratelimit.GCRAParameters{Limit: requests, Period: unit, Burst: burst}
		most = burst
	case ratelimit.AlgorithmSlidingWindowLog:
		config.Parameters = ratelimit.SlidingWindowLogParameters{Limit: requests, Window: unit}
	case ratelimit.AlgorithmInvalid:
	}
	config.MaxCost = most
	if own.maxCost > 0 {
		config.MaxCost = own.maxCost
	}
	policy, err := withRevision(config)
	if err != nil {
		p.refusals(err, own, n, path)
		return
	}
	r.Policy = policy
}

// refusals says under the key of a document what a policy's constructor refused.
func (p *parser) refusals(err error, own ownKeys, n *yaml.Node, path string) {
	faults := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		faults = joined.Unwrap()
	}
	for _, each := range faults {
		at, where := n, join(path, keyRateLimit)
		var refused *ratelimit.PolicyError
		if !errors.As(each, &refused) {
			p.fault(at, where, "makes no policy: %v", each)
			continue
		}
		switch {
		case refused.Field == "MaxCost" && own.fields[keyMaxCost] != nil:
			at, where = own.fields[keyMaxCost], join(join(path, keyOwn), keyMaxCost)
		case (refused.Field == "Burst" || refused.Field == "Capacity") && own.fields[keyBurst] != nil:
			at, where = own.fields[keyBurst], join(join(path, keyOwn), keyBurst)
		}
		p.fault(at, where, "makes no exact policy: %v", refused)
	}
}
