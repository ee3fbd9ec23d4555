package contracttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

// breakerHarness is one subtest with its backend.
type breakerHarness struct {
	*testing.T
	b *BreakerBackend
}

// consecutive is a policy that trips after threshold failures in a row; nothing about it ends by itself
// within a test that does not set the clock.
func consecutive(id string, threshold int64) breaker.PolicyConfig {
	return breaker.PolicyConfig{
		ID: breaker.PolicyID(id), Revision: 1, Trip: breaker.ConsecutiveFailures{Threshold: threshold},
		OpenTimeout: time.Hour, MaxProbes: 2, ProbeLease: time.Minute, ProbeSuccesses: 2,
		CleanupGrace: defaultGrace, MaxClockRegression: defaultRegression,
	}
}

// soon is consecutive with an open timeout that passes by itself.
func soon(id string, threshold int64) breaker.PolicyConfig {
	config := consecutive(id, threshold)
	config.OpenTimeout = time.Second
	return config
}

func (h *breakerHarness) policy(config breaker.PolicyConfig) *breaker.Policy {
	h.Helper()
	p, err := breaker.NewPolicy(config)
	if err != nil {
		h.Fatalf("policy: %v", err)
	}
	return p
}

// resource is the n-th digest of this subtest.
func (h *breakerHarness) resource(n int) breaker.ResourceDigest {
	h.Helper()
	digester, err := breaker.NewResourceDigester([]byte("a secret of the suite, 32 bytes or more"))
	if err != nil {
		h.Fatal(err)
	}
	d, err := digester.Digest(fmt.Sprintf("%s/%d", h.Name(), n))
	if err != nil {
		h.Fatal(err)
	}
	return d
}

// future is after both clocks that a deadline may be compared with.
func (h *breakerHarness) future() time.Time { return later(h.b.Now(), time.Now()).Add(time.Hour) }

func (h *breakerHarness) nowMillis() int64 { return h.b.Now().UnixMilli() }

func (h *breakerHarness) setMillis(ms int64) { h.b.SetTime(time.UnixMilli(ms).UTC()) }

// hold sets the clock to a whole millisecond, where it stands, and gives it.
func (h *breakerHarness) hold() int64 {
	at := h.nowMillis() + 1
	h.setMillis(at)
	return at
}

// one is one breaker through one port.
type one struct {
	h        *breakerHarness
	port     breaker.CircuitBreakerPort
	policy   *breaker.Policy
	resource breaker.ResourceDigest
}

func (h *breakerHarness) one(port breaker.CircuitBreakerPort, p *breaker.Policy, n int) one {
	h.Helper()
	return one{h: h, port: port, policy: p, resource: h.resource(n)}
}

// fresh is one breaker of a policy of its own.
func (h *breakerHarness) fresh(config breaker.PolicyConfig) one {
	h.Helper()
	p := h.policy(config)
	return h.one(h.b.New(h, p), p, 0)
}

func (o one) acquire() breaker.AcquireOutcome {
	o.h.Helper()
	outcome, err := o.port.Acquire(context.Background(), breaker.AcquireRequest{PolicyID: o.policy.ID(), Resource: o.resource, Deadline: o.h.future()})
	if err != nil {
		o.h.Fatalf("acquire: %v", err)
	}
	return outcome
}

// permitted acquires and requires a permit of this kind.
func (o one) permitted(kind breaker.PermitKind) breaker.Permit {
	o.h.Helper()
	outcome := o.acquire()
	granted, ok := outcome.(breaker.Permitted)
	state := breaker.StateClosed
	if kind == breaker.PermitProbe {
		state = breaker.StateHalfOpen
	}
	if !ok || granted.Permit.Kind != kind || granted.State != state || granted.Source != o.h.b.Source {
		o.h.Fatalf("acquire: %+v, want a permit of kind %v in %v", outcome, kind, state)
	}
	p := granted.Permit
	if p.PolicyID != o.policy.ID() || p.PolicyRevision != o.policy.Revision() || p.Resource != o.resource ||
		!breaker.ValidToken(p.Token) || p.LeaseUntil.IsZero() != (kind == breaker.PermitCall) {
		o.h.Fatalf("malformed permit %+v", p)
	}
	return p
}

