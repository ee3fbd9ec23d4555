package caching

import (
	"log/slog"
	"time"

	"github.com/edgelimit/edgelimit/app-bootstrap/internal/quiet"
	"github.com/edgelimit/edgelimit/shared-contract/cache/failopen"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// failureLog logs failures that callers do not see, of each operation and code at most one in a while.
// Both are closed sets, so it does not grow.
type failureLog struct {
	log      *slog.Logger
	throttle *quiet.Throttle[failureKey]
}

type failureKey struct {
	operation failopen.Operation
	code      store.Code
}

func newFailureLog(log *slog.Logger, now func() time.Time) *failureLog {
	return &failureLog{log: log, throttle: quiet.New[failureKey](now)}
}

func (f *failureLog) note(failure failopen.Failure) {
	suppressed, say := f.throttle.Admit(failureKey{failure.Operation, failure.Code})
	if !say {
		return
	}
	f.log.Warn("edgelimit: the cache is unavailable, and is taken as empty",
		"operation", failure.Operation.String(), "certainty", failure.Certainty.String(), "code", failure.Code.String(),
		"suppressed", suppressed)
}
