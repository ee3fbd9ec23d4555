package httpedge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// SubjectFunc says whom a request counts for. Where it gives an error the request is refused with 400;
// one of NoSubject and BadSubject has its reason shown, the text of another is not. It runs on the
// request's goroutine.
type SubjectFunc func(*http.Request) (Subject, error)

// DigestedSubject is a subject that somebody else has digested, with the same secret.
func DigestedSubject(digest ratelimit.SubjectDigest) Subject { return digested(digest) }

// ClientAddress limits by client address: the peer's, or the one that a trusted proxy tells. Its
// subjects are "address:192.0.2.1" and "address:2001:db8::/64", by which the JSON API reaches the same
// quota.
func ClientAddress(config AddressConfig) (SubjectFunc, error) {
	if err := config.Check(); err != nil {
		return nil, fmt.Errorf("httpedge: %w", err)
	}
	header := config.Header.Canonical()
	return func(r *http.Request) (Subject, error) {
		subject, _, err := config.Subject(r.RemoteAddr, r.Header[header])
		return subject, err
	}, nil
}

// APIKey limits by the value of a header, which a request must have exactly once and not empty, of at
// most MaxSubjectBytes. It does not judge the key: an authentication in front does, or a client can
// have a new quota with each key that it makes up. Its subjects are "header:x-api-key:" and the value.
func APIKey(header string) (SubjectFunc, error) {
	if !IsHeaderName(header) {
		return nil, errors.New("httpedge: APIKey: the header's name is not one of HTTP")
	}
	canonical, kind := http.CanonicalHeaderKey(header), "header:"+strings.ToLower(header)+":"
	missing := NoSubject("the header " + canonical + " is missing")
	twice := BadSubject("the header " + canonical + " is there more than once")
	long := BadSubject(fmt.Sprintf("the header %s is longer than %d bytes", canonical, MaxSubjectBytes))
	return func(r *http.Request) (Subject, error) {
		values := r.Header[canonical]
		switch {
		case len(values) == 0 || len(values) == 1 && values[0] == "":
			return Subject{}, missing
		case len(values) > 1:
			return Subject{}, twice
		case len(values[0]) > MaxSubjectBytes:
			return Subject{}, long
		}
		return RawSubject(kind + values[0]), nil
	}, nil
}

// IsHeaderName reports whether a text can be the name of a header, of at most 128 bytes.
func IsHeaderName(name string) bool {
	if name == "" || len(name) > 128 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return true
}

// Route limits a route as a whole, whoever asks. pattern says which route a request takes: see
// MatchedPattern and MuxPattern. A request without a route has no subject.
func Route(pattern func(*http.Request) string) SubjectFunc {
	missing := NoSubject("the request matches no route")
	return func(r *http.Request) (Subject, error) {
		route := pattern(r)
		if route == "" {
			return Subject{}, missing
		}
		return RawSubject("route:" + route), nil
	}
}

// Each limits by several things together, as each key on each route: all of them must be there.
func Each(functions ...SubjectFunc) SubjectFunc {
	return func(r *http.Request) (Subject, error) {
		subjects := make([]Subject, len(functions))
		for i, f := range functions {
			subject, err := f(r)
			if err != nil {
				return Subject{}, err
			}
			subjects[i] = subject
		}
		return JoinSubjects(subjects...), nil
	}
}

// FirstOf limits by the first thing that a request has, as the key or else the address. Only what is
// missing is passed over: a key that is malformed refuses the request.
func FirstOf(functions ...SubjectFunc) SubjectFunc {
	return func(r *http.Request) (Subject, error) {
		err := NoSubject("the request does not say whom to limit")
		for _, f := range functions {
			var subject Subject
			if subject, err = f(r); err == nil && !subject.IsZero() || err != nil && !isMissing(err) {
				return subject, err
			}
		}
		return Subject{}, err
	}
}

// MatchedPattern is the pattern with which the standard mux matched the request, "" before it did: the
// middleware stands inside the mux.
func MatchedPattern(r *http.Request) string { return r.Pattern }

// MuxPattern asks a standard mux which pattern a request will match, for a middleware that stands
// around it.
func MuxPattern(mux *http.ServeMux) func(*http.Request) string {
	return func(r *http.Request) string {
		if r.Pattern != "" {
			return r.Pattern
		}
		_, pattern := mux.Handler(r)
		return pattern
	}
}
