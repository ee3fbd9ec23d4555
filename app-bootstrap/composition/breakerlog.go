package composition

import (
	"context"
	"log/slog"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

// toldBreaker tells of what people have to know about breakers: that one changed its state, and that
// one could not be asked, since then calls are made as if there were none. It changes no outcome.
type toldBreaker struct {
	port     breaker.CircuitBreakerPort
	log      *slog.Logger
	failures *failureLog
}

func tellBreaker(port breaker.CircuitBreakerPort, log *slog.Logger) breaker.CircuitBreakerPort {
	return &toldBreaker{port: port, log: log, failures: newFailureLog(log, time.Now)}
}

// Acquire asks the port.
func (b *toldBreaker) Acquire(ctx context.Context, request breaker.AcquireRequest) (breaker.AcquireOutcome, error) {
	outcome, err := b.port.Acquire(ctx, request)
	if failure, ok := outcome.(breaker.Failure); ok {
		b.failed(ctx, "acquire", failure)
	}
	return outcome, err
}

// Record tells the port.
func (b *toldBreaker) Record(ctx context.Context, request breaker.RecordRequest) (breaker.RecordOutcome, error) {
	outcome, err := b.port.Record(ctx, request)
	switch o := outcome.(type) {
	case breaker.Recorded:
		if o.Before != o.After {
			b.log.LogAttrs(ctx, slog.LevelWarn, "edgelimit: a circuit breaker changed its state",
				slog.String("policy", string(o.PolicyID)), slog.String("before", o.Before.String()), slog.String("after", o.After.String()))
		}
	case breaker.Unavailable:
		b.failed(ctx, "record", o)
	case breaker.Indeterminate:
		b.failed(ctx, "record", o)
	case breaker.Incompatible:
		b.failed(ctx, "record", o)
	}
	return outcome, err
}

// Read asks the port.
func (b *toldBreaker) Read(ctx context.Context, request breaker.ReadRequest) (breaker.ReadOutcome, error) {
	outcome, err := b.port.Read(ctx, request)
	if failure, ok := outcome.(breaker.Failure); ok {
		b.failed(ctx, "read", failure)
	}
	return outcome, err
}

// failed logs a failure, of each policy, operation and kind at most one in a while.
func (b *toldBreaker) failed(ctx context.Context, operation string, failure breaker.Failure) {
	policy, outcome, category := breaker.PolicyID(""), "", ""
	switch o := failure.(type) {
	case breaker.Unavailable:
		policy, outcome, category = o.PolicyID, "unavailable", o.Category.String()
	case breaker.Indeterminate:
		policy, outcome = o.PolicyID, "indeterminate"
	case breaker.Incompatible:
		policy, outcome, category = o.PolicyID, "incompatible", o.Category.String()
	}
	suppressed, say := b.failures.throttle.Admit(failureKey{string(policy), operation + " " + outcome, category})
	if !say {
		return
	}
	b.log.LogAttrs(ctx, slog.LevelWarn, "edgelimit: a circuit breaker could not be asked; calls are made without it",
		slog.String("policy", string(policy)), slog.String("operation", operation), slog.String("outcome", outcome),
		slog.String("category", category), slog.Int64("suppressed", suppressed))
}
