package contender

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit/denialcache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

const ownModule = "github.com/edgelimit/edgelimit"

// OwnName is how tables call our decisions by an algorithm.
func OwnName(algorithm ratelimit.Algorithm) string { return "edgelimit " + algorithm.String() }

// variant says in what ours over Redis is not as its configuration has it by default.
type variant uint8

const (
	variantDefault variant = iota // coalesced, with a circuit, without a denial cache
	variantSingle                 // not coalesced
	variantDenials                // with a denial cache
)

// OwnRedis is edgelimit over Redis, through the port, as its configuration has it by default.
func OwnRedis(algorithm ratelimit.Algorithm) Contender {
	c := own(algorithm)
	c.Note = "one program; a denial writes nothing"
	c.Open = func(ctx context.Context, setting Setting) (Decider, error) {
		return openOwnRedis(ctx, algorithm, setting, variantDefault)
	}
	return c
}

// OwnUncoalesced is the token bucket over Redis with one command for each round trip.
func OwnUncoalesced() Contender {
	c := own(ratelimit.AlgorithmTokenBucket)
	c.Name += ", not coalesced"
	c.Note = "one command for each round trip (coalesce: false)"
	c.Open = func(ctx context.Context, setting Setting) (Decider, error) {
		return openOwnRedis(ctx, ratelimit.AlgorithmTokenBucket, setting, variantSingle)
	}
	return c
}

// OwnDenialCache is the token bucket over Redis with a cache of denials, as a hot abuser meets it.
func OwnDenialCache() Contender {
	c := own(ratelimit.AlgorithmTokenBucket)
	c.Name += ", denial cache"
	c.Note = "a denial is answered from memory as long as it is certain (denial-cache.enabled: true)"
	c.Open = func(ctx context.Context, setting Setting) (Decider, error) {
		return openOwnRedis(ctx, ratelimit.AlgorithmTokenBucket, setting, variantDenials)
	}
	return c
}

// OwnMemory is edgelimit in memory, through the port.
func OwnMemory(algorithm ratelimit.Algorithm) Contender {
	c := own(algorithm)
	c.Note = "through the port: validation, deadline and outcome are in it"
	c.Open = func(_ context.Context, setting Setting) (Decider, error) { return openOwnMemory(algorithm, setting) }
	return c
}

func own(algorithm ratelimit.Algorithm) Contender {
	return Contender{
		Name: OwnName(algorithm), Module: ownModule, Role: Own, Algorithm: strings.ReplaceAll(algorithm.String(), "-", " "),
		Unchecked: algorithm == ratelimit.AlgorithmSlidingWindowLog,
	}
}

// port asks a limiter of ours.
type port struct {
	limiter  ratelimit.EdgeRateLimitPort
	policies []ratelimit.PolicyID
	subjects []ratelimit.SubjectDigest
	deadline time.Time
	close    func() error
}

// Decide asks for a subject, under a policy that belongs to it. The deadline was set beforehand, as it
// is in a caller's context.
func (d *port) Decide(ctx context.Context, key int) (bool, error) {
	policy := d.policies[0]
	if len(d.policies) > 1 {
		policy = d.policies[key%len(d.policies)]
	}
	outcome, err := d.limiter.Evaluate(ctx, ratelimit.RateLimitRequest{
		PolicyID: policy, Subject: d.subjects[key], Cost: 1, Deadline: d.deadline,
	})
	if err != nil {
		return false, err
	}
	if evaluated, ok := outcome.(ratelimit.Evaluated); ok {
		return evaluated.Decision.Allowed, nil
	}
	return false, fmt.Errorf("%T: %+v", outcome, outcome)
}

func (d *port) Close() error { return d.close() }

// farAhead is later than any run ends.
const farAhead = 24 * time.Hour

func newPort(limiter ratelimit.EdgeRateLimitPort, set *ratelimit.PolicySet, setting Setting, closer func() error) (*port, error) {
	d := &port{limiter: limiter, deadline: time.Now().Add(farAhead), close: closer}
	for _, policy := range set.All() {
		d.policies = append(d.policies, policy.ID())
	}
	var err error
	d.subjects, err = subjects(setting.Keys)
	return d, err
}

// subjects are digests as a caller has them. They are numbers that are spread, not hashes: what
// turns an identity into a digest stands before the port and is not measured.
func subjects(n int) ([]ratelimit.SubjectDigest, error) {
	all := make([]ratelimit.SubjectDigest, n)
	var raw [32]byte
	for i := range all {
		for part := range 4 {
			binary.BigEndian.PutUint64(raw[part*8:], (uint64(i)+1)*0x9e3779b97f4a7c15+uint64(part))
		}
		digest, err := ratelimit.ParseSubjectDigest(hex.EncodeToString(raw[:]))
		if err != nil {
			return nil, err
		}
		all[i] = digest
	}
	return all, nil
}

