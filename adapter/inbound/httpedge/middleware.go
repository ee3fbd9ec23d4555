package httpedge

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/internal/edge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Mode says whether a verdict counts.
type Mode uint8

// The modes. The zero value is invalid.
const (
	ModeInvalid Mode = iota
	// ModeEnforce lets pass what is allowed.
	ModeEnforce
	// ModeShadow asks, spends and reports, and lets everything pass: to see what a limit would do. The
	// answer has ShadowHeader in the place of all other fields.
	ModeShadow
)

// Config is what a middleware is made of. Every field is required, but where it says so.
type Config struct {
	Limiter ratelimit.EdgeRateLimitPort
	// Policies are those of the limiter: the header fields tell of them.
	Policies *ratelimit.PolicySet
	// Digester turns subjects into digests.
	Digester *ratelimit.SubjectDigester
	Policy   PolicyFunc
	Subject  SubjectFunc
	// Cost is what a request costs, in units of its policy's limit. Nil is 1.
	Cost func(*http.Request) int64
	// Skip lets requests pass unasked and uncounted, such as probes. Nil skips none.
	Skip func(*http.Request) bool
	// Deadline is how long a decision is waited for: whole milliseconds, 1 ms..10 min, above what one
	// command to the store may take.
	Deadline time.Duration
	// Headers are the styles of header fields. None gives no fields but Retry-After.
	Headers []HeaderStyle
	// DenyStatus is what a denial is answered with: 429 or 403. Zero is 429.
	DenyStatus int
	Mode       Mode
	// Observe is told of every question, before the request goes on. Nil tells nobody.
	Observe func(*http.Request, Report)
}

// NewMiddleware makes a middleware, or says everything that is wrong with its configuration.
func NewMiddleware(config Config) (func(http.Handler) http.Handler, error) {
	asker := edge.Asker{Limiter: config.Limiter, Policies: config.Policies, Digester: config.Digester, Deadline: config.Deadline}
	faults := asker.Check()
	if config.Policy == nil {
		faults = append(faults, errors.New("field Policy is missing"))
	}
	if config.Subject == nil {
		faults = append(faults, errors.New("field Subject is missing"))
	}
	if config.Mode != ModeEnforce && config.Mode != ModeShadow {
		faults = append(faults, errors.New("field Mode is neither ModeEnforce nor ModeShadow"))
	}
	if config.DenyStatus == 0 {
		config.DenyStatus = http.StatusTooManyRequests
	}
	faults = append(faults, checkDenyStatus(config.DenyStatus))
	var fields *edge.Fields
	if config.Policies != nil {
		var err error
		fields, err = edge.NewFields(config.Policies, config.Headers)
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("httpedge: %w", err)
	}
	d := &door{asker: asker, config: config, fields: fields, answers: newAnswers(config.DenyStatus)}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, next) })
	}, nil
}

// door stands in front of handlers.
type door struct {
	asker   edge.Asker
	config  Config
	fields  *edge.Fields
	answers answers
}

func (d *door) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if d.config.Skip != nil && d.config.Skip(r) {
		next.ServeHTTP(w, r)
		return
	}
	cost := int64(1)
	if d.config.Cost != nil {
		cost = d.config.Cost(r)
	}
	subject, err := d.config.Subject(r)
	report := d.asker.Ask(r.Context(), d.config.Policy(r), subject, err, cost)
	report.Shadow = d.config.Mode == ModeShadow
	if d.config.Observe != nil {
		d.config.Observe(r, report)
	}
	var scratch [edge.MaxFields]edge.Field
	setFields(w.Header(), d.fields.Append(scratch[:0], report, time.Now()))
	if report.Passes() {
		next.ServeHTTP(w, r)
		return
	}
	d.answers.write(w, report)
}
