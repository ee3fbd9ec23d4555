package config

import (
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// rateLimit judges app.rate-limit and builds its settings; there says whether the section is there.
func (d *decoder) rateLimit(there bool) RateLimit {
	if !there {
		return RateLimit{}
	}
	if !d.values.given(pathEnabled) {
		if !d.has(pathEnabled) && !d.has(rateLimitPath) {
			d.add(pathEnabled, "is missing, want true or false")
		}
		return RateLimit{}
	}
	if !d.values.boolean(pathEnabled) {
		return RateLimit{}
	}
	d.judge(rateLimitFields)
	v := d.values
	r := RateLimit{
		Enabled:               true,
		Provider:              Provider(indexOf(providerWords, v.text(pathProvider))),
		Role:                  Role(indexOf(roleWords, v.text(rateLimitPath+".role"))),
		FailurePolicy:         ratelimit.FailClosed,
		DefaultPolicy:         ratelimit.PolicyID(v.text(pathDefaultPolicy)),
		Key:                   Key{Namespace: d.namespace(limiterConnection)},
		Memory:                Memory{MaxKeys: v.number(rateLimitPath + ".memory.max-keys")},
		Admission:             Admission{MaxInFlight: v.number(rateLimitPath + ".admission.max-in-flight")},
		UnavailableRetryAfter: v.duration(rateLimitPath + ".unavailable-retry-after"),
		Circuit: Circuit{
			Enabled:     v.boolean(circuitPath + ".enabled"),
			Failures:    v.number(circuitPath + ".failures"),
			OpenTimeout: v.duration(circuitPath + ".open-timeout"),
		},
		DenialCache: DenialCache{
			Enabled:    v.boolean(denialCachePath + ".enabled"),
			MaxEntries: v.number(denialCachePath + ".max-entries"),
		},
	}
	r.Key.Secret = d.hmacSecret(limiterConnection, r.Provider == ProviderRedis)
	if r.Provider == ProviderRedis {
		r.Redis = d.connect(limiterConnection)
	} else {
		r.Redis = d.connectionValues(limiterConnection)
		d.address(limiterConnection, false)
	}
	r.Redis.Coalesce = v.boolean(pathCoalesce)
	r.Policies = d.policySet(r.DefaultPolicy)
	return r
}

var namespaceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

var hostForm = regexp.MustCompile(`^[A-Za-z0-9._:%-]{0,253}$`)

// hostPort says what is wrong with an address, "" for nothing. The host may be empty.
func hostPort(address string, lowPort int) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "the port is missing, or an IPv6 address has no brackets"
	}
	if !hostForm.MatchString(host) {
		return "the host has characters that no host has"
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < lowPort || number > 65535 || strconv.Itoa(number) != port {
		return "the port is not " + strconv.Itoa(lowPort) + "..65535"
	}
	return ""
}

// policySet builds all policies and holds the default policy to one of them. What it
// gives where something is wrong is not used.
func (d *decoder) policySet(byDefault ratelimit.PolicyID) *ratelimit.PolicySet {
	if d.has(policiesPath) {
		return nil
	}
	if len(d.policies) == 0 {
		d.add(policiesPath, "is missing, want at least one policy")
		return nil
	}
	if len(d.policies) > maxPolicies {
		d.add(policiesPath, "has %d policies, want at most %d", len(d.policies), maxPolicies)
		return nil
	}
	ids := slices.Sorted(maps.Keys(d.policies))
	if _, known := d.policies[string(byDefault)]; byDefault != "" && !known {
		shown := ids
		if len(shown) > 10 {
			shown = append(slices.Clone(shown[:10]), "...")
		}
		d.add(pathDefaultPolicy, "is %s, want one of the policies: %s", quote(string(byDefault)), strings.Join(shown, ", "))
	}
	var policies []*ratelimit.RateLimitPolicy
	for _, id := range ids {
		if d.has(join(policiesPath, showKey(id))) {
			continue // it is no section
		}
		if p := d.policy(id, d.policies[id]); p != nil {
			policies = append(policies, p)
		}
	}
	set, err := ratelimit.NewPolicySet(policies...)
	if err != nil {
		return nil // no policy was made, and why was said
	}
	return set
}
