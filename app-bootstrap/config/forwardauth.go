package config

import (
	"net/http"
	"slices"
	"strings"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// ForwardAuth is app.service.forward-auth: the check that reverse proxies ask. Where Enabled is false,
// every other field is zero.
type ForwardAuth struct {
	Enabled       bool
	DefaultPolicy ratelimit.PolicyID // of a check that names none
	DenyStatus    int                // 429 or 403
	Mode          httpedge.Mode
	Headers       []httpedge.HeaderStyle
	Address       httpedge.AddressConfig
	Names         httpedge.HeaderNames // a name that is empty is not read
}

// The section and its keys.
const (
	forwardAuthPath              = servicePath + ".forward-auth"
	pathForwardAuthEnabled       = forwardAuthPath + ".enabled"
	pathForwardAuthPolicy        = forwardAuthPath + ".default-policy"
	pathForwardAuthDenyStatus    = forwardAuthPath + ".deny-status"
	pathForwardAuthMode          = forwardAuthPath + ".mode"
	pathForwardAuthHeaders       = forwardAuthPath + ".headers"
	pathForwardAuthProxies       = forwardAuthPath + ".trusted-proxies"
	pathForwardAuthAddress       = forwardAuthPath + ".address-header"
	pathForwardAuthPrefix        = forwardAuthPath + ".ipv6-prefix"
	pathForwardAuthPolicyHeader  = forwardAuthPath + ".policy-header"
	pathForwardAuthSubjectHeader = forwardAuthPath + ".subject-header"
	pathForwardAuthDigestHeader  = forwardAuthPath + ".subject-digest-header"
	pathForwardAuthCostHeader    = forwardAuthPath + ".cost-header"
)

// The words of the closed sets; index 0 stands for the invalid zero value.
var (
	edgeModeWords      = []string{"INVALID", "enforce", "shadow"}
	headerStyleWords   = []string{"INVALID", "draft-12", "draft-11", "ratelimit", "x-ratelimit"}
	addressHeaderWords = []string{"INVALID", "x-forwarded-for", "forwarded"}
)

const (
	headerName = "the name of a header; empty reads none"
	headerWarn = " The proxy must set or remove it for every check: one that it passes on is the client's own."
)

// forwardAuthFields are the keys of app.service.forward-auth.
var forwardAuthFields = []*field{
	{
		path: pathForwardAuthEnabled, kind: kindBoolean, def: false,
		about: "Turns on GET /v1/check, which nginx, Caddy, Traefik and Envoy ask before they pass a request on. Off means that the path does not exist; the rest of the section is then checked for unknown keys and wrong types only. Needs the limiter.",
	},
	{
		path: pathForwardAuthPolicy, kind: kindText, high: 64, def: "", allowed: "the name of one of the policies",
		about: "The policy of a check that names none. Without it, app.rate-limit.default-policy.",
	},
	{
		path: pathForwardAuthDenyStatus, kind: kindInteger, def: int64(http.StatusTooManyRequests), allowed: "429 or 403",
		about: "What a denial is answered with, where the check does not say. 403 is for nginx, whose auth_request passes no 429 on.",
	},
	{
		path: pathForwardAuthMode, kind: kindWord, words: edgeModeWords, def: "enforce",
		about: "shadow asks, spends and reports in the header Edgelimit-Shadow, and answers every check with 200.",
	},
	{
		path: pathForwardAuthHeaders, kind: kindList, words: headerStyleWords, high: 4, def: []string{"draft-12", "draft-11"},
		about: "The header fields that tell of the limit: RateLimit and RateLimit-Policy as revision 12 of the IETF draft has them, as its revisions 08 to 11 do, RateLimit-Limit and its like, X-RateLimit-Limit and its like. Retry-After is always there.",
	},
	{
		path: pathForwardAuthProxies, kind: kindList, high: 1024, def: []string{}, allowed: "networks such as 10.0.0.0/8, addresses, or unix",
		about: "The proxies that are believed about the client's address. A check that names no subject and comes from elsewhere is refused. unix stands for peers of a Unix domain socket.",
	},
	{
		path: pathForwardAuthAddress, kind: kindWord, words: addressHeaderWords, def: "x-forwarded-for",
		about: "Where the proxies write the client's address. It must be a header that they write themselves: it is read from the right, up to the first address that is no trusted proxy.",
	},
	{
		path: pathForwardAuthPrefix, kind: kindInteger, def: int64(64), low: 1, high: 128,
		about: "How many leading bits of an IPv6 address make a subject. A host usually has a whole /64 to choose addresses from.",
	},
	{path: pathForwardAuthPolicyHeader, kind: kindText, high: 128, def: "", allowed: headerName, about: "The header in which a proxy names the policy, beside the query parameter policy." + headerWarn},
	{path: pathForwardAuthSubjectHeader, kind: kindText, high: 128, def: "", allowed: headerName, about: "The header in which a proxy names the subject, beside the query parameter subject." + headerWarn},
	{path: pathForwardAuthDigestHeader, kind: kindText, high: 128, def: "", allowed: headerName, about: "The header in which a proxy gives the subject's digest, beside the query parameter subject-digest." + headerWarn},
	{path: pathForwardAuthCostHeader, kind: kindText, high: 128, def: "", allowed: headerName, about: "The header in which a proxy names the cost, beside the query parameter cost." + headerWarn},
}

// forwardAuth judges app.service.forward-auth and builds its settings.
func (d *decoder) forwardAuth(limiter RateLimit) ForwardAuth {
	if !d.values.boolean(pathForwardAuthEnabled) {
		return ForwardAuth{}
	}
	d.judge(forwardAuthFields)
	v := d.values
	f := ForwardAuth{
		Enabled:       true,
		DefaultPolicy: ratelimit.PolicyID(v.text(pathForwardAuthPolicy)),
		DenyStatus:    v.number(pathForwardAuthDenyStatus),
		Mode:          httpedge.Mode(indexOf(edgeModeWords, v.text(pathForwardAuthMode))),
		Address: httpedge.AddressConfig{
			Header:     httpedge.AddressHeader(indexOf(addressHeaderWords, v.text(pathForwardAuthAddress))),
			IPv6Prefix: v.number(pathForwardAuthPrefix),
		},
		Names: httpedge.HeaderNames{
			Policy:        v.text(pathForwardAuthPolicyHeader),
			Subject:       v.text(pathForwardAuthSubjectHeader),
			SubjectDigest: v.text(pathForwardAuthDigestHeader),
			Cost:          v.text(pathForwardAuthCostHeader),
		},
	}
	if f.DenyStatus != http.StatusTooManyRequests && f.DenyStatus != http.StatusForbidden {
		d.add(pathForwardAuthDenyStatus, "is %d, want 429 or 403", f.DenyStatus)
	}
	for _, word := range v.list(pathForwardAuthHeaders) {
		style := httpedge.HeaderStyle(indexOf(headerStyleWords, word))
		if slices.Contains(f.Headers, style) {
			d.add(pathForwardAuthHeaders, "has %s twice", word)
		}
		f.Headers = append(f.Headers, style)
	}
	proxies, err := httpedge.ParseTrustedProxies(v.list(pathForwardAuthProxies))
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.add(pathForwardAuthProxies, "%s", line)
		}
	}
	f.Address.Proxies = proxies
	d.headerNames(f.Names)
	d.checkPolicy(&f, limiter)
	return f
}

