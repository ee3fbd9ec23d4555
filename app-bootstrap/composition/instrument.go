package composition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Telemetry is where a limiter tells what it does. Each may be nil, and then that is not told.
type Telemetry struct {
	Logger         *slog.Logger
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

// scope names the instrumentation.
const scope = "github.com/edgelimit/edgelimit"

// The attributes of spans and metrics. None ever holds a subject, and none a word that a caller can
// make up: the policy of a request that names none of ours is "unknown".
const (
	attributePolicy    = attribute.Key("edgelimit.policy")
	attributeOutcome   = attribute.Key("edgelimit.outcome")
	attributeCategory  = attribute.Key("edgelimit.category")
	attributeCertainty = attribute.Key("edgelimit.certainty")
)

const unknownPolicy = "unknown"

// bounds are those of the duration's histogram, in seconds: memory takes microseconds, Redis tenths
// of a millisecond, and the greatest command timeout is 10 s.
var bounds = []float64{0.00001, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 10}

// instruments are what tells of evaluations, shared by the ports of all policies that a limiter decides
// by. A nil one tells nothing.
type instruments struct {
	tracer   trace.Tracer // nil where there is none; so are the three below
	count    metric.Int64Counter
	duration metric.Float64Histogram
	failures *failureLog
	labels   labels
}

// instrumented tells of every evaluation of a port.
type instrumented struct {
	*instruments
	port     ratelimit.EdgeRateLimitPort
	policies map[ratelimit.PolicyID]string // by what telemetry calls them
}

// newInstruments gives nil where telemetry has nothing.
func newInstruments(telemetry Telemetry) (*instruments, error) {
	if telemetry.Logger == nil && telemetry.MeterProvider == nil && telemetry.TracerProvider == nil {
		return nil, nil
	}
	i := &instruments{labels: labels{most: mostLabels}}
	if telemetry.Logger != nil {
		i.failures = newFailureLog(telemetry.Logger, time.Now)
	}
	if telemetry.TracerProvider != nil {
		i.tracer = telemetry.TracerProvider.Tracer(scope)
	}
	if telemetry.MeterProvider != nil {
		meter := telemetry.MeterProvider.Meter(scope)
		var countErr, durationErr error
		i.count, countErr = meter.Int64Counter("edgelimit.evaluations",
			metric.WithUnit("{evaluation}"), metric.WithDescription("Evaluations by what they came to."))
		i.duration, durationErr = meter.Float64Histogram("edgelimit.evaluation.duration",
			metric.WithUnit("s"), metric.WithDescription("Time that an evaluation took."), metric.WithExplicitBucketBoundaries(bounds...))
		if err := errors.Join(countErr, durationErr); err != nil {
			return nil, fmt.Errorf("composition: instruments: %w", err)
		}
	}
	return i, nil
}

// around tells of a port's evaluations.
func (i *instruments) around(port ratelimit.EdgeRateLimitPort, policies *ratelimit.PolicySet) ratelimit.EdgeRateLimitPort {
	if i == nil {
		return port
	}
	return &instrumented{instruments: i, port: port, policies: i.labels.of(policies)}
}

// Instrument puts a span, a counter, a histogram and a log of failures around a port, as far as
// telemetry has them. It changes no outcome and no error.
func Instrument(port ratelimit.EdgeRateLimitPort, policies *ratelimit.PolicySet, telemetry Telemetry) (ratelimit.EdgeRateLimitPort, error) {
	i, err := newInstruments(telemetry)
	if err != nil {
		return nil, err
	}
	return i.around(port, policies), nil
}

// Evaluate asks the port and tells what it came to.
func (i *instrumented) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	var span trace.Span
	if i.tracer != nil {
		ctx, span = i.tracer.Start(ctx, "edgelimit.evaluate")
		defer span.End()
	}
	began := time.Now()
	outcome, err := i.port.Evaluate(ctx, request)
	took := time.Since(began)

	policy, known := i.policies[request.PolicyID]
	if !known {
		policy = unknownPolicy
	}
	v := view(outcome, err)
	set := attribute.NewSet(attributePolicy.String(policy), attributeOutcome.String(v.outcome), attributeCategory.String(v.category))
	if i.count != nil {
		i.count.Add(ctx, 1, metric.WithAttributeSet(set))
		i.duration.Record(ctx, took.Seconds(), metric.WithAttributeSet(set))
	}
	if span != nil {
		span.SetAttributes(set.ToSlice()...)
		if v.certainty != "" {
			span.SetAttributes(attributeCertainty.String(v.certainty))
		}
		if v.failed {
			span.SetStatus(codes.Error, v.outcome+" "+v.category)
		}
	}
	if v.failed && i.failures != nil {
		i.failures.note(ctx, policy, v)
	}
	return outcome, err
}

// seen is what an evaluation came to, in words of closed sets.
type seen struct {
	outcome   string
	category  string // "" where the outcome has none
	certainty string // of a decision
	failed    bool   // nothing was decided; a denial is a decision
}

func view(outcome ratelimit.Outcome, err error) seen {
	if err != nil {
		s := seen{outcome: "INVALID_REQUEST", failed: true}
		var invalid *ratelimit.InvalidRequestError
		if errors.As(err, &invalid) {
			s.category = invalid.Fault.String()
		}
		return s
	}
	switch o := outcome.(type) {
	case ratelimit.Evaluated:
		s := seen{outcome: "EVALUATED", category: "DENIED", certainty: o.Decision.Certainty.String()}
		if ratelimit.Allows(o) {
			s.category = "ALLOWED"
		}
		return s
	case ratelimit.Unavailable:
		return seen{outcome: "UNAVAILABLE", category: o.Category.String(), failed: true}
	case ratelimit.Indeterminate:
		return seen{outcome: "INDETERMINATE", failed: true}
	case ratelimit.Incompatible:
		return seen{outcome: "INCOMPATIBLE", category: o.Category.String(), failed: true}
	}
	return seen{outcome: "INVALID", failed: true}
}
