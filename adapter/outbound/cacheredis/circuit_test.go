package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// handClock is a monotonic clock that a test moves.
type handClock struct{ now atomic.Int64 }

func (c *handClock) read() time.Duration     { return time.Duration(c.now.Load()) }
func (c *handClock) forward(d time.Duration) { c.now.Add(int64(d)) }

// changeLog keeps what a circuit tells.
type changeLog struct {
	mu  sync.Mutex
	all []CircuitChange
}

func (l *changeLog) note(change CircuitChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, change)
}

func (l *changeLog) want(t *testing.T, want ...CircuitChange) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.all); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

const circuitTimeout = 250 * time.Millisecond

// circuitLimiter is a limiter with a circuit of three failures on a clock of the test's.
func circuitLimiter(t testing.TB, s store.Store, change ...func(c *LimiterConfig)) (*EdgeRateLimiter, *handClock, *changeLog) {
	t.Helper()
	told, clock := &changeLog{}, &handClock{}
	l := limiterFor(t, s, append([]func(c *LimiterConfig){func(c *LimiterConfig) {
		c.Circuit = &CircuitConfig{Failures: 3, OpenTimeout: circuitTimeout, Changed: told.note}
	}}, change...)...)
	l.circuit.now = clock.read
	return l, clock, told
}

func circuitRejects(wait time.Duration) ratelimit.Outcome {
	return ratelimit.Unavailable{PolicyID: "login", RetryAfter: wait, Category: ratelimit.UnavailableCircuit}
}

