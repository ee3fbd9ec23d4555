package property

import (
	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// admission is a cost that was admitted at an effective time.
type admission struct {
	at, cost int64
}

// decider is one algorithm with its state.
type decider interface {
	decide(now, cost int64) algorithm.Decision
	// fork copies the state; its decisions leave the original alone.
	fork() decider
	// fresh has the same parameters and no state.
	fresh() decider
	// facts are the last observed moment, the expiry and the validity of the state.
	facts() (last, expiresAt int64, valid bool)
}

type arithmetic[S any] interface {
	Decide(s S, serverNow, cost int64) (algorithm.Decision, S)
	Valid(s S) bool
}

type machine[S any] struct {
	arithmetic arithmetic[S]
	state      S
	moments    func(S) (last, expiresAt int64)
}

func (m *machine[S]) decide(now, cost int64) algorithm.Decision {
	var d algorithm.Decision
	d, m.state = m.arithmetic.Decide(m.state, now, cost)
	return d
}

func (m *machine[S]) fork() decider {
	other := *m
	return &other
}

func (m *machine[S]) fresh() decider {
	return &machine[S]{arithmetic: m.arithmetic, moments: m.moments}
}

func (m *machine[S]) facts() (int64, int64, bool) {
	last, expiresAt := m.moments(m.state)
	return last, expiresAt, m.arithmetic.Valid(m.state)
}

func fixedWindow(p algorithm.FixedWindow) decider {
	return &machine[algorithm.FixedWindowState]{arithmetic: p, moments: func(s algorithm.FixedWindowState) (int64, int64) {
		return s.LastObserved, s.ExpiresAt
	}}
}

func slidingCounter(p algorithm.SlidingCounter) decider {
	return &machine[algorithm.SlidingCounterState]{arithmetic: p, moments: func(s algorithm.SlidingCounterState) (int64, int64) {
		return s.LastObserved, s.ExpiresAt
	}}
}

func tokenBucket(p algorithm.TokenBucket) decider {
	return &machine[algorithm.TokenBucketState]{arithmetic: p, moments: func(s algorithm.TokenBucketState) (int64, int64) {
		return s.LastRefill, s.ExpiresAt
	}}
}

func gcra(p algorithm.GCRA) decider {
	return &machine[algorithm.GCRAState]{arithmetic: p, moments: func(s algorithm.GCRAState) (int64, int64) {
		return s.LastObserved, s.ExpiresAt
	}}
}

func slidingLog(p algorithm.SlidingLog) decider {
	return &machine[algorithm.SlidingLogState]{arithmetic: p, moments: func(s algorithm.SlidingLogState) (int64, int64) {
		return s.LastObserved, s.ExpiresAt
	}}
}

func genClock(t *rapid.T) algorithm.Clock {
	regression := rapid.Int64Range(0, 200).Draw(t, "regression")
	return algorithm.Clock{MaxRegressionMillis: regression, GraceMillis: regression + rapid.Int64Range(0, 500).Draw(t, "grace")}
}

// genWindow draws lengths from a millisecond to the longest, the small ones most often.
func genWindow(t *rapid.T, label string) int64 {
	return rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Range(1, 5000), rapid.Int64Range(1, algorithm.MaxHorizonMillis)).Draw(t, label)
}

func genFixedWindow(t *rapid.T) algorithm.FixedWindow {
	return algorithm.FixedWindow{
		Limit:        rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, algorithm.MaxExact)).Draw(t, "limit"),
		WindowMillis: genWindow(t, "window"), Clock: genClock(t),
	}
}

func genSlidingCounter(t *rapid.T) algorithm.SlidingCounter {
	return algorithm.SlidingCounter{
		Limit:        rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, algorithm.MaxSlidingCounterLimit)).Draw(t, "limit"),
		WindowMillis: genWindow(t, "window"), Clock: genClock(t),
	}
}

// genTokenBucket draws buckets that Check accepts.
func genTokenBucket(t *rapid.T) algorithm.TokenBucket {
	return rapid.Custom(func(t *rapid.T) algorithm.TokenBucket {
		return algorithm.TokenBucket{
			Capacity:           rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1<<40)).Draw(t, "capacity"),
			RefillTokens:       rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1<<30)).Draw(t, "refill tokens"),
			RefillPeriodMillis: genWindow(t, "refill period"),
			Clock:              genClock(t),
		}
	}).Filter(func(p algorithm.TokenBucket) bool { return p.Check() == nil }).Draw(t, "bucket")
}

// genGCRA draws parameters that Check accepts.
func genGCRA(t *rapid.T) algorithm.GCRA {
	return rapid.Custom(func(t *rapid.T) algorithm.GCRA {
		return algorithm.GCRA{
			Limit:        rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1<<30)).Draw(t, "limit"),
			PeriodMillis: genWindow(t, "period"),
			Burst:        rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1<<40)).Draw(t, "burst"),
			Clock:        genClock(t),
		}
	}).Filter(func(p algorithm.GCRA) bool { return p.Check() == nil }).Draw(t, "gcra")
}

func genSlidingLog(t *rapid.T) algorithm.SlidingLog {
	return algorithm.SlidingLog{
		Limit:        rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, algorithm.MaxSlidingLogLimit)).Draw(t, "limit"),
		WindowMillis: genWindow(t, "window"), Clock: genClock(t),
	}
}

// genStart leaves room for the traffic of a test on both sides.
func genStart(t *rapid.T) int64 {
	return rapid.Int64Range(1_000_000, algorithm.MaxNowMillis/4).Draw(t, "start")
}

// genStep moves the clock: mostly forward by a part of span, sometimes not at all, over whole spans,
// or back.
func genStep(t *rapid.T, span, back int64) int64 {
	return rapid.OneOf(
		rapid.Int64Range(0, max(span/6, 1)), rapid.Int64Range(0, 1), rapid.Int64Range(0, 3*span), rapid.Int64Range(-back, 0),
	).Draw(t, "step")
}

// genCost draws small costs, costs near the limit, and any.
func genCost(t *rapid.T, limit int64) int64 {
	return rapid.OneOf(rapid.Int64Range(1, min(limit, 3)), rapid.Int64Range(max(limit-2, 1), limit), rapid.Int64Range(1, limit)).Draw(t, "cost")
}

// drive sends generated traffic and gives what was admitted, by effective time. The clock stays below
// the latest reading that is accepted.
func drive(t *rapid.T, d decider, limit, span, back int64) []admission {
	now := genStart(t)
	var admitted []admission
	for range rapid.IntRange(1, 60).Draw(t, "calls") {
		now = min(max(now+genStep(t, span, back), 0), algorithm.MaxNowMillis)
		cost := genCost(t, limit)
		if got := d.decide(now, cost); got.Status == algorithm.StatusAllowed {
			admitted = append(admitted, admission{got.EffectiveNowMillis, cost})
		}
	}
	return admitted
}