func (o one) call() breaker.Permit  { o.h.Helper(); return o.permitted(breaker.PermitCall) }
func (o one) probe() breaker.Permit { o.h.Helper(); return o.permitted(breaker.PermitProbe) }

// rejected acquires and requires rejection in this state, writing nothing.
func (o one) rejected(state breaker.State) breaker.Rejected {
	o.h.Helper()
	before := o.stored()
	outcome := o.acquire()
	r, ok := outcome.(breaker.Rejected)
	if !ok || r.State != state || r.PolicyID != o.policy.ID() || r.Source != o.h.b.Source ||
		r.RetryAfter < time.Millisecond || r.RetryAfter%time.Millisecond != 0 {
		o.h.Fatalf("acquire: %+v, want a rejection in %v", outcome, state)
	}
	if after := o.stored(); after != before {
		o.h.Fatalf("a rejection changed the state:\nbefore %q\n after %q", before, after)
	}
	return r
}

func (o one) tell(permit breaker.Permit, result breaker.Result) breaker.RecordOutcome {
	o.h.Helper()
	outcome, err := o.port.Record(context.Background(), breaker.RecordRequest{Permit: permit, Result: result, Deadline: o.h.future()})
	if err != nil {
		o.h.Fatalf("record: %v", err)
	}
	return outcome
}

// record tells a result and requires what became of it.
func (o one) record(permit breaker.Permit, result breaker.Result, status breaker.Status, before, after breaker.State) {
	o.h.Helper()
	want := breaker.Recorded{PolicyID: o.policy.ID(), Status: status, Before: before, After: after, Source: o.h.b.Source}
	if got := o.tell(permit, result); got != want {
		o.h.Fatalf("record %v:\n got %+v\nwant %+v", result, got, want)
	}
}

// late tells a result that must count nothing in this state, writing nothing.
func (o one) late(permit breaker.Permit, result breaker.Result, state breaker.State) {
	o.h.Helper()
	before := o.stored()
	o.record(permit, result, breaker.StatusLate, state, state)
	if after := o.stored(); after != before {
		o.h.Fatalf("a late result changed the state:\nbefore %q\n after %q", before, after)
	}
}

// fail lets a call through and tells that it failed, n times, staying closed.
func (o one) fail(n int) {
	o.h.Helper()
	for range n {
		o.record(o.call(), breaker.ResultFailure, breaker.StatusCounted, breaker.StateClosed, breaker.StateClosed)
	}
}

// trip fails one call that opens the breaker.
func (o one) trip() {
	o.h.Helper()
	o.record(o.call(), breaker.ResultFailure, breaker.StatusCounted, breaker.StateClosed, breaker.StateOpen)
}

// wait lets time pass until the open timeout is over.
func (o one) wait() {
	o.h.Helper()
	o.h.b.Advance(o.policy.OpenTimeout() + time.Millisecond)
}

// observe reads and requires a state, writing nothing.
func (o one) observe(state breaker.State) breaker.Observed {
	o.h.Helper()
	before := o.stored()
	outcome, err := o.port.Read(context.Background(), breaker.ReadRequest{PolicyID: o.policy.ID(), Resource: o.resource, Deadline: o.h.future()})
	if err != nil {
		o.h.Fatalf("read: %v", err)
	}
	seen, ok := outcome.(breaker.Observed)
	if !ok || seen.State != state || seen.PolicyID != o.policy.ID() || seen.Source != o.h.b.Source {
		o.h.Fatalf("read: %+v, want %v", outcome, state)
	}
	if after := o.stored(); after != before {
		o.h.Fatalf("reading changed the state:\nbefore %q\n after %q", before, after)
	}
	return seen
}

// stored is the stored state, or "" where the backend cannot tell.
func (o one) stored() string {
	o.h.Helper()
	if o.h.b.State == nil {
		return ""
	}
	return o.h.b.State(o.h, o.policy, o.resource)
}

// token is a well-formed token that no permit has.
func token(n int) string {
	sum := sha256.Sum256([]byte{byte(n), byte(n >> 8)})
	return hex.EncodeToString(sum[:breaker.TokenLength/2])
}