func wantOutcome(t *testing.T, l *EdgeRateLimiter, want ratelimit.Outcome) {
	t.Helper()
	if diff := cmp.Diff(want, evaluate(t, l)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

var errLost = &store.Error{Op: "x", Certainty: store.Uncertain, Code: store.CodeDeadline}

func TestCircuitConfig(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config CircuitConfig
		faults []string
	}{
		"least":         {CircuitConfig{Failures: 1, OpenTimeout: time.Millisecond}, nil},
		"greatest":      {CircuitConfig{Failures: 1000, OpenTimeout: time.Minute}, nil},
		"no failures":   {CircuitConfig{OpenTimeout: time.Second}, []string{"circuit failures is 0, want 1..1000"}},
		"many failures": {CircuitConfig{Failures: 1001, OpenTimeout: time.Second}, []string{"circuit failures is 1001, want 1..1000"}},
		"short":         {CircuitConfig{Failures: 1, OpenTimeout: time.Millisecond - 1}, []string{"circuit open timeout is 999.999µs, want 1ms..1m0s"}},
		"long":          {CircuitConfig{Failures: 1, OpenTimeout: time.Minute + 1}, []string{"want 1ms..1m0s"}},
		"all at once":   {CircuitConfig{}, []string{"circuit failures", "circuit open timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := ratelimit.NewPolicySet(policy(t))
			if err != nil {
				t.Fatal(err)
			}
			_, err = NewEdgeRateLimiter(storeAnswers(store.Reply{}, nil), LimiterConfig{
				Policies: set, Namespace: "test", Secret: testSecret, MaxInFlight: 1, CommandTimeout: time.Second,
				UnavailableRetryAfter: time.Second, Circuit: &row.config,
			})
			if row.faults == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantFaults(t, err, row.faults...)
		})
	}
}

// TestCircuitJudgesEveryCode: what a store's answer tells about whether somebody is there.
func TestCircuitJudgesEveryCode(t *testing.T) {
	t.Parallel()
	const (
		success = breaker.ResultSuccess
		failure = breaker.ResultFailure
		neither = breaker.ResultNeither
	)
	unsent := map[store.Code]breaker.Result{
		store.CodeInvalid: neither, store.CodeInvalidArgument: neither, store.CodeUnknownProgram: neither, store.CodeNotReady: neither,
		store.CodeClosed: neither, store.CodeCanceled: neither, store.CodeDeadline: failure, store.CodePoolExhausted: neither,
		store.CodeQueueFull: neither, store.CodeConnect: failure, store.CodeTLS: failure, store.CodeHandshake: failure,
		store.CodeAuthentication: success, store.CodeServerVersion: success, store.CodeConnectionLost: failure, store.CodeCapacity: success,
		store.CodeNotInteger: neither, store.CodeOutOfRange: neither, store.CodeLoading: success, store.CodeReadOnly: success,
		store.CodeMasterDown: success, store.CodeClusterDown: success, store.CodeMoved: success, store.CodePermission: success,
		store.CodeOutOfMemory: success, store.CodePersistence: success, store.CodeReplicas: success, store.CodeBusy: success,
		store.CodeProgramFailed: neither, store.CodeWrongType: neither, store.CodeReply: neither,
	}
	uncertain := map[store.Code]breaker.Result{store.CodeProgramFailed: success, store.CodeCanceled: neither}
	codes := 0
	for code := store.Code(0); code == store.CodeInvalid || code.String() != "invalid"; code++ {
		codes++
		open := failure
		if exception, ok := uncertain[code]; ok {
			open = exception
		}
		for certainty, want := range map[store.Certainty]breaker.Result{
			store.NotSent: unsent[code], store.Refused: success, store.Mismatched: success, store.Uncertain: open,
			store.CertaintyInvalid: failure, store.Certainty(99): failure,
		} {
			err := fmt.Errorf("wrapped: %w", &store.Error{Op: "x", Certainty: certainty, Code: code})
			if got := resultOf(err); got != want {
				t.Errorf("%v (%v) is %v, want %v", code, certainty, got, want)
			}
		}
	}
	if codes != len(unsent) {
		t.Errorf("%d codes, this test knows %d", codes, len(unsent))
	}
	if resultOf(nil) != success || resultOf(errors.New("x")) != failure {
		t.Error("no error is a success, and a foreign one had no reply that is known")
	}
}

// TestCircuitOverADeadStore walks through a whole outage.
func TestCircuitOverADeadStore(t *testing.T) {
	t.Parallel()
	var answer atomic.Pointer[store.Error]
	f := storeThat(func(context.Context) (store.Reply, error) {
		if err := answer.Load(); err != nil {
			return store.Reply{}, err
		}
		return firstAllowed.reply(), nil
	})
	l, clock, told := circuitLimiter(t, f)
	if l.CircuitState() != breaker.StateClosed {
		t.Errorf("begins %v", l.CircuitState())
	}
	answer.Store(errLost)
	for range 3 {
		wantOutcome(t, l, indeterminate)
	}
	if l.CircuitState() != breaker.StateOpen {
		t.Errorf("after three failures %v", l.CircuitState())
	}
	asked := len(f.asked())
	wantOutcome(t, l, circuitRejects(circuitTimeout))
	clock.forward(100*time.Millisecond + time.Microsecond)
	wantOutcome(t, l, circuitRejects(150*time.Millisecond)) // rounded up
	clock.forward(circuitTimeout - 100*time.Millisecond - time.Microsecond - 1)
	wantOutcome(t, l, circuitRejects(time.Millisecond))
	if n := len(f.asked()); n != asked {
		t.Errorf("the store was asked %d times by an open circuit", n-asked)
	}
	clock.forward(1)
	wantOutcome(t, l, indeterminate) // the probe, which finds nobody
	wantOutcome(t, l, circuitRejects(circuitTimeout))
	if n := len(f.asked()); n != asked+1 {
		t.Errorf("%d probes, want 1", n-asked)
	}
	answer.Store(nil)
	clock.forward(circuitTimeout)
	for range 2 {
		if outcome := evaluate(t, l); !ratelimit.Allows(outcome) {
			t.Errorf("the store is back: %+v", outcome)
		}
	}
	if n := len(f.asked()); n != asked+3 || l.CircuitState() != breaker.StateClosed {
		t.Errorf("asked %d times, %v", n-asked, l.CircuitState())
	}
	told.want(t,
		CircuitChange{State: breaker.StateOpen},
		CircuitChange{State: breaker.StateOpen, Since: circuitTimeout},
		CircuitChange{State: breaker.StateClosed, Since: 2 * circuitTimeout},
	)
}

// TestCircuitCountsInARow: a reply between failures begins anew, whatever it says; what is nobody's
// answer counts nothing.
func TestCircuitCountsInARow(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		between error
		state   breaker.State
	}{
		"a decision":       {nil, breaker.StateClosed},
		"READONLY":         {&store.Error{Certainty: store.Refused, Code: store.CodeReadOnly}, breaker.StateClosed},
		"another's reply":  {&store.Error{Certainty: store.Mismatched, Code: store.CodeReply}, breaker.StateClosed},
		"pool exhausted":   {&store.Error{Certainty: store.NotSent, Code: store.CodePoolExhausted}, breaker.StateOpen},
		"caller went away": {&store.Error{Certainty: store.Uncertain, Code: store.CodeCanceled}, breaker.StateOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := []error{errLost, errLost, row.between, errLost}
			i := 0
			l, _, _ := circuitLimiter(t, storeThat(func(context.Context) (store.Reply, error) {
				i++
				return store.Reply{}, answers[i-1]
			}))
			for range answers {
				evaluate(t, l)
			}
			if got := l.CircuitState(); got != row.state {
				t.Errorf("%v, want %v", got, row.state)
			}
		})
	}
}

