package breaker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// minSimulatedTTL is the least lifetime in ms under a caller's clock: 24 h.
const minSimulatedTTL = 86_400_000

// model is one policy with what a program must answer and leave under a caller's clock.
type model struct {
	machine  breaker.Machine
	identity string
}

func (m model) stored() string { return m.identity + ":sim" }

// args are the arguments that all three programs begin with.
func (m model) args(own ...any) []any {
	c := m.machine
	args := []any{
		m.identity, c.Threshold, c.Buckets, c.BucketMillis, c.MinimumCalls, c.RatePermille, c.OpenTimeoutMillis, c.MaxProbes,
		c.ProbeLeaseMillis, c.ProbeSuccesses, c.Clock.GraceMillis, c.Clock.MaxRegressionMillis,
	}
	return append(args, own...)
}

// call is one run of a program.
type call struct {
	program *store.Program
	token   string         // of an acquire
	report  breaker.Report // of a record
	now     int64
}

func (c call) args(m model) []any {
	switch c.program {
	case store.BreakerAcquireV1:
		return m.args(c.token, c.now)
	case store.BreakerRecordV1:
		return m.args(c.report.Kind.String(), c.report.Token, c.report.Generation, c.report.AcquiredAt, c.report.Result.String(), c.now)
	}
	return m.args(c.now)
}

// result is what a run must answer and leave. TTL is the lifetime that it sets, 0 where it sets none.
type result struct {
	transition breaker.Transition
	reply      []any
	after      map[string]string
	ttl        int64
}

// run is what the program must do at c.now over a hash; nil is no key.
func (m model) run(c call, hash map[string]string) result {
	before, fine := m.parse(hash)
	if !fine {
		t := breaker.Refused(breaker.StatusStateIncompatible, c.now)
		return result{transition: t, reply: reply(c.program, t), after: hash}
	}
	var t breaker.Transition
	after := before
	switch c.program {
	case store.BreakerAcquireV1:
		t, after = m.machine.Acquire(before, c.now, c.token)
	case store.BreakerRecordV1:
		t, after = m.machine.Record(before, c.now, c.report)
	default:
		t = m.machine.Read(before, c.now)
	}
	r := result{transition: t, reply: reply(c.program, t), after: hash}
	if t.Writes {
		r.after = maps.Clone(hash)
		if r.after == nil {
			r.after = map[string]string{}
		}
		texts := m.machine.Fields(m.stored(), after)
		for i, name := range m.machine.FieldNames() {
			r.after[name] = texts[i]
		}
		r.ttl = max(t.EffectiveNowMillis+m.machine.LifetimeMillis()-c.now, minSimulatedTTL)
	}
	return r
}

func (m model) parse(hash map[string]string) (breaker.Stored, bool) {
	if hash == nil {
		return breaker.Stored{}, true
	}
	var texts []string
	for _, name := range m.machine.FieldNames() {
		text, ok := hash[name]
		if !ok {
			return breaker.Stored{}, false
		}
		texts = append(texts, text)
	}
	return m.machine.ParseFields(m.stored(), texts)
}

func reply(program *store.Program, t breaker.Transition) []any {
	switch program {
	case store.BreakerAcquireV1:
		return []any{
			t.Status.String(), t.State.String(), t.ServerNowMillis, t.EffectiveNowMillis, t.SinceMillis, t.RetryAfterMillis, t.LeaseUntilMillis,
		}
	case store.BreakerRecordV1:
		before := t.Before
		if t.State == breaker.StateInvalid {
			before = breaker.StateInvalid
		}
		return []any{
			t.Status.String(), before.String(), t.State.String(), t.ServerNowMillis, t.EffectiveNowMillis, t.SinceMillis, t.RetryAfterMillis,
		}
	}
	return []any{
		t.Status.String(), t.State.String(), t.ServerNowMillis, t.EffectiveNowMillis, t.SinceMillis, t.RetryAfterMillis, t.Tally, t.Total,
	}
}

// history makes random calls that belong together: results of permits that were given, mostly.
type history struct {
	random  *rand.Rand
	model   model
	now     int64
	permits []breaker.Report
	count   int
	state   breaker.State // after the last call
}

var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC).UnixMilli()

func newHistory(random *rand.Rand) *history {
	m := breaker.Machine{
		OpenTimeoutMillis: pick(random, 1, 50, 5000, 3_600_000, algorithm.MaxHorizonMillis),
		MaxProbes:         pick(random, 1, 2, 3, 16),
		ProbeLeaseMillis:  pick(random, 1, 40, 1000, 60_000, algorithm.MaxHorizonMillis),
		ProbeSuccesses:    pick(random, 1, 2, 5),
		Clock:             algorithm.Clock{GraceMillis: pick(random, 2000, 60_000), MaxRegressionMillis: pick(random, 0, 5, 2000)},
	}
	if random.IntN(2) == 0 {
		m.Threshold = pick(random, 1, 2, 3, 10)
	} else {
		m.Buckets = pick(random, 1, 2, 10, 20)
		m.BucketMillis = pick(random, 1, 10, 500, 60_000, algorithm.MaxHorizonMillis/20)
		m.MinimumCalls = pick(random, 1, 3, 10)
		m.RatePermille = pick(random, 1, 333, 500, 1000)
	}
	return &history{
		random: random, now: pick(random, start, start, 1, algorithm.MaxNowMillis),
		model: model{machine: m, identity: fmt.Sprintf("1:cb:1:%016x", random.Uint64())},
	}
}

