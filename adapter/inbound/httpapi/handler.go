package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// The paths of the API.
const (
	PathEvaluate = "/v1/rate-limit/evaluate"
	PathPolicies = "/v1/policies"
	PathLive     = "/livez"
	PathReady    = "/readyz"
)

// Config is what the API is made of. Every field is required, but where it says so.
type Config struct {
	Limiter  ratelimit.EdgeRateLimitPort
	Policies *ratelimit.PolicySet
	// DefaultPolicy is what an evaluation without a policyId uses. It must be one of Policies.
	DefaultPolicy ratelimit.PolicyID
	// Digester turns the raw subjects of requests into digests.
	Digester *ratelimit.SubjectDigester
	// Ready gives nil while evaluations can be decided, and otherwise the reason, which is shown to
	// whoever asks /readyz and so must hold no secret.
	Ready func() error
	// Logger gets what the API has to say. Nil discards it.
	Logger *slog.Logger
	// MaxBodyBytes bounds a request body, 1 or more.
	MaxBodyBytes int64
	// DefaultDeadline is how long an evaluation may take that names no deadlineMillis: whole
	// milliseconds, 1 ms..MaxDeadline.
	DefaultDeadline time.Duration
	// MaxDeadline is the greatest deadlineMillis: whole milliseconds, 1 ms or more.
	MaxDeadline time.Duration
}

type api struct {
	Config
	policies []byte // the answer of PathPolicies, which never changes
}

// New makes the handler, or says everything that is wrong with its configuration.
func New(config Config) (http.Handler, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	policies, err := encode(Policies(config.Policies, config.DefaultPolicy))
	if err != nil {
		return nil, fmt.Errorf("httpapi: policies: %w", err)
	}
	a := &api{Config: config, policies: policies}
	return a.guard(http.HandlerFunc(a.route)), nil
}

func (c Config) check() error {
	var faults []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("httpapi: "+format, args...))
		}
	}
	require(c.Limiter != nil, "Limiter is missing")
	require(c.Digester != nil, "Digester is missing")
	require(c.Ready != nil, "Ready is missing")
	require(c.Policies != nil, "Policies are missing")
	require(c.Policies == nil || c.Policies.Get(c.DefaultPolicy) != nil, "DefaultPolicy %q is not one of the policies", c.DefaultPolicy)
	require(c.MaxBodyBytes >= 1, "MaxBodyBytes is %d, want 1 or more", c.MaxBodyBytes)
	require(c.MaxDeadline >= time.Millisecond && c.MaxDeadline%time.Millisecond == 0,
		"MaxDeadline is %v, want whole milliseconds, 1ms or more", c.MaxDeadline)
	require(c.DefaultDeadline >= time.Millisecond && c.DefaultDeadline%time.Millisecond == 0 && c.DefaultDeadline <= c.MaxDeadline,
		"DefaultDeadline is %v, want whole milliseconds, 1ms..%v", c.DefaultDeadline, c.MaxDeadline)
	return errors.Join(faults...)
}

// route finds the handler by the exact path. A ServeMux would answer 405 in plain text, and redirect
// paths that it would rather see cleaned.
func (a *api) route(w http.ResponseWriter, r *http.Request) {
	var handle http.HandlerFunc
	allow := "GET, HEAD"
	switch r.URL.Path {
	case PathEvaluate:
		handle, allow = a.evaluate, "POST"
	case PathPolicies:
		handle = a.listPolicies
	case PathLive:
		handle = a.live
	case PathReady:
		handle = a.ready
	default:
		writeProblem(w, problem{Status: http.StatusNotFound, Code: codeUnknownPath, Detail: "no such path"})
		return
	}
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	if posting := r.Method == http.MethodPost; allow == "POST" && !posting || allow != "POST" && !reading {
		w.Header().Set("Allow", allow)
		writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Code: codeMethod, Detail: "this path takes " + allow})
		return
	}
	handle(w, r)
}