// TestRefusalsNeverOpenTheCircuit: a server that refuses everything at once is asked every time, so
// that the first evaluation after its recovery is decided.
func TestRefusalsNeverOpenTheCircuit(t *testing.T) {
	t.Parallel()
	for _, code := range refusals {
		f := storeAnswers(store.Reply{}, &store.Error{Certainty: store.Refused, Code: code})
		l, _, told := circuitLimiter(t, f)
		for range 20 {
			evaluate(t, l)
		}
		if n := len(f.asked()); n != 20 {
			t.Errorf("%v: asked %d times of 20", code, n)
		}
		told.want(t)
	}
}

// TestExactlyOneProbe: of many callers that come when the timeout is over, one asks the store.
func TestExactlyOneProbe(t *testing.T) {
	t.Parallel()
	var probing atomic.Bool
	release := make(chan struct{})
	f := storeThat(func(context.Context) (store.Reply, error) {
		if !probing.Load() {
			return store.Reply{}, errLost
		}
		<-release
		return firstAllowed.reply(), nil
	})
	l, clock, told := circuitLimiter(t, f, func(c *LimiterConfig) { c.MaxInFlight = 1000 })
	for range 3 {
		evaluate(t, l)
	}
	const callers = 200
	for round := range 20 {
		asked := len(f.asked())
		clock.forward(circuitTimeout)
		probing.Store(true)
		var allowed, rejected atomic.Int64
		var begin, all sync.WaitGroup
		begin.Add(1)
		for range callers {
			r := request(t)
			all.Go(func() {
				begin.Wait()
				outcome, err := l.Evaluate(t.Context(), r)
				switch {
				case err != nil:
					t.Error(err)
				case ratelimit.Allows(outcome):
					allowed.Add(1)
				case outcome == circuitRejects(2*testTimeout): // the lease of the probe
					rejected.Add(1)
				default:
					t.Errorf("outcome %+v", outcome)
				}
			})
		}
		begin.Done()
		eventually(t, "all but the probe are rejected", func() bool { return rejected.Load() == callers-1 })
		if l.CircuitState() != breaker.StateHalfOpen {
			t.Errorf("round %d: %v with a probe under way", round, l.CircuitState())
		}
		release <- struct{}{}
		all.Wait()
		if n := len(f.asked()) - asked; n != 1 || allowed.Load() != 1 {
			t.Errorf("round %d: the store was asked %d times, %d allowed", round, n, allowed.Load())
		}
		probing.Store(false)
		for range 3 {
			evaluate(t, l)
		}
	}
	if n := len(told.all); n != 1+20*2 {
		t.Errorf("told %d times, want %d", n, 1+20*2)
	}
}

// TestCallersThatSawItOpenTogether: they all come to the lock at once, and one leaves it as the probe.
func TestCallersThatSawItOpenTogether(t *testing.T) {
	t.Parallel()
	l, clock, _ := circuitLimiter(t, storeAnswers(firstAllowed.reply(), nil))
	c := l.circuit
	for range 3 {
		p, _, _ := c.begin()
		c.end(p, errLost)
	}
	clock.forward(circuitTimeout)
	var read, probes atomic.Int64
	c.now = func() time.Duration {
		read.Add(1)
		return clock.read()
	}
	const callers = 50
	var all sync.WaitGroup
	c.mu.Lock()
	for range callers {
		all.Go(func() {
			if _, _, rejected := c.begin(); !rejected {
				probes.Add(1)
			}
		})
	}
	eventually(t, "all have read the clock", func() bool { return read.Load() == callers })
	c.mu.Unlock()
	all.Wait()
	if n := probes.Load(); n != 1 {
		t.Errorf("%d probes", n)
	}
}

