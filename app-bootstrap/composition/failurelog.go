package composition

import (
	"context"
	"log/slog"
	"time"

	"github.com/edgelimit/edgelimit/app-bootstrap/internal/quiet"
)

// failureLog logs failures, of each policy and kind at most one in a while. Policies and kinds are closed
// sets, so it does not grow.
type failureLog struct {
	log      *slog.Logger
	throttle *quiet.Throttle[failureKey]
}

type failureKey struct {
	policy, outcome, category string
}

func newFailureLog(log *slog.Logger, now func() time.Time) *failureLog {
	return &failureLog{log: log, throttle: quiet.New[failureKey](now)}
}

func (f *failureLog) note(ctx context.Context, policy string, s seen) {
	suppressed, say := f.throttle.Admit(failureKey{policy, s.outcome, s.category})
	if !say {
		return
	}
	f.log.LogAttrs(ctx, slog.LevelWarn, "edgelimit: an evaluation came to no decision",
		slog.String("policy", policy), slog.String("outcome", s.outcome), slog.String("category", s.category),
		slog.Int64("suppressed", suppressed))
}
