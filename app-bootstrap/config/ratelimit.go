package config

import (
	"crypto/tls"
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
		Enabled:       true,
		Provider:      Provider(indexOf(providerWords, v.text(pathProvider))),
		Role:          Role(indexOf(roleWords, v.text(rateLimitPath+".role"))),
		FailurePolicy: ratelimit.FailClosed,
		DefaultPolicy: ratelimit.PolicyID(v.text(pathDefaultPolicy)),
		Redis: Redis{
			Address:        v.text(pathAddress),
			Username:       v.text(pathUsername),
			Database:       v.number(rateLimitPath + ".redis.database"),
			CommandTimeout: v.duration(pathCommandTimeout),
			PoolSize:       v.number(rateLimitPath + ".redis.pool-size"),
		},
		Key:                   Key{Namespace: v.text(pathNamespace)},
		Memory:                Memory{MaxKeys: v.number(rateLimitPath + ".memory.max-keys")},
		Admission:             Admission{MaxInFlight: v.number(rateLimitPath + ".admission.max-in-flight")},
		UnavailableRetryAfter: v.duration(rateLimitPath + ".unavailable-retry-after"),
	}
	if !namespaceForm.MatchString(r.Key.Namespace) {
		d.add(pathNamespace, "is %s, want 1..64 characters of a-z A-Z 0-9 . _ -", quote(r.Key.Namespace))
	}
	r.Key.Secret = d.hmacSecret(r.Provider)
	d.address(r.Provider)
	if r.Provider == ProviderRedis {
		r.Redis.Password = d.password()
		r.Redis.TLS = d.redisTLS()
	}
	r.Policies = d.policySet(r.DefaultPolicy)
	return r
}

var namespaceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (d *decoder) hmacSecret(provider Provider) Secret {
	inline, file := d.values.given(pathHMACSecret), d.values.text(pathHMACSecretFile) != ""
	switch {
	case inline && file:
		d.add(pathHMACSecret, "is given together with hmac-secret-file, want one of the two")
	case inline:
		return NewSecret([]byte(d.values.text(pathHMACSecret)))
	case file:
		return d.secretFile(pathHMACSecretFile, minSecretBytes)
	case provider == ProviderRedis && !d.has(pathHMACSecret) && !d.has(pathHMACSecretFile):
		d.add(pathHMACSecret, "is missing, want it or hmac-secret-file: %d bytes or more", minSecretBytes)
	}
	return Secret{}
}

func (d *decoder) password() Secret {
	inline, file := d.values.text(pathPassword), d.values.text(pathPasswordFile)
	switch {
	case inline != "" && file != "":
		d.add(pathPassword, "is given together with password-file, want one of the two")
	case inline != "":
		return NewSecret([]byte(inline))
	case file != "":
		return d.secretFile(pathPasswordFile, 1)
	case d.values.text(pathUsername) != "" && !d.has(pathPassword) && !d.has(pathPasswordFile):
		d.add(pathUsername, "is given without password or password-file: the connection would be another user's")
	}
	return Secret{}
}

// address holds the address to one host and port.
func (d *decoder) address(provider Provider) {
	address := d.values.text(pathAddress)
	switch {
	case d.has(pathAddress):
	case address == "":
		if provider == ProviderRedis {
			d.add(pathAddress, "is missing, want one host:port")
		}
	case strings.ContainsAny(address, ",; \t"):
		d.add(pathAddress, "is %s, want one host:port: %s", quote(address), oneServer)
	case strings.Contains(address, "://"):
		scheme, _, _ := strings.Cut(address, "://") // what follows may hold a password
		d.add(pathAddress, "is a URL (%s), want one host:port; user, database and TLS have their own keys, and %s", quote(scheme+"://"), oneServer)
	default:
		if problem := hostPort(address, 1); problem != "" {
			d.add(pathAddress, "is %s, want one host:port: %s", quote(address), problem)
		} else if host, _, _ := net.SplitHostPort(address); host == "" {
			d.add(pathAddress, "is %s, want one host:port: the host is empty", quote(address))
		}
	}
}

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

// redisTLS gives nil where TLS is off.
func (d *decoder) redisTLS() *tls.Config {
	if !d.values.boolean(pathTLS + ".enabled") {
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: d.values.text(pathTLS + ".server-name")}
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(d.values.text(pathAddress))
	}
	if d.values.text(pathTLS+".ca-file") != "" {
		c.RootCAs = d.pool(pathTLS + ".ca-file")
	}
	if pair := d.keyPair(pathTLS+".cert-file", pathTLS+".key-file"); pair != nil {
		c.Certificates = []tls.Certificate{*pair}
	}
	return c
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