// TestProbeOfACallerThatWentAway frees the probe: the next evaluation is one.
func TestProbeOfACallerThatWentAway(t *testing.T) {
	t.Parallel()
	for _, nobodys := range []*store.Error{
		{Certainty: store.Uncertain, Code: store.CodeCanceled},
		{Certainty: store.NotSent, Code: store.CodeCanceled},
		{Certainty: store.NotSent, Code: store.CodePoolExhausted},
	} {
		answers := []error{errLost, errLost, errLost, nobodys, nil}
		i := 0
		l, clock, told := circuitLimiter(t, storeThat(func(context.Context) (store.Reply, error) {
			i++
			return firstAllowed.reply(), answers[i-1]
		}))
		for range 3 {
			evaluate(t, l)
		}
		clock.forward(circuitTimeout)
		evaluate(t, l)
		if got := l.CircuitState(); got != breaker.StateOpen {
			t.Errorf("%v after a probe that found nothing out", got)
		}
		if outcome := evaluate(t, l); !ratelimit.Allows(outcome) {
			t.Errorf("the next probe: %+v", outcome)
		}
		told.want(t, CircuitChange{State: breaker.StateOpen}, CircuitChange{State: breaker.StateClosed, Since: circuitTimeout})
	}
}

// TestProbeThatNeverEnds: a probe that was lost is replaced when its lease is over, and what it says
// later counts nothing.
func TestProbeThatNeverEnds(t *testing.T) {
	t.Parallel()
	l, clock, _ := circuitLimiter(t, storeAnswers(firstAllowed.reply(), nil))
	c := l.circuit
	for range 3 {
		p, _, _ := c.begin()
		c.end(p, errLost)
	}
	clock.forward(circuitTimeout)
	lost, _, rejected := c.begin()
	if rejected {
		t.Fatal("no probe")
	}
	clock.forward(2*testTimeout - 1)
	if _, wait, rejected := c.begin(); !rejected || wait != time.Millisecond {
		t.Errorf("under lease: rejected %v for %v", rejected, wait)
	}
	clock.forward(1)
	c.end(lost, nil) // its lease is over
	second, _, rejected := c.begin()
	if rejected {
		t.Fatal("no probe after the lease")
	}
	c.end(lost, nil) // another holds it
	if c.state() != breaker.StateHalfOpen {
		t.Errorf("%v after the result of a probe that was replaced", c.state())
	}
	c.end(second, nil)
	if c.state() != breaker.StateClosed {
		t.Errorf("%v after the probe's success", c.state())
	}
}

// TestLateResults: what began before the trip neither closes the circuit nor counts after recovery.
func TestLateResults(t *testing.T) {
	t.Parallel()
	l, clock, told := circuitLimiter(t, storeAnswers(firstAllowed.reply(), nil))
	c := l.circuit
	var early []permit
	for range 9 {
		p, _, _ := c.begin()
		early = append(early, p)
	}
	for _, p := range early[:3] {
		c.end(p, errLost)
	}
	c.end(early[3], nil)
	if c.state() != breaker.StateOpen {
		t.Errorf("%v after a success that began before the trip", c.state())
	}
	clock.forward(circuitTimeout)
	probe, _, _ := c.begin()
	c.end(early[4], errLost)
	c.end(early[5], nil)
	if c.state() != breaker.StateHalfOpen {
		t.Errorf("%v, the probe is under way", c.state())
	}
	c.end(probe, nil)
	for _, p := range early[6:] {
		c.end(p, errLost)
	}
	if c.state() != breaker.StateClosed {
		t.Errorf("%v after failures that began before the trip", c.state())
	}
	told.want(t, CircuitChange{State: breaker.StateOpen}, CircuitChange{State: breaker.StateClosed, Since: circuitTimeout})
}

