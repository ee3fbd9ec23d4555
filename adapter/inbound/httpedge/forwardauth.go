package httpedge

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/internal/edge"
	"github.com/edgelimit/edgelimit/adapter/inbound/internal/problem"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// PathCheck is where forward-auth answers. Below it, as at /v1/check/orders/7, it answers too, for
// proxies that append the path of the request; there the query is the client's and is not read.
const PathCheck = "/v1/check"

// IsCheck reports whether a path is that of forward-auth.
func IsCheck(path string) bool {
	rest, ok := strings.CutPrefix(path, PathCheck)
	return ok && (rest == "" || rest[0] == '/')
}

// ForwardAuthConfig is what forward-auth is made of. Every field is required, but where it says so.
type ForwardAuthConfig struct {
	Limiter  ratelimit.EdgeRateLimitPort
	Policies *ratelimit.PolicySet
	Digester *ratelimit.SubjectDigester
	// DefaultPolicy is that of a check that names none. It must be one of Policies.
	DefaultPolicy ratelimit.PolicyID
	// Deadline is how long a decision is waited for: whole milliseconds, 1 ms..10 min.
	Deadline time.Duration
	// Headers are the styles of header fields. None gives no fields but Retry-After.
	Headers []HeaderStyle
	// DenyStatus is what a denial is answered with where the check names none: 429, or 403 for nginx,
	// whose auth_request passes nothing else on.
	DenyStatus int
	Mode       Mode
	// Address finds the client's address, which limits a check that names no subject. The peer is the
	// proxy and never the client, so a peer that is not trusted has no subject.
	Address AddressConfig
	// Names are the headers from which policy, subject and cost are read.
	Names HeaderNames
	// Observe is told of every question. Nil tells nobody.
	Observe func(*http.Request, Report)
	// Logger gets what went wrong inside. Nil discards it.
	Logger *slog.Logger
}

// HeaderNames are the headers that a proxy sets for a check; an empty name is not read. Proxies pass
// the headers of a client on unless they are told otherwise: a header that is named here must be set
// or removed by the proxy for every check, or each client chooses its own policy and quota.
type HeaderNames struct {
	Policy        string
	Subject       string
	SubjectDigest string
	Cost          string
}

func (n HeaderNames) check() error {
	var faults []error
	seen := make(map[string]bool)
	for _, h := range []struct{ field, name string }{
		{"Policy", n.Policy}, {"Subject", n.Subject}, {"SubjectDigest", n.SubjectDigest}, {"Cost", n.Cost},
	} {
		canonical := http.CanonicalHeaderKey(h.name)
		switch {
		case h.name == "":
		case !IsHeaderName(h.name):
			faults = append(faults, fmt.Errorf("field Names.%s is not the name of a header", h.field))
		case seen[canonical]:
			faults = append(faults, fmt.Errorf("field Names.%s is %s, which another field has too", h.field, canonical))
		}
		seen[canonical] = h.name != ""
	}
	return errors.Join(faults...)
}

// NewForwardAuth makes the handler, or says everything that is wrong with its configuration. It reads
// no body and takes every method, since some proxies ask with the method of the request.
func NewForwardAuth(config ForwardAuthConfig) (http.Handler, error) {
	asker := edge.Asker{Limiter: config.Limiter, Policies: config.Policies, Digester: config.Digester, Deadline: config.Deadline}
	faults := asker.Check()
	if config.Mode != ModeEnforce && config.Mode != ModeShadow {
		faults = append(faults, errors.New("field Mode is neither ModeEnforce nor ModeShadow"))
	}
	faults = append(faults, checkDenyStatus(config.DenyStatus), config.Names.check())
	if err := config.Address.Check(); err != nil {
		faults = append(faults, fmt.Errorf("field Address: %w", err))
	}
	var fields *edge.Fields
	if config.Policies != nil {
		var err error
		fields, err = edge.NewFields(config.Policies, config.Headers)
		faults = append(faults, err)
		if config.Policies.Get(config.DefaultPolicy) == nil {
			faults = append(faults, fmt.Errorf("field DefaultPolicy %q is not one of the policies", config.DefaultPolicy))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("httpedge: %w", err)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	for _, name := range []*string{&config.Names.Policy, &config.Names.Subject, &config.Names.SubjectDigest, &config.Names.Cost} {
		*name = http.CanonicalHeaderKey(*name)
	}
	return &forwardAuth{
		asker: asker, config: config, fields: fields, addressHeader: config.Address.Header.Canonical(),
		answers: map[int]answers{
			http.StatusTooManyRequests: newAnswers(http.StatusTooManyRequests),
			http.StatusForbidden:       newAnswers(http.StatusForbidden),
		},
	}, nil
}

// forwardAuth answers checks.
type forwardAuth struct {
	asker         edge.Asker
	config        ForwardAuthConfig
	fields        *edge.Fields
	addressHeader string
	answers       map[int]answers // by the status of a denial
}

func (f *forwardAuth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			f.broken(w, p)
		}
	}()
	c, bad := f.read(r)
	if bad != nil {
		problem.Write(w, *bad)
		return
	}
	subject, err := f.subject(r, c)
	report := f.asker.Ask(r.Context(), c.policy, subject, err, c.cost)
	report.Shadow = f.config.Mode == ModeShadow
	if f.config.Observe != nil {
		f.config.Observe(r, report)
	}
	if report.Verdict == VerdictRefused {
		f.config.Logger.DebugContext(r.Context(), "check refused", slog.String("refusal", report.Refusal.String()))
	}
	var scratch [edge.MaxFields]edge.Field
	setFields(w.Header(), f.fields.Append(scratch[:0], report, time.Now()))
	if report.Passes() {
		w.Header()["Cache-Control"] = noStore
		w.Header()["Content-Length"] = empty
		w.WriteHeader(http.StatusOK)
		return
	}
	f.answers[c.denyStatus].write(w, report)
}

// Header values that never change.
var (
	noStore = []string{"no-store"}
	empty   = []string{"0"}
)

// subject is what the check names, or the client's address where it names nobody.
func (f *forwardAuth) subject(r *http.Request, c check) (Subject, error) {
	if !c.subject.IsZero() {
		return c.subject, nil
	}
	subject, believed, err := f.config.Address.Subject(r.RemoteAddr, r.Header[f.addressHeader])
	if err == nil && !believed {
		return Subject{}, NoSubject("the check names no subject, and its peer is no trusted proxy that could tell the client's address")
	}
	return subject, err
}

// broken turns a panic into a 500: a door whose limiter breaks stays closed. The log line has the
// panic's type, and its text only where the runtime wrote it.
func (f *forwardAuth) broken(w http.ResponseWriter, p any) {
	attributes := []any{slog.String("panic", fmt.Sprintf("%T", p))}
	if fault, ok := p.(runtime.Error); ok {
		attributes = append(attributes, slog.String("error", fault.Error()))
	}
	f.config.Logger.Error("panic while checking", attributes...)
	problem.Write(w, problem.Problem{Status: http.StatusInternalServerError, Code: RefusalInternal.String(), Detail: "the service failed while it checked this request"})
}
