package composition

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quietFor is how long a failure of the same policy and kind is not logged again.
const quietFor = 10 * time.Second

// failureLog logs failures, of each policy and kind at most one per quietFor. A store that is down
// fails every evaluation, and the log must not be what falls next. Policies and kinds are closed
// sets, so it does not grow.
type failureLog struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	last map[failureKey]*quiet
}

type failureKey struct {
	policy, outcome, category string
}

type quiet struct {
	since      time.Time
	suppressed int64
}

func newFailureLog(log *slog.Logger, now func() time.Time) *failureLog {
	return &failureLog{log: log, now: now, last: make(map[failureKey]*quiet)}
}

func (f *failureLog) note(ctx context.Context, policy string, s seen) {
	suppressed, say := f.admit(failureKey{policy, s.outcome, s.category})
	if !say {
		return
	}
	f.log.LogAttrs(ctx, slog.LevelWarn, "edgelimit: an evaluation came to no decision",
		slog.String("policy", policy), slog.String("outcome", s.outcome), slog.String("category", s.category),
		slog.Int64("suppressed", suppressed))
}

// admit reports whether to log now, and how many were not logged since the last time.
func (f *failureLog) admit(key failureKey) (int64, bool) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.last[key]
	if q == nil {
		f.last[key] = &quiet{since: now}
		return 0, true
	}
	if now.Sub(q.since) < quietFor {
		q.suppressed++
		return 0, false
	}
	suppressed := q.suppressed
	q.since, q.suppressed = now, 0
	return suppressed, true
}
