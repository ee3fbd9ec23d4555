package httpedge

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/edgelimit/edgelimit/adapter/inbound/internal/problem"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// The parameters of a check's query.
const (
	parameterPolicy        = "policy"
	parameterSubject       = "subject"
	parameterSubjectDigest = "subject-digest"
	parameterCost          = "cost"
	parameterDenyStatus    = "deny-status"
)

// maxQueryBytes bounds a query: the longest subject with every byte escaped, and the other parameters.
const maxQueryBytes = 3*MaxSubjectBytes + 1024

// The codes of problems with a check.
const (
	codeMalformedCheck = "malformed-check"
	codeConflict       = "conflicting-fields"
)

// check is what one check asks.
type check struct {
	policy     ratelimit.PolicyID
	subject    Subject // nobody where it names none
	cost       int64
	denyStatus int
}

// read gives what a check asks, or what is wrong with it. No problem repeats a value.
func (f *forwardAuth) read(r *http.Request) (check, *problem.Problem) {
	c := check{policy: f.config.DefaultPolicy, cost: 1, denyStatus: f.config.DenyStatus}
	given, bad := f.parameters(r)
	if bad != nil {
		return c, bad
	}
	if id, ok := given[parameterPolicy]; ok {
		if c.policy = ratelimit.PolicyID(id); c.policy.Validate() != nil {
			return c, malformed(parameterPolicy, "is not the name of a policy")
		}
	}
	raw, haveRaw := given[parameterSubject]
	digest, haveDigest := given[parameterSubjectDigest]
	switch {
	case haveRaw && haveDigest:
		return c, &problem.Problem{
			Status: http.StatusBadRequest, Code: codeConflict, Field: parameterSubjectDigest,
			Detail: "subject-digest must be absent where subject is there: give one of both",
		}
	case haveRaw && (raw == "" || len(raw) > MaxSubjectBytes):
		return c, malformed(parameterSubject, fmt.Sprintf("has %d bytes, want 1..%d", len(raw), MaxSubjectBytes))
	case haveRaw:
		c.subject = RawSubject(raw)
	case haveDigest:
		d, err := ratelimit.ParseSubjectDigest(digest)
		if err != nil {
			return c, malformed(parameterSubjectDigest, "must be 64 characters of 0-9 and a-f")
		}
		c.subject = DigestedSubject(d)
	}
	if text, ok := given[parameterCost]; ok {
		if c.cost, ok = parseCost(text); !ok {
			return c, malformed(parameterCost, "must be an integer of 1 or more")
		}
	}
	if text, ok := given[parameterDenyStatus]; ok {
		switch text {
		case "429":
			c.denyStatus = http.StatusTooManyRequests
		case "403":
			c.denyStatus = http.StatusForbidden
		default:
			return c, malformed(parameterDenyStatus, "must be 429 or 403")
		}
	}
	return c, nil
}

// parameters collects what the query and the named headers say: each thing once at most.
func (f *forwardAuth) parameters(r *http.Request) (map[string]string, *problem.Problem) {
	var given map[string]string
	take := func(parameter, value string) *problem.Problem {
		if _, twice := given[parameter]; twice {
			return &problem.Problem{
				Status: http.StatusBadRequest, Code: codeConflict, Field: parameter,
				Detail: parameter + " is given twice: once in the query or once in its header",
			}
		}
		if given == nil {
			given = make(map[string]string, 4)
		}
		given[parameter] = value
		return nil
	}
	if r.URL.Path == PathCheck && r.URL.RawQuery != "" {
		if len(r.URL.RawQuery) > maxQueryBytes {
			return nil, malformed("", fmt.Sprintf("the query is longer than %d bytes", maxQueryBytes))
		}
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return nil, malformed("", "the query is not well formed")
		}
		for parameter, values := range query {
			switch parameter {
			case parameterPolicy, parameterSubject, parameterSubjectDigest, parameterCost, parameterDenyStatus:
			default:
				return nil, malformed("", "the query has a parameter that there is not")
			}
			for _, value := range values {
				if bad := take(parameter, value); bad != nil {
					return nil, bad
				}
			}
		}
	}
	names := f.config.Names
	for _, h := range []struct{ header, parameter string }{
		{names.Policy, parameterPolicy},
		{names.Subject, parameterSubject},
		{names.SubjectDigest, parameterSubjectDigest},
		{names.Cost, parameterCost},
	} {
		if h.header == "" {
			continue
		}
		for _, value := range r.Header[h.header] {
			if value == "" {
				continue // a proxy that has nothing to say may say it so
			}
			if bad := take(h.parameter, value); bad != nil {
				return nil, bad
			}
		}
	}
	return given, nil
}

func malformed(field, detail string) *problem.Problem {
	if field != "" {
		detail = field + " " + detail
	}
	return &problem.Problem{Status: http.StatusBadRequest, Code: codeMalformedCheck, Field: field, Detail: detail}
}

// parseCost reads digits that begin with no zero. Whether the policy takes the cost is for the limiter
// to say.
func parseCost(text string) (int64, bool) {
	if text == "" || len(text) > 16 || text[0] == '0' {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	cost, err := strconv.ParseInt(text, 10, 64)
	return cost, err == nil
}