func pick(random *rand.Rand, of ...int64) int64 { return of[random.IntN(len(of))] }

// step moves the clock, back too, and makes the next call.
func (h *history) step() call {
	m := h.model.machine
	moves := []int64{
		0, 0, 0, 1, 1, 7, 100, m.OpenTimeoutMillis, m.OpenTimeoutMillis - 1, m.ProbeLeaseMillis, m.ProbeLeaseMillis - 1, m.BucketMillis,
	}
	if h.random.IntN(20) == 0 {
		moves = []int64{
			-1, -5, -6, -m.Clock.MaxRegressionMillis, -m.Clock.MaxRegressionMillis - 1, -600_000,
			m.LifetimeMillis(), m.LifetimeMillis() - 1, m.Buckets * m.BucketMillis, 365 * 86_400_000,
		}
	}
	if h.state == breaker.StateOpen && h.random.IntN(4) == 0 {
		moves = []int64{m.OpenTimeoutMillis, m.OpenTimeoutMillis + 1} // Or it is open most of the time.
	}
	if h.state == breaker.StateHalfOpen && h.random.IntN(3) > 0 {
		moves = []int64{0, 1} // Within the leases.
	}
	h.now = min(max(h.now+pick(h.random, moves...), 1), algorithm.MaxNowMillis)
	c := call{now: h.now}
	switch n := h.random.IntN(10); {
	case n < 4:
		h.count++
		c.program, c.token = store.BreakerAcquireV1, fmt.Sprintf("%032x", h.count)
	case n < 9:
		c.program, c.report = store.BreakerRecordV1, h.report()
	default:
		c.program = store.BreakerReadV1
	}
	return c
}

// report is the result of a permit: the last ones more often, sometimes one that was never given.
func (h *history) report() breaker.Report {
	r := breaker.Report{
		Kind: breaker.PermitKind(1 + h.random.IntN(2)), Token: fmt.Sprintf("%032x", h.random.IntN(5)),
		Generation: h.now, AcquiredAt: pick(h.random, 0, h.now, algorithm.MaxNowMillis),
	}
	if n := len(h.permits); n > 0 && h.random.IntN(20) > 0 {
		at := h.random.IntN(n)
		if h.random.IntN(3) > 0 {
			at = n - 1
		}
		r = h.permits[at]
	}
	r.Result = breaker.Result(pick(h.random, 1, 2, 2, 2, 3))
	if h.random.IntN(2) == 0 {
		r.Result = breaker.ResultSuccess
	}
	return r
}

// learn remembers the permit that a call gave.
func (h *history) learn(c call, t breaker.Transition) {
	kind := breaker.PermitCall
	if t.Status == breaker.StatusProbe {
		kind = breaker.PermitProbe
	} else if t.Status != breaker.StatusCall {
		return
	}
	h.permits = append(h.permits, breaker.Report{
		Kind: kind, Token: c.token, Generation: t.SinceMillis, AcquiredAt: t.EffectiveNowMillis,
	})
}

// edit damages a state, or replaces a field by another that may be one.
func (h *history) edit(hash map[string]string) map[string]string {
	names := h.model.machine.FieldNames()
	edited := maps.Clone(hash)
	if edited == nil {
		edited = map[string]string{}
	}
	name := names[h.random.IntN(len(names))]
	if h.random.IntN(8) == 0 {
		delete(edited, name)
		if len(edited) == 0 {
			return nil
		}
		return edited
	}
	token := fmt.Sprintf("%032x", h.random.IntN(3))
	now := fmt.Sprint(h.now)
	texts := []string{
		"", "-", "0", "1", "2", "00", "01", "-1", "1e3", "nan", "inf", "0x1", " 1", "1\x00", now, "0" + now, fmt.Sprint(h.now + 1), fmt.Sprint(h.now - 1),
		"9007199254740991", "9007199254740992", "99999999999999999999", "closed", "open", "half-open", "INVALID", "CLOSED",
		now + ":" + token, fmt.Sprint(h.now+1) + ":" + token, fmt.Sprint(h.now+h.model.machine.ProbeLeaseMillis) + ":" + token,
		now + ":" + token[1:], now + ":" + token + "0", "0" + now + ":" + token, now + ":", ":" + token, now + ":" + token[1:] + "G",
		h.model.identity, h.model.stored(), "2:cb:1:" + h.model.identity[7:],
	}
	if m := h.model.machine; m.Buckets > 0 {
		id := h.now / m.BucketMillis
		for _, id := range []int64{id, id - 1, id - m.Buckets, id + 1, 0} {
			texts = append(texts, fmt.Sprintf("%d:1:1", id), fmt.Sprintf("%d:5:0", id), fmt.Sprintf("%d:1:2", id), fmt.Sprintf("%d:0:0", id),
				fmt.Sprintf("%d:%d:%d", id, breaker.MostCalls, breaker.MostCalls), fmt.Sprintf("%d:%d:1", id, breaker.MostCalls+1), fmt.Sprintf("%d:1", id))
		}
	}
	edited[name] = texts[h.random.IntN(len(texts))]
	return edited
}
