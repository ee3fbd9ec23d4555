package caching

import (
	"log/slog"
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache/failopen"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// quietFor is how long a failure of the same operation and code is not logged again.
const quietFor = 10 * time.Second

// failureLog logs failures that callers do not see, of each operation and code at most one per
// quietFor. Both are closed sets, so it does not grow.
type failureLog struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	last map[failureKey]*quiet
}

type failureKey struct {
	operation failopen.Operation
	code      store.Code
}

type quiet struct {
	since      time.Time
	suppressed int64
}

func newFailureLog(log *slog.Logger, now func() time.Time) *failureLog {
	return &failureLog{log: log, now: now, last: make(map[failureKey]*quiet)}
}

func (f *failureLog) note(failure failopen.Failure) {
	suppressed, say := f.admit(failureKey{failure.Operation, failure.Code})
	if !say {
		return
	}
	f.log.Warn("edgelimit: the cache is unavailable, and is taken as empty",
		"operation", failure.Operation.String(), "certainty", failure.Certainty.String(), "code", failure.Code.String(),
		"suppressed", suppressed)
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
