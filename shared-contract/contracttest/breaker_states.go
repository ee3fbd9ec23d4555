package contracttest

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func breakerStateTests() []breakerTest {
	return []breakerTest{
		{name: "LifetimeIsFinite", needs: needs(CapabilityTTL, CapabilityAdvance), run: lifetimeIsFinite},
		{name: "LifetimeIsExact", needs: needs(CapabilityTTL, CapabilitySetTime), run: lifetimeIsExact},
		{name: "StateGoesByItself", needs: needs(CapabilityState, CapabilitySetTime), run: breakerGoesByItself},
		{name: "ForeignKeys", needs: needs(CapabilityPutForeign, CapabilityState), run: breakerForeignKeys},
		{name: "CorruptFields", needs: needs(CapabilityCorrupt, CapabilityState, CapabilityAdvance), run: corruptFields},
		{name: "MissingFields", needs: needs(CapabilityCorrupt, CapabilityState, CapabilityAdvance), run: breakerMissingFields},
	}
}

// lifetimeIsFinite: after each write, whatever it was. Casebook 24.
func lifetimeIsFinite(h *breakerHarness) {
	for i, config := range []breaker.PolicyConfig{soon("finite", 2), rate("finite-rate", 2, 1)} {
		config.OpenTimeout, config.ProbeSuccesses = 30*time.Millisecond, 1
		p := h.policy(config)
		o := h.one(h.b.New(h, p), p, i)
		finite := func() {
			h.Helper()
			ttl, ok := h.b.TTL(h, p, o.resource)
			if !ok || ttl <= 0 || ttl > p.Lifetime() {
				h.Fatalf("lives for %v (finite: %v), want at most %v", ttl, ok, p.Lifetime())
			}
		}
		o.fail(1)
		finite()
		o.trip()
		finite()
		o.wait()
		probe := o.probe()
		finite()
		o.record(probe, breaker.ResultNeither, breaker.StatusReleased, breaker.StateHalfOpen, breaker.StateHalfOpen)
		finite()
		o.record(o.probe(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateClosed)
		finite()
	}
}

// lifetimeIsExact: each write renews the whole of it, and what does not write renews nothing.
func lifetimeIsExact(h *breakerHarness) {
	o := h.fresh(consecutive("covers", 3))
	at := h.hold()
	expect := func(until int64) {
		h.Helper()
		ttl, ok := h.b.TTL(h, o.policy, o.resource)
		if got := h.nowMillis() + ttl.Milliseconds(); !ok || got != until {
			h.Fatalf("lives until %d (finite: %v), want %d", got, ok, until)
		}
	}
	lifetime := o.policy.Lifetime().Milliseconds()
	o.fail(1)
	expect(at + lifetime)
	h.setMillis(at + 777)
	o.call()
	o.observe(breaker.StateClosed)
	expect(at + lifetime)
	o.fail(1)
	expect(at + 777 + lifetime)
	h.setMillis(at + 700) // Clamped: the lifetime counts from the later moment.
	o.trip()
	expect(at + 777 + lifetime)
}

// breakerGoesByItself: past its lifetime nothing is left, though nobody asks. Casebook 25.
func breakerGoesByItself(h *breakerHarness) {
	o := h.fresh(consecutive("gone", 2))
	at := h.hold()
	o.fail(1)
	lifetime := o.policy.Lifetime().Milliseconds()
	h.setMillis(at + lifetime - 1)
	if o.stored() == "" {
		h.Error("gone before its lifetime was over")
	}
	h.setMillis(at + lifetime + 1)
	if s := o.stored(); s != "" {
		h.Errorf("still %q after its lifetime", s)
	}
}

// incompatible asks and tells in all three ways and requires Incompatible, with the state left as it
// is.
func (o one) incompatible(what string) {
	o.h.Helper()
	want := breaker.Incompatible{PolicyID: o.policy.ID(), Category: ratelimit.IncompatibleState}
	before := o.stored()
	if got := o.acquire(); got != want {
		o.h.Errorf("%s: acquire gives %+v, want %+v", what, got, want)
	}
	for _, kind := range breaker.PermitKinds() {
		permit := breaker.Permit{PolicyID: o.policy.ID(), PolicyRevision: o.policy.Revision(), Resource: o.resource, Kind: kind, Token: token(3)}
		permit.AcquiredAt = o.h.nowMillis()
		if got := o.tell(permit, breaker.ResultFailure); got != want {
			o.h.Errorf("%s: record gives %+v, want %+v", what, got, want)
		}
	}
	got, err := o.port.Read(context.Background(), breaker.ReadRequest{PolicyID: o.policy.ID(), Resource: o.resource, Deadline: o.h.future()})
	if err != nil || got != want {
		o.h.Errorf("%s: read gives %+v, %v, want %+v", what, got, err, want)
	}
	if after := o.stored(); after != before {
		o.h.Errorf("%s: deciding changed the state\nbefore %q\n after %q", what, before, after)
	}
}

// breakerForeignKeys: whatever else stands where the state should be is Incompatible, and left as it
// is. Casebook 23.
func breakerForeignKeys(h *breakerHarness) {
	p := h.policy(consecutive("foreign", 1))
	port := h.b.New(h, p)
	for i, kind := range ForeignKinds() {
		o := h.one(port, p, i)
		h.b.PutForeign(h, p, o.resource, kind)
		if o.stored() == "" {
			h.Fatalf("%s: the backend placed nothing", kind)
		}
		o.incompatible("a foreign " + string(kind))
	}
}

// damaged makes breakers in each state, and damages each field of each.
func (h *breakerHarness) damaged(damage func(o one, field string) (what []string, edits []func())) {
	h.Helper()
	counting := rate("closed-rate", 100, 1000)
	probing := consecutive("half-open", 1)
	probing.OpenTimeout, probing.ProbeSuccesses = time.Millisecond, 5
	n := 0
	for _, config := range []breaker.PolicyConfig{consecutive("closed", 10), counting, consecutive("open", 1), probing} {
		p := h.policy(config)
		port := h.b.New(h, p)
		fresh := func() one {
			n++
			o := h.one(port, p, n)
			switch config.ID {
			case "closed", "closed-rate":
				o.fail(2)
			case "open":
				o.trip()
			default:
				o.trip()
				o.wait()
				o.record(o.probe(), breaker.ResultSuccess, breaker.StatusCounted, breaker.StateHalfOpen, breaker.StateHalfOpen)
				o.probe()
			}
			return o
		}
		for _, field := range p.Machine().FieldNames() {
			what, _ := damage(fresh(), field)
			for i := range what {
				o := fresh()
				before := o.stored()
				_, edits := damage(o, field)
				edits[i]()
				if o.stored() == before {
					continue // The same text stood there.
				}
				o.incompatible(string(config.ID) + ": " + what[i])
			}
		}
	}
}

// corruptFields: what no program writes is Incompatible and never lets a call through. Casebook 13.
func corruptFields(h *breakerHarness) {
	h.damaged(func(o one, field string) (what []string, edits []func()) {
		values := []string{"", "nan", "inf", "1e400", "-1", "007", "1.5", " 1", "1\x00", "9007199254740992", "99999999999999999999", "x"}
		switch field[0] {
		case 'm':
			values = []string{"", "x", o.policy.Fingerprint(), "2:cb:1:" + o.policy.Fingerprint()}
		case 's':
			values = []string{"", "CLOSED", "INVALID", "0", "half_open"}
		case 'p', 'b':
			values = append(values, "0", "-:-", "1:", ":1", strings.Repeat("1:", 5), "1:"+token(1)[1:], "0"+strconv.FormatInt(o.h.nowMillis(), 10)+":"+token(1))
		}
		for _, value := range values {
			what = append(what, "field "+field+" is "+strconv.Quote(value))
			edits = append(edits, func() { o.h.b.Corrupt(o.h, o.policy, o.resource, field, value) })
		}
		return what, edits
	})
}

// breakerMissingFields: a state without one of its fields is Incompatible. Casebook 13.
func breakerMissingFields(h *breakerHarness) {
	h.damaged(func(o one, field string) (what []string, edits []func()) {
		return []string{"without field " + field}, []func(){func() { o.h.b.Drop(o.h, o.policy, o.resource, field) }}
	})
}
