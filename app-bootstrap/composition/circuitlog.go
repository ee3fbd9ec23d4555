package composition

import (
	"log/slog"
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/app-bootstrap/internal/quiet"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

// circuitLog tells of the circuit around the store, of an opening at most once in a while. Where it told
// of one it tells of its end, too; and a circuit that stays open is told of with one of its probes, so
// the last line is never wrong for longer than that while.
type circuitLog struct {
	log      *slog.Logger
	throttle *quiet.Throttle[breaker.State]

	mu         sync.Mutex
	told       bool // that it is open
	suppressed int64
}

func newCircuitLog(log *slog.Logger, now func() time.Time) *circuitLog {
	return &circuitLog{log: log, throttle: quiet.New[breaker.State](now)}
}

func (c *circuitLog) note(change cacheredis.CircuitChange) {
	suppressed, say := c.judge(change)
	switch {
	case !say:
	case change.State == breaker.StateOpen:
		c.log.Warn("edgelimit: circuit opened", "since", change.Since, "suppressed", suppressed)
	default:
		c.log.Info("edgelimit: circuit closed", "after", change.Since)
	}
}

// judge reports whether to tell of a change, and how many openings were not told of before it.
func (c *circuitLog) judge(change cacheredis.CircuitChange) (suppressed int64, say bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change.State != breaker.StateOpen {
		say, c.told = c.told, false
		return 0, say
	}
	if c.told {
		return 0, false
	}
	if _, c.told = c.throttle.Admit(change.State); !c.told {
		if change.Since == 0 {
			c.suppressed++
		}
		return 0, false
	}
	suppressed, c.suppressed = c.suppressed, 0
	if change.Since != 0 && suppressed > 0 {
		suppressed-- // the opening that is told of now
	}
	return suppressed, true
}