// headerNames holds names to the characters of one, and to be different.
func (d *decoder) headerNames(names httpedge.HeaderNames) {
	seen := make(map[string]string)
	for _, h := range []struct{ path, name string }{
		{pathForwardAuthPolicyHeader, names.Policy},
		{pathForwardAuthSubjectHeader, names.Subject},
		{pathForwardAuthDigestHeader, names.SubjectDigest},
		{pathForwardAuthCostHeader, names.Cost},
	} {
		if h.name == "" {
			continue
		}
		if !httpedge.IsHeaderName(h.name) {
			d.add(h.path, "is %s, want %s", quote(h.name), headerName)
		}
		canonical := http.CanonicalHeaderKey(h.name)
		if other := seen[canonical]; other != "" {
			d.add(h.path, "is %s, which %s is too", quote(h.name), leaf(other))
		}
		seen[canonical] = h.path
	}
}

// checkPolicy finds the default policy of checks, and holds the door to a limiter behind it.
func (d *decoder) checkPolicy(f *ForwardAuth, limiter RateLimit) {
	if !limiter.Enabled {
		if !d.values.boolean(pathEnabled) { // what is wrong with one that is on has been said
			d.add(pathForwardAuthEnabled, "is true, but %s is not: there is nothing to check with", pathEnabled)
		}
		return
	}
	if f.DefaultPolicy == "" {
		f.DefaultPolicy = limiter.DefaultPolicy
	} else if limiter.Policies != nil && limiter.Policies.Get(f.DefaultPolicy) == nil {
		d.add(pathForwardAuthPolicy, "is %s, want the name of one of the policies", quote(string(f.DefaultPolicy)))
	}
}