// TestCircuitIsABreaker holds the circuit to the pure transitions of the breaker's contract, through
// random calls that end in any order.
func TestCircuitIsABreaker(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		timeout := rapid.Int64Range(1, 300).Draw(t, "open timeout")
		command := rapid.Int64Range(1, 200).Draw(t, "command timeout")
		threshold := rapid.IntRange(1, 4).Draw(t, "failures")
		m := breaker.Machine{
			Threshold: int64(threshold), OpenTimeoutMillis: timeout, MaxProbes: 1, ProbeLeaseMillis: 2 * command, ProbeSuccesses: 1,
			Clock: algorithm.Clock{GraceMillis: algorithm.MaxHorizonMillis},
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		clock := &handClock{}
		c := newCircuit(&CircuitConfig{Failures: threshold, OpenTimeout: time.Duration(timeout) * time.Millisecond}, time.Duration(command)*time.Millisecond)
		c.now = clock.read
		type call struct {
			permit permit
			report breaker.Report
		}
		var stored breaker.Stored
		var calls []call
		now := int64(1)
		clock.now.Store(int64(time.Millisecond))
		for i := range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				by := rapid.Int64Range(0, 400).Draw(t, "ms")
				now += by
				clock.forward(time.Duration(by) * time.Millisecond)
			case 1:
				if len(calls) == 0 {
					continue
				}
				n := rapid.IntRange(0, len(calls)-1).Draw(t, "call")
				ended := calls[n]
				calls = append(calls[:n], calls[n+1:]...)
				result := rapid.SampledFrom([]breaker.Result{breaker.ResultSuccess, breaker.ResultFailure, breaker.ResultNeither}).Draw(t, "result")
				ended.report.Result = result
				_, stored = m.Record(stored, now, ended.report)
				c.end(ended.permit, map[breaker.Result]error{
					breaker.ResultFailure: errLost,
					breaker.ResultNeither: &store.Error{Certainty: store.NotSent, Code: store.CodeCanceled},
				}[result])
			default:
				token := fmt.Sprintf("%032x", i)
				var want breaker.Transition
				want, stored = m.Acquire(stored, now, token)
				peeked, wouldReject := c.rejects()
				p, wait, rejected := c.begin()
				if rejected != (want.Status == breaker.StatusRejected) || wait.Milliseconds() != want.RetryAfterMillis ||
					wouldReject != rejected || peeked != wait {
					t.Fatalf("at %d: rejected %v for %v, foretold %v for %v, want %v for %d ms",
						now, rejected, wait, wouldReject, peeked, want.Status, want.RetryAfterMillis)
				}
				if rejected {
					continue
				}
				kind := breaker.PermitCall
				if want.Status == breaker.StatusProbe {
					kind = breaker.PermitProbe
				}
				if (p.state() == breaker.StateHalfOpen) != (kind == breaker.PermitProbe) {
					t.Fatalf("at %d: a permit of %v, want %v", now, p.state(), kind)
				}
				calls = append(calls, call{p, breaker.Report{
					Kind: kind, Token: token, Generation: want.SinceMillis, AcquiredAt: want.EffectiveNowMillis,
				}})
			}
		}
	})
}

// TestCircuitNeverAllows: under random answers of the store, an evaluation is allowed where the store
// was asked and allowed it, and nowhere else.
func TestCircuitNeverAllows(t *testing.T) {
	t.Parallel()
	answers := []error{nil, errLost, &store.Error{Certainty: store.NotSent, Code: store.CodeConnect}, &store.Error{Certainty: store.NotSent, Code: store.CodeCanceled}}
	rapid.Check(t, func(r *rapid.T) {
		var answer error
		f := storeThat(func(context.Context) (store.Reply, error) { return firstAllowed.reply(), answer })
		l, clock, _ := circuitLimiter(t, f)
		for range rapid.IntRange(1, 60).Draw(r, "evaluations") {
			clock.forward(time.Duration(rapid.Int64Range(0, 300).Draw(r, "ms")) * time.Millisecond)
			answer = rapid.SampledFrom(answers).Draw(r, "answer")
			before := len(f.asked())
			outcome := evaluate(t, l)
			asked := len(f.asked()) > before
			if ratelimit.Allows(outcome) != (asked && answer == nil) {
				r.Fatalf("asked %v, answered %v: %+v", asked, answer, outcome)
			}
			if u, ok := outcome.(ratelimit.Unavailable); !asked && (!ok || u.Category != ratelimit.UnavailableCircuit || u.RetryAfter < time.Millisecond) {
				r.Fatalf("not asked, and yet %+v", outcome)
			}
		}
	})
}

