package composition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/edgelimit/edgelimit/app-bootstrap/internal/quiet"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// recorder is a meter provider and a tracer provider that write down what they are told.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) write(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func words(set []attribute.KeyValue) string {
	sorted := attribute.NewSet(set...)
	return sorted.Encoded(attribute.DefaultEncoder())
}

type meters struct {
	metricnoop.MeterProvider
	*recorder
}

func (m meters) Meter(string, ...metric.MeterOption) metric.Meter { return meter{recorder: m.recorder} }

type meter struct {
	metricnoop.Meter
	*recorder
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return count{recorder: m.recorder, name: name}, nil
}

func (m meter) Float64Histogram(name string, options ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return histogram{recorder: m.recorder, name: name, unit: metric.NewFloat64HistogramConfig(options...).Unit()}, nil
}

type count struct {
	metricnoop.Int64Counter
	*recorder
	name string
}

func (c count) Add(_ context.Context, n int64, options ...metric.AddOption) {
	set := metric.NewAddConfig(options).Attributes()
	c.write("%s +%d %s", c.name, n, words(set.ToSlice()))
}

type histogram struct {
	metricnoop.Float64Histogram
	*recorder
	name, unit string
}

func (h histogram) Record(_ context.Context, v float64, options ...metric.RecordOption) {
	set := metric.NewRecordConfig(options).Attributes()
	h.write("%s %s sane=%t %s", h.name, h.unit, v >= 0 && v < 5, words(set.ToSlice()))
}

type tracers struct {
	tracenoop.TracerProvider
	*recorder
}

func (p tracers) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return tracer{recorder: p.recorder}
}

type tracer struct {
	tracenoop.Tracer
	*recorder
}

func (p tracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, &span{recorder: p.recorder, name: name}
}

type span struct {
	tracenoop.Span
	*recorder
	name, status string
	set          []attribute.KeyValue
}

func (s *span) SetAttributes(set ...attribute.KeyValue) { s.set = append(s.set, set...) }
func (s *span) SetStatus(c codes.Code, text string)     { s.status = c.String() + " " + text }
func (s *span) End(...trace.SpanEndOption) {
	s.write("span %s [%s] %s", s.name, s.status, words(s.set))
}

// scripted answers what it is told.
type scripted struct {
	outcome ratelimit.Outcome
	err     error
}

func (s scripted) Evaluate(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return s.outcome, s.err
}

func TestInstrument(t *testing.T) {
	t.Parallel()
	decision := ratelimit.RateLimitDecision{Allowed: true, Certainty: ratelimit.CertaintyCertain}
	denial := ratelimit.RateLimitDecision{Certainty: ratelimit.CertaintyApproximateAlgorithm}
	for name, test := range map[string]struct {
		answer             scripted
		policy             ratelimit.PolicyID
		set, extra, status string
	}{
		"allowed":       {scripted{ratelimit.Evaluated{Decision: decision}, nil}, "p", "edgelimit.category=ALLOWED,edgelimit.outcome=EVALUATED,edgelimit.policy=p", "CERTAIN", ""},
		"denied":        {scripted{ratelimit.Evaluated{Decision: denial}, nil}, "p", "edgelimit.category=DENIED,edgelimit.outcome=EVALUATED,edgelimit.policy=p", "APPROXIMATE_ALGORITHM", ""},
		"unavailable":   {scripted{ratelimit.Unavailable{Category: ratelimit.UnavailablePool}, nil}, "p", "edgelimit.category=POOL,edgelimit.outcome=UNAVAILABLE,edgelimit.policy=p", "", "Error UNAVAILABLE POOL"},
		"indeterminate": {scripted{ratelimit.Indeterminate{}, nil}, "p", "edgelimit.category=,edgelimit.outcome=INDETERMINATE,edgelimit.policy=p", "", "Error INDETERMINATE "},
		"incompatible":  {scripted{ratelimit.Incompatible{Category: ratelimit.IncompatibleReply}, nil}, "p", "edgelimit.category=REPLY,edgelimit.outcome=INCOMPATIBLE,edgelimit.policy=p", "", "Error INCOMPATIBLE REPLY"},
		"invalid":       {scripted{nil, &ratelimit.InvalidRequestError{Fault: ratelimit.FaultUnknownPolicy}}, "made-up", "edgelimit.category=UNKNOWN_POLICY,edgelimit.outcome=INVALID_REQUEST,edgelimit.policy=unknown", "", "Error INVALID_REQUEST UNKNOWN_POLICY"},
		"nil":           {scripted{nil, nil}, "p", "edgelimit.category=,edgelimit.outcome=INVALID,edgelimit.policy=p", "", "Error INVALID "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{}
			var log bytes.Buffer
			port, err := Instrument(test.answer, configure(t, memoryText).Policies, Telemetry{
				Logger: slog.New(slog.NewTextHandler(&log, nil)), MeterProvider: meters{recorder: r}, TracerProvider: tracers{recorder: r},
			})
			if err != nil {
				t.Fatal(err)
			}
			subject, err := ratelimit.ParseSubjectDigest(strings.Repeat("ab", 32))
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := port.Evaluate(t.Context(), ratelimit.RateLimitRequest{PolicyID: test.policy, Subject: subject, Cost: 1})
			if outcome != test.answer.outcome || !errors.Is(err, test.answer.err) {
				t.Errorf("changed the answer to %+v, %v", outcome, err)
			}
			traced := test.set
			if test.extra != "" {
				traced = strings.Replace(test.set, ",edgelimit.outcome", ",edgelimit.certainty="+test.extra+",edgelimit.outcome", 1)
			}
			want := []string{
				"edgelimit.evaluations +1 " + test.set,
				"edgelimit.evaluation.duration s sane=true " + test.set,
				"span edgelimit.evaluate [" + test.status + "] " + traced,
			}
			if got := strings.Join(r.lines, "\n"); got != strings.Join(want, "\n") {
				t.Errorf("told\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
			if logged := log.Len() > 0; logged != (test.status != "") {
				t.Errorf("logged %q", &log)
			}
			if strings.Contains(log.String()+strings.Join(r.lines, ""), "abab") {
				t.Error("a subject was told")
			}
		})
	}
}

func TestNothingIsToldWithoutTelemetry(t *testing.T) {
	t.Parallel()
	inner := scripted{ratelimit.Indeterminate{}, nil}
	port, err := Instrument(inner, configure(t, memoryText).Policies, Telemetry{})
	if err != nil || port != ratelimit.EdgeRateLimitPort(inner) {
		t.Errorf("got %v, %v", port, err)
	}
}

func TestRepeatedFailuresAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1000, 0)
	f := newFailureLog(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	note := func(policy, category string) {
		f.note(t.Context(), policy, seen{outcome: "UNAVAILABLE", category: category})
	}
	for range 1000 {
		note("p", "POOL")
	}
	note("p", "QUEUE")
	note("q", "POOL")
	now = now.Add(quiet.For - 1)
	note("p", "POOL")
	now = now.Add(1)
	note("p", "POOL")
	note("p", "POOL")
	want := []string{
		"policy=p outcome=UNAVAILABLE category=POOL suppressed=0",
		"policy=p outcome=UNAVAILABLE category=QUEUE suppressed=0",
		"policy=q outcome=UNAVAILABLE category=POOL suppressed=0",
		"policy=p outcome=UNAVAILABLE category=POOL suppressed=1000",
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("logged\n%s", &log)
	}
	for i := range want {
		if !strings.HasSuffix(lines[i], want[i]) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want[i])
		}
	}
}
