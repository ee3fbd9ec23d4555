package envoyrls

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"sync"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// OverridePrefix begins the IDs of policies that requests bring along. The ID names the unit; the
// revision is the limit.
const OverridePrefix = "envoy.override."

// maxOverrides bounds the ports that are kept for limits which requests bring along. A port holds no
// state: one that is given up is made again.
const maxOverrides = 512

// override is a limit that a request brings along.
type override struct {
	requests   uint32
	unit       rules.Unit
	multiplier uint32 // of the unit, 1 where the request has none
}

func (o override) window() time.Duration { return time.Duration(o.multiplier) * o.unit.Duration() }

var overrideUnits = map[typev3.RateLimitUnit]rules.Unit{
	typev3.RateLimitUnit_SECOND: rules.UnitSecond,
	typev3.RateLimitUnit_MINUTE: rules.UnitMinute,
	typev3.RateLimitUnit_HOUR:   rules.UnitHour,
	typev3.RateLimitUnit_DAY:    rules.UnitDay,
	typev3.RateLimitUnit_MONTH:  rules.UnitMonth,
	typev3.RateLimitUnit_YEAR:   rules.UnitYear,
}

// readOverride reads a descriptor's limit; ok is false where it names no span of time that can be kept.
func readOverride(limit *commonv3.RateLimitDescriptor_RateLimitOverride) (o override, ok bool) {
	o = override{requests: limit.GetRequestsPerUnit(), unit: overrideUnits[limit.GetUnit()], multiplier: 1}
	if m := limit.GetUnitMultiplier(); m != nil {
		o.multiplier = m.GetValue()
	}
	longest := time.Duration(algorithm.MaxHorizonMillis) * time.Millisecond
	return o, o.unit != rules.UnitInvalid && o.multiplier > 0 && o.unit.Duration() <= longest/time.Duration(o.multiplier)
}

// overridePort decides by one limit that a request brought along.
type overridePort struct {
	port   ratelimit.EdgeRateLimitPort
	policy *ratelimit.RateLimitPolicy
}

// overrides keeps the ports of the limits that requests brought along last.
type overrides struct {
	ports             Ports
	grace, regression time.Duration
	suffix            string
	mu                sync.Mutex
	young, old        map[override]overridePort
	mostYoung         int
}

func newOverrides(ports Ports, grace, regression time.Duration) *overrides {
	// Grace and regression are parameters of a policy as well: policies that differ there have IDs that do.
	sum := sha256.Sum256(fmt.Appendf(nil, "grace=%d|regression=%d", grace.Milliseconds(), regression.Milliseconds()))
	return &overrides{
		ports: ports, grace: grace, regression: regression, suffix: "-" + hex.EncodeToString(sum[:4]),
		young: make(map[override]overridePort), mostYoung: maxOverrides / 2,
	}
}

// policy is the fixed window of a limit. The limit is the revision, in bands where it is more than a
// revision can be, so two limits never read each other's state.
func (o *overrides) policy(limit override) (*ratelimit.RateLimitPolicy, error) {
	band, revision := (int64(limit.requests)-1)/ratelimit.MaxPolicyRevision, 1+(int64(limit.requests)-1)%ratelimit.MaxPolicyRevision
	id := OverridePrefix + limit.unit.String()
	if limit.multiplier != 1 {
		id += fmt.Sprintf(".x%d", limit.multiplier)
	}
	if band > 0 {
		id += fmt.Sprintf(".b%d", band)
	}
	return ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID:                 ratelimit.PolicyID(id + o.suffix),
		Revision:           revision,
		Algorithm:          ratelimit.AlgorithmFixedWindow,
		Parameters:         ratelimit.FixedWindowParameters{Limit: int64(limit.requests), Window: limit.window()},
		MaxCost:            int64(limit.requests),
		CleanupGrace:       o.grace,
		MaxClockRegression: o.regression,
		FailurePolicy:      ratelimit.FailClosed,
	})
}

// get gives the port of a limit above 0.
func (o *overrides) get(limit override) (overridePort, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p, ok := o.young[limit]; ok {
		return p, nil
	}
	p, ok := o.old[limit]
	if !ok {
		policy, err := o.policy(limit)
		if err != nil {
			return overridePort{}, fmt.Errorf("envoyrls: the limit of a request: %w", err)
		}
		set, err := ratelimit.NewPolicySet(policy)
		if err != nil {
			return overridePort{}, fmt.Errorf("envoyrls: the limit of a request: %w", err)
		}
		port, err := o.ports.WithPolicies(set)
		if err != nil {
			return overridePort{}, fmt.Errorf("envoyrls: the limit of a request: %w", err)
		}
		p = overridePort{port: port, policy: policy}
	}
	if len(o.young) >= o.mostYoung {
		o.old, o.young = o.young, make(map[override]overridePort)
	}
	o.young[limit] = p
	return p, nil
}

// mostRemaining is the greatest remaining count that an answer can hold.
const mostRemaining = math.MaxUint32