// TestCircuitAndTheSlots: a rejected evaluation gives its slot back, and a limiter that was drained says
// so whatever its circuit says.
func TestCircuitAndTheSlots(t *testing.T) {
	t.Parallel()
	l, _, _ := circuitLimiter(t, storeAnswers(store.Reply{}, errLost), func(c *LimiterConfig) { c.MaxInFlight = 1 })
	for range 3 {
		wantOutcome(t, l, indeterminate)
	}
	for range 3 {
		wantOutcome(t, l, circuitRejects(circuitTimeout))
	}
	if n := l.InFlight(); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
	if err := l.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, l, unavailable(ratelimit.UnavailableClosed))
}

// TestPoliciesShareTheCircuit: it is the store's and not a policy's.
func TestPoliciesShareTheCircuit(t *testing.T) {
	t.Parallel()
	l, _, _ := circuitLimiter(t, storeAnswers(store.Reply{}, errLost))
	set, err := ratelimit.NewPolicySet(policy(t, func(c *ratelimit.RateLimitPolicyConfig) { c.Revision = 2 }))
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.WithPolicies(set)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		evaluate(t, l)
	}
	wantOutcome(t, other, circuitRejects(circuitTimeout))
	if plain := limiterFor(t, storeAnswers(store.Reply{}, errLost)); plain.CircuitState() != breaker.StateInvalid {
		t.Errorf("without a circuit: %v", plain.CircuitState())
	}
}

// TestCircuitOverALostServer: a Redis that goes away costs each caller nothing after the first few, and
// serves again by itself after it is back.
func TestCircuitOverALostServer(t *testing.T) {
	t.Parallel()
	server := startFake(t)
	s := storeFor(t, server.address())
	told := &changeLog{}
	l := limiterFor(t, s, func(c *LimiterConfig) {
		c.Circuit = &CircuitConfig{Failures: 5, OpenTimeout: 10 * time.Millisecond, Changed: told.note}
	})
	if outcome := evaluate(t, l); !ratelimit.Allows(outcome) {
		t.Fatalf("%+v", outcome)
	}
	server.on("EVALSHA", resets)
	circuited := func() bool {
		u, ok := evaluate(t, l).(ratelimit.Unavailable)
		return ok && u.Category == ratelimit.UnavailableCircuit && u.RetryAfter >= time.Millisecond
	}
	eventually(t, "the circuit opens", circuited)
	if n := server.count("EVALSHA"); n < 6 {
		t.Errorf("open after %d evaluations, want five failures", n)
	}
	server.heal()
	eventually(t, "it serves again", func() bool { return ratelimit.Allows(evaluate(t, l)) })
	if l.CircuitState() != breaker.StateClosed {
		t.Errorf("serves while %v", l.CircuitState())
	}
	address := server.address()
	server.stop()
	eventually(t, "it opens again", circuited)
	startFakeAt(t, address, nil)
	eventually(t, "it serves again", func() bool { return ratelimit.Allows(evaluate(t, l)) })
	told.mu.Lock()
	defer told.mu.Unlock()
	if n := len(told.all); n < 4 || told.all[0] != (CircuitChange{State: breaker.StateOpen}) || told.all[n-1].State != breaker.StateClosed {
		t.Errorf("told %v", told.all)
	}
}

// BenchmarkCircuit is what the circuit adds to a call: where there is none, closed, and open.
func BenchmarkCircuit(b *testing.B) {
	config := &CircuitConfig{Failures: 5, OpenTimeout: time.Minute}
	opened := newCircuit(config, time.Second)
	for range config.Failures {
		p, _, _ := opened.begin()
		opened.end(p, errLost)
	}
	for name, c := range map[string]*circuit{"none": nil, "closed": newCircuit(config, time.Second), "open": opened} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, rejected := c.rejects(); rejected {
						continue
					}
					if p, _, rejected := c.begin(); !rejected {
						c.end(p, nil)
					}
				}
			})
		})
	}
}

// BenchmarkOpenCircuit is a whole evaluation while the store is lost.
func BenchmarkOpenCircuit(b *testing.B) {
	l := limiterFor(b, storeAnswers(store.Reply{}, errLost), func(c *LimiterConfig) {
		c.Circuit = &CircuitConfig{Failures: 1, OpenTimeout: time.Minute}
	})
	evaluate(b, l)
	r := request(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Evaluate(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	if l.CircuitState() != breaker.StateOpen || !strings.Contains(fmt.Sprint(evaluate(b, l)), "CIRCUIT") {
		b.Fatal("the circuit is not open")
	}
}