// policySet makes as many policies as the setting has, alike but for their names.
func policySet(algorithm ratelimit.Algorithm, setting Setting, inMemory bool) (*ratelimit.PolicySet, error) {
	parameters, err := parametersOf(algorithm, setting, inMemory)
	if err != nil {
		return nil, err
	}
	policies := make([]*ratelimit.RateLimitPolicy, max(setting.Policies, 1))
	for i := range policies {
		policies[i], err = ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
			ID: ratelimit.PolicyID(fmt.Sprintf("policy-%04d", i)), Revision: 1, Algorithm: algorithm, Parameters: parameters, MaxCost: 1,
			CleanupGrace: time.Minute, MaxClockRegression: 2 * time.Second, FailurePolicy: ratelimit.FailClosed,
		})
		if err != nil {
			return nil, err
		}
	}
	return ratelimit.NewPolicySet(policies...)
}

func parametersOf(algorithm ratelimit.Algorithm, setting Setting, inMemory bool) (ratelimit.Parameters, error) {
	n, period := limits(setting)
	if inMemory && setting.Kind == Allow {
		n, period = MemoryLimit, MemoryPeriod
	}
	limit := int64(n)
	switch algorithm {
	case ratelimit.AlgorithmFixedWindow:
		return ratelimit.FixedWindowParameters{Limit: limit, Window: period}, nil
	case ratelimit.AlgorithmSlidingWindowCounter:
		return ratelimit.SlidingWindowCounterParameters{Limit: limit, Window: period}, nil
	case ratelimit.AlgorithmTokenBucket:
		return ratelimit.TokenBucketParameters{Capacity: limit, RefillTokens: limit, RefillPeriod: period}, nil
	case ratelimit.AlgorithmGCRA:
		return ratelimit.GCRAParameters{Limit: limit, Period: period, Burst: limit}, nil
	case ratelimit.AlgorithmSlidingWindowLog:
		switch {
		case setting.Kind == Deny:
		case inMemory:
			limit, period = LogLimit, LogMemoryPeriod
		default:
			limit, period = LogLimit, LogPeriod
		}
		return ratelimit.SlidingWindowLogParameters{Limit: limit, Window: period}, nil
	case ratelimit.AlgorithmInvalid:
	}
	return nil, fmt.Errorf("contender: no parameters for %v", algorithm)
}

// secret is as long as a secret must be. Nothing here is worth keeping.
var secret = []byte(strings.Repeat("benchmark secret", 2))

const (
	unavailableRetryAfter = time.Second
	// The defaults of admission.max-in-flight, circuit and denial-cache below app.rate-limit.
	usualInFlight    = 512
	usualFailures    = 5
	usualOpenTimeout = 250 * time.Millisecond
	usualDenials     = 65536
)

func openOwnRedis(ctx context.Context, algorithm ratelimit.Algorithm, setting Setting, of variant) (Decider, error) {
	set, err := policySet(algorithm, setting, false)
	if err != nil {
		return nil, err
	}
	namespace := "bench-" + string(setting.Kind)
	switch of {
	case variantSingle:
		namespace += "-single"
	case variantDenials:
		namespace += "-denials"
	case variantDefault:
	}
	state, err := cacheredis.NewStore(cacheredis.StoreConfig{
		Address: setting.Address, CommandTimeout: CommandTimeout, PoolSize: setting.PoolSize, Coalesce: of != variantSingle,
		Namespace: namespace, Programs: store.RatePrograms(),
	})
	if err != nil {
		return nil, err
	}
	limiter, err := cacheredis.NewEdgeRateLimiter(state, cacheredis.LimiterConfig{
		Policies: set, Namespace: namespace, Secret: secret, MaxInFlight: max(setting.Callers, usualInFlight),
		CommandTimeout: CommandTimeout, UnavailableRetryAfter: unavailableRetryAfter,
		Circuit: &cacheredis.CircuitConfig{Failures: usualFailures, OpenTimeout: usualOpenTimeout},
	})
	if err != nil {
		return nil, errors.Join(err, state.Close())
	}
	var decides ratelimit.EdgeRateLimitPort = limiter
	if of == variantDenials {
		decides, err = denialcache.New(limiter, denialcache.Config{Policies: set, MaxEntries: usualDenials})
		if err != nil {
			return nil, errors.Join(err, state.Close())
		}
	}
	state.Start()
	if err := state.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, state.Close())
	}
	return newPort(decides, set, setting, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*CommandTimeout)
		defer cancel()
		return errors.Join(limiter.Drain(ctx), state.Close())
	})
}

func openOwnMemory(algorithm ratelimit.Algorithm, setting Setting) (Decider, error) {
	set, err := policySet(algorithm, setting, true)
	if err != nil {
		return nil, err
	}
	limiter, err := memory.NewEdgeRateLimiter(memory.Config{
		Policies: set, MaxKeys: setting.Keys * 2, UnavailableRetryAfter: unavailableRetryAfter,
	})
	if err != nil {
		return nil, err
	}
	return newPort(limiter, set, setting, func() error { return nil })
}
