package cacheredis

import (
	"fmt"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// breakerReply reads the fields of a breaker's reply one after another. After the first that is not
// what it must be, all are zero and ok is false.
type breakerReply struct {
	reply store.Reply
	next  int
	ok    bool
}

func (r *breakerReply) text() string {
	v := r.reply.At(r.next)
	r.next++
	r.ok = r.ok && v.Kind == store.ValueText
	return v.Text
}

func (r *breakerReply) status() breaker.Status {
	status, known := breaker.ParseStatus(r.text())
	r.ok = r.ok && known
	return status
}

func (r *breakerReply) state() breaker.State {
	text := r.text()
	state, known := breaker.ParseState(text)
	r.ok = r.ok && (known || text == breaker.StateInvalid.String())
	return state
}

func (r *breakerReply) integer() int64 {
	v := r.reply.At(r.next)
	r.next++
	r.ok = r.ok && v.Kind == store.ValueInteger && v.Int >= 0 && v.Int <= algorithm.MaxExact
	return v.Int
}

// moments are what every reply has after its words.
func (r *breakerReply) moments(t *breaker.Transition) {
	t.ServerNowMillis, t.EffectiveNowMillis = r.integer(), r.integer()
	t.SinceMillis, t.RetryAfterMillis = r.integer(), r.integer()
}

// parseAcquire accepts exactly what breaker-acquire can say under the policy.
func parseAcquire(reply store.Reply, policy *breaker.Policy) (breaker.Transition, error) {
	r := breakerReply{reply: reply, ok: reply.Len() == len(store.BreakerAcquireV1.Reply)}
	t := breaker.Transition{Status: r.status(), State: r.state()}
	r.moments(&t)
	t.LeaseUntilMillis = r.integer()
	return concludeReply(r.ok && plausibleAcquire(t, policy), t)
}

// parseRecord accepts exactly what breaker-record can say under the policy.
func parseRecord(reply store.Reply, policy *breaker.Policy) (breaker.Transition, error) {
	r := breakerReply{reply: reply, ok: reply.Len() == len(store.BreakerRecordV1.Reply)}
	t := breaker.Transition{Status: r.status(), Before: r.state(), State: r.state()}
	r.moments(&t)
	return concludeReply(r.ok && plausibleRecord(t, policy), t)
}

// parseRead accepts exactly what breaker-read can say under the policy.
func parseRead(reply store.Reply, policy *breaker.Policy) (breaker.Transition, error) {
	r := breakerReply{reply: reply, ok: reply.Len() == len(store.BreakerReadV1.Reply)}
	t := breaker.Transition{Status: r.status(), State: r.state()}
	r.moments(&t)
	t.Tally, t.Total = r.integer(), r.integer()
	return concludeReply(r.ok && plausibleRead(t, policy), t)
}

func concludeReply(fine bool, t breaker.Transition) (breaker.Transition, error) {
	if !fine {
		return breaker.Transition{}, fmt.Errorf("%w: not what the program can say under the policy", errReply)
	}
	return t, nil
}

func plausibleAcquire(t breaker.Transition, policy *breaker.Policy) bool {
	if refused, plausible := plausibleRefusal(t, policy); refused {
		return plausible && t.LeaseUntilMillis == 0
	}
	if !plausibleMoments(t, policy) {
		return false
	}
	m := policy.Machine()
	switch t.Status {
	case breaker.StatusCall:
		return t.State == breaker.StateClosed && t.RetryAfterMillis == 0 && t.LeaseUntilMillis == 0
	case breaker.StatusProbe:
		return t.State == breaker.StateHalfOpen && t.RetryAfterMillis == 0 &&
			t.LeaseUntilMillis == t.EffectiveNowMillis+m.ProbeLeaseMillis
	case breaker.StatusRejected:
		return (t.State == breaker.StateOpen || t.State == breaker.StateHalfOpen) && t.RetryAfterMillis > 0 && t.LeaseUntilMillis == 0
	case breaker.StatusUnspecified, breaker.StatusCounted, breaker.StatusReleased, breaker.StatusLate, breaker.StatusRead,
		breaker.StatusClockUnsafe, breaker.StatusStateIncompatible, breaker.StatusInvalid:
	}
	return false
}

func plausibleRecord(t breaker.Transition, policy *breaker.Policy) bool {
	if refused, plausible := plausibleRefusal(t, policy); refused {
		return plausible && t.Before == breaker.StateInvalid
	}
	if !plausibleMoments(t, policy) {
		return false
	}
	same := t.Before == t.State
	switch t.Status {
	case breaker.StatusCounted:
		return same && t.State != breaker.StateOpen ||
			t.Before == breaker.StateClosed && t.State == breaker.StateOpen || t.Before == breaker.StateHalfOpen && !same
	case breaker.StatusReleased:
		return same && t.State != breaker.StateOpen
	case breaker.StatusLate:
		return same
	case breaker.StatusUnspecified, breaker.StatusCall, breaker.StatusProbe, breaker.StatusRejected, breaker.StatusRead,
		breaker.StatusClockUnsafe, breaker.StatusStateIncompatible, breaker.StatusInvalid:
	}
	return false
}

func plausibleRead(t breaker.Transition, policy *breaker.Policy) bool {
	if refused, plausible := plausibleRefusal(t, policy); refused {
		return plausible && t.Tally == 0 && t.Total == 0
	}
	if t.Status != breaker.StatusRead || !plausibleMoments(t, policy) {
		return false
	}
	m := policy.Machine()
	switch t.State {
	case breaker.StateClosed:
		return t.Tally <= t.Total && (m.Threshold == 0 && t.Total <= m.Buckets*breaker.MostCalls || t.Tally == t.Total && t.Total < m.Threshold)
	case breaker.StateHalfOpen:
		return t.Tally < m.ProbeSuccesses && t.Total <= m.MaxProbes
	case breaker.StateOpen:
		return t.Tally == 0 && t.Total == 0
	case breaker.StateInvalid:
	}
	return false
}

// plausibleRefusal judges a reply that decided nothing.
func plausibleRefusal(t breaker.Transition, policy *breaker.Policy) (refused, plausible bool) {
	switch t.Status {
	case breaker.StatusClockUnsafe:
		refused, plausible = true, t.RetryAfterMillis > 0 && t.RetryAfterMillis <= algorithm.MaxNowMillis
	case breaker.StatusStateIncompatible, breaker.StatusInvalid:
		refused, plausible = true, t.RetryAfterMillis == 0
	case breaker.StatusUnspecified, breaker.StatusCall, breaker.StatusProbe, breaker.StatusRejected, breaker.StatusCounted,
		breaker.StatusReleased, breaker.StatusLate, breaker.StatusRead:
	}
	return refused, plausible && t.State == breaker.StateInvalid && t.SinceMillis == 0 && t.EffectiveNowMillis == t.ServerNowMillis
}

// plausibleMoments holds the clock readings of a decision to each other, and the wait to the state.
func plausibleMoments(t breaker.Transition, policy *breaker.Policy) bool {
	m := policy.Machine()
	ahead := t.EffectiveNowMillis - t.ServerNowMillis
	if t.State == breaker.StateInvalid || ahead < 0 || ahead > m.Clock.MaxRegressionMillis ||
		t.SinceMillis > t.EffectiveNowMillis || t.EffectiveNowMillis > algorithm.MaxNowMillis {
		return false
	}
	switch t.State {
	case breaker.StateClosed:
		return t.RetryAfterMillis == 0
	case breaker.StateOpen:
		return t.RetryAfterMillis > ahead && t.RetryAfterMillis == t.SinceMillis+m.OpenTimeoutMillis-t.ServerNowMillis
	case breaker.StateHalfOpen:
		return t.RetryAfterMillis == 0 || t.RetryAfterMillis > ahead && t.RetryAfterMillis <= ahead+m.ProbeLeaseMillis
	case breaker.StateInvalid:
	}
	return false
}
