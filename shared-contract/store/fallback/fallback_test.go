package fallback

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake answers every method with one error, or with what it is.
type fake struct {
	name  string
	clock store.ClockSource

	mu     sync.Mutex
	err    error
	ping   error
	calls  int
	pings  int
	closed int
}

func (f *fake) answer(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if _, ok := ctx.Deadline(); !ok {
		return "", errors.New("no deadline reached the store")
	}
	return f.name, f.err
}

func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.ping = err, err
}

func (f *fake) counts() (calls, pings int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls, f.pings
}

func (f *fake) Get(ctx context.Context, _ string) (string, error) { return f.answer(ctx) }
func (f *fake) Set(ctx context.Context, _, _ string, _ time.Duration) error {
	_, err := f.answer(ctx)
	return err
}

func (f *fake) SetNX(ctx context.Context, _, _ string, _ time.Duration) (bool, error) {
	_, err := f.answer(ctx)
	return true, err
}

func (f *fake) GetSet(ctx context.Context, _, _ string, _ time.Duration) (string, error) {
	return f.answer(ctx)
}

func (f *fake) IncrBy(ctx context.Context, _ string, _ int64, _ time.Duration) (int64, error) {
	_, err := f.answer(ctx)
	return int64(len(f.name)), err
}

func (f *fake) Del(ctx context.Context, _ ...string) (int64, error) {
	_, err := f.answer(ctx)
	return int64(len(f.name)), err
}

func (f *fake) Eval(ctx context.Context, _ *store.Program, _ []string, _ []any) (store.Reply, error) {
	name, err := f.answer(ctx)
	reply, _ := store.NewReply(store.Text(name))
	return reply, err
}

func (f *fake) Ping(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pings++
	return f.ping
}

func (f *fake) Source() store.Source {
	if f.name == "primary" {
		return store.SourceGlobalRedis
	}
	return store.SourceLocalMemory
}
func (f *fake) Clock() store.ClockSource { return f.clock }
func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return fmt.Errorf("close %s", f.name)
}

// pair is a decorated store with both of its stores in the hands of a test.
type pair struct {
	*Store
	primary, secondary *fake
	now                atomic.Int64
	mu                 sync.Mutex
	switches           []Switch
}

const holdOff = time.Second

func newPair(t testing.TB, change ...func(c *Config)) *pair {
	t.Helper()
	p := &pair{primary: &fake{name: "primary", clock: store.ClockServer}, secondary: &fake{name: "secondary", clock: store.ClockServer}}
	p.now.Store(1_700_000_000_000_000_000)
	config := Config{
		HoldOff: holdOff, ProbeTimeout: holdOff / 2, Clock: func() time.Time { return time.Unix(0, p.now.Load()) },
		OnSwitch: func(s Switch) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.switches = append(p.switches, s)
		},
	}
	for _, f := range change {
		f(&config)
	}
	var err error
	if p.Store, err = New(p.primary, p.secondary, config); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pair) pass(d time.Duration) { p.now.Add(d.Nanoseconds()) }

func failure(certainty store.Certainty, code store.Code) error {
	return fmt.Errorf("wrapped: %w", &store.Error{Op: "x", Certainty: certainty, Code: code})
}

func deadlined(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// served makes one call and requires which store served it.
func (p *pair) served(t testing.TB, want Side) {
	t.Helper()
	ctx, m := WithMark(deadlined(t))
	name, err := p.Get(ctx, "k")
	if err != nil || name != want.String() || m.Served() != want {
		t.Errorf("served by %q, marked %v, %v; want %v", name, m.Served(), err, want)
	}
}

// TestEveryCode: each code of the store, at each certainty, with what it means.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	unsent := map[store.Code]Reach{
		store.CodeInvalid: Answered, store.CodeInvalidArgument: Answered, store.CodeUnknownProgram: Answered, store.CodeNotReady: Gone,
		store.CodeClosed: Answered, store.CodeCanceled: Ended, store.CodeDeadline: Gone, store.CodePoolExhausted: Gone, store.CodeQueueFull: Gone,
		store.CodeConnect: Gone, store.CodeTLS: Gone, store.CodeHandshake: Gone, store.CodeAuthentication: Answered,
		store.CodeServerVersion: Answered, store.CodeConnectionLost: Gone, store.CodeCapacity: Answered, store.CodeNotInteger: Answered,
		store.CodeOutOfRange: Answered, store.CodeLoading: Gone, store.CodeReadOnly: Gone, store.CodeMasterDown: Gone, store.CodeClusterDown: Gone,
		store.CodeMoved: Answered, store.CodePermission: Answered, store.CodeOutOfMemory: Answered, store.CodePersistence: Answered,
		store.CodeReplicas: Answered, store.CodeBusy: Gone, store.CodeProgramFailed: Answered, store.CodeWrongType: Answered, store.CodeReply: Answered,
	}
	uncertain := map[store.Code]Reach{store.CodeDeadline: Lost, store.CodeConnectionLost: Lost, store.CodeCanceled: Ended}
	codes := 0
	for code := store.Code(0); code == store.CodeInvalid || code.String() != "invalid"; code++ {
		codes++
		for _, certainty := range []store.Certainty{store.CertaintyInvalid, store.NotSent, store.Refused, store.Uncertain, store.Mismatched, 99} {
			want := Answered
			switch certainty {
			case store.NotSent, store.Refused:
				want = unsent[code]
			case store.Uncertain:
				if reach, ok := uncertain[code]; ok {
					want = reach
				}
			case store.Mismatched, store.CertaintyInvalid:
			}
			err := failure(certainty, code)
			if got := Unreachable(deadlined(t), err); got != want {
				t.Errorf("%v (%v) means %d, want %d", code, certainty, got, want)
			}
			for _, serveUncertain := range []bool{false, true} {
				p := newPair(t, func(c *Config) { c.ServeUncertain = serveUncertain })
				p.primary.fail(err)
				ctx, m := WithMark(deadlined(t))
				_, got := p.Get(ctx, "k")
				fromSecond := want == Gone || want == Lost && serveUncertain
				if fromSecond != (got == nil) || fromSecond != (m.Served() == SideSecondary) || !fromSecond && got != err { //nolint:errorlint // The very error.
					t.Errorf("%v (%v), serving uncertain ones %v: %v, served by %v", code, certainty, serveUncertain, got, m.Served())
				}
				if away := want == Gone || want == Lost; away != (p.Serving() == SideSecondary) || away != (len(p.switches) == 1) {
					t.Errorf("%v (%v): %v serves after %d switches", code, certainty, p.Serving(), len(p.switches))
				}
			}
		}
	}
	if codes != len(unsent) {
		t.Errorf("%d codes, this test knows %d", codes, len(unsent))
	}
}

// TestOtherOutcomes: success, a key that is not there and foreign errors are answers.
func TestOtherOutcomes(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, store.ErrNotFound, errors.New("x"), context.DeadlineExceeded} {
		if got := Unreachable(deadlined(t), err); got != Answered {
			t.Errorf("%v means %d", err, got)
		}
	}
	ended, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for _, certainty := range []store.Certainty{store.NotSent, store.Uncertain} {
		if got := Unreachable(ended, failure(certainty, store.CodeDeadline)); got != Ended {
			t.Errorf("a caller's own deadline (%v) means %d", certainty, got)
		}
		if got := Unreachable(ended, failure(certainty, store.CodeConnectionLost)); got != map[store.Certainty]Reach{store.NotSent: Gone, store.Uncertain: Lost}[certainty] {
			t.Errorf("a broken connection (%v) means %d", certainty, got)
		}
	}
}

// TestEveryMethod goes where the others go.
func TestEveryMethod(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(ctx context.Context, s store.Store) (any, error){
		"Get":    func(ctx context.Context, s store.Store) (any, error) { return s.Get(ctx, "k") },
		"GetSet": func(ctx context.Context, s store.Store) (any, error) { return s.GetSet(ctx, "k", "v", time.Second) },
		"Set":    func(ctx context.Context, s store.Store) (any, error) { return nil, s.Set(ctx, "k", "v", time.Second) },
		"SetNX":  func(ctx context.Context, s store.Store) (any, error) { return s.SetNX(ctx, "k", "v", time.Second) },
		"IncrBy": func(ctx context.Context, s store.Store) (any, error) { return s.IncrBy(ctx, "k", 1, time.Second) },
		"Del":    func(ctx context.Context, s store.Store) (any, error) { return s.Del(ctx, "k", "l") },
		"Eval": func(ctx context.Context, s store.Store) (any, error) {
			return s.Eval(ctx, store.StoreIncrByV1, nil, nil)
		},
		"Ping": func(ctx context.Context, s store.Store) (any, error) { return nil, s.Ping(ctx) },
	} {
		for _, side := range []Side{SidePrimary, SideSecondary} {
			p := newPair(t)
			served := p.primary
			if side == SideSecondary {
				p.primary.fail(failure(store.NotSent, store.CodeConnect))
				served = p.secondary
			}
			want, wantErr := call(deadlined(t), served)
			ctx, m := WithMark(deadlined(t))
			got, err := call(ctx, p)
			if got != want || err != nil || wantErr != nil || m.Served() != side {
				t.Errorf("%s by %v: %v, %v, marked %v; want %v, %v", name, side, got, err, m.Served(), want, wantErr)
			}
		}
	}
}

// TestReturns: the primary is not asked during the hold-off, one call probes after it, and a failed probe
// begins it anew. Each switch is told once.
func TestReturns(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.served(t, SidePrimary)
	down := failure(store.Refused, store.CodeReadOnly)
	p.primary.fail(down)
	for range 5 {
		p.served(t, SideSecondary)
	}
	if calls, pings := p.primary.counts(); calls != 2 || pings != 0 {
		t.Errorf("%d calls and %d pings of the primary", calls, pings)
	}
	p.pass(holdOff - 1)
	p.served(t, SideSecondary)
	p.pass(1)
	for range 3 {
		p.served(t, SideSecondary) // The first of them probes in vain.
	}
	if calls, pings := p.primary.counts(); calls != 2 || pings != 1 {
		t.Errorf("%d calls and %d pings of the primary", calls, pings)
	}
	// A demoted server answers pings: only a call that is served ends the outage.
	p.primary.mu.Lock()
	p.primary.ping = nil
	p.primary.mu.Unlock()
	p.pass(holdOff)
	p.served(t, SideSecondary)
	if calls, pings := p.primary.counts(); calls != 3 || pings != 2 {
		t.Errorf("%d calls and %d pings of the primary", calls, pings)
	}
	p.primary.fail(nil)
	p.served(t, SideSecondary)
	p.pass(holdOff)
	p.served(t, SidePrimary)
	p.served(t, SidePrimary)
	if len(p.switches) != 2 || p.switches[0] != (Switch{SideSecondary, down}) || p.switches[1] != (Switch{To: SidePrimary}) {
		t.Errorf("switches %v", p.switches)
	}
}

// TestEndedCallersTellNothing: they neither switch nor probe.
func TestEndedCallersTellNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	ended, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	p.primary.fail(failure(store.NotSent, store.CodeDeadline))
	if _, err := p.Get(ended, "k"); err == nil || p.Serving() != SidePrimary {
		t.Errorf("%v, %v serves", err, p.Serving())
	}
	p.served(t, SideSecondary)
	p.pass(holdOff)
	_, before := p.primary.counts()
	if _, err := p.Get(ended, "k"); err != nil {
		t.Error(err)
	}
	if _, after := p.primary.counts(); after != before {
		t.Error("a caller whose time is over probed")
	}
}

// TestBothFail: the caller gets what the secondary said, and knows whose word it is.
func TestBothFail(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.primary.fail(failure(store.NotSent, store.CodeConnect))
	full := failure(store.Refused, store.CodeCapacity)
	p.secondary.fail(full)
	ctx, m := WithMark(deadlined(t))
	if _, err := p.Get(ctx, "k"); err != full || m.Served() != SideSecondary { //nolint:errorlint // The very error.
		t.Errorf("%v, marked %v", err, m.Served())
	}
}

// TestManyCallers: a thousand failures at once are one switch, and one call probes.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	together := func() {
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for range 20 {
					if _, err := p.Get(deadlined(t), "k"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	for round := 1; round <= 5; round++ {
		p.primary.fail(failure(store.NotSent, store.CodeConnect))
		together()
		if n := len(p.switches); n != 2*round-1 || p.Serving() != SideSecondary {
			t.Fatalf("round %d: %d switches, %v serves", round, n, p.Serving())
		}
		_, before := p.primary.counts()
		p.pass(holdOff)
		together()
		if _, after := p.primary.counts(); after != before+1 {
			t.Fatalf("round %d: %d probes", round, after-before)
		}
		p.primary.fail(nil)
		p.pass(holdOff)
		together()
		if n := len(p.switches); n != 2*round || p.Serving() != SidePrimary {
			t.Fatalf("round %d: %d switches, %v serves", round, n, p.Serving())
		}
	}
}

// TestLateFailure: one of a call that began before the primary came back does not end the new phase.
func TestLateFailure(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	old := p.phase.Load()
	p.primary.fail(failure(store.NotSent, store.CodeConnect))
	p.served(t, SideSecondary)
	p.primary.fail(nil)
	p.pass(holdOff)
	p.served(t, SidePrimary)
	p.change(old, SideSecondary, errors.New("late"))
	if p.Serving() != SidePrimary || len(p.switches) != 2 {
		t.Errorf("%v serves after %d switches", p.Serving(), len(p.switches))
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	first, other := &fake{name: "primary", clock: store.ClockServer}, &fake{name: "secondary", clock: store.ClockCaller}
	good := Config{HoldOff: time.Second, ProbeTimeout: time.Second}
	for name, row := range map[string]struct {
		primary, secondary store.Store
		config             Config
		want               []string
	}{
		"all at once": {nil, nil, Config{}, []string{"a store that is nil", "HoldOff is 0s, want 1ms..1h0m0s", "ProbeTimeout is 0s, want 1ms..HoldOff"}},
		"the same":    {first, first, good, []string{"are the same store"}},
		"clocks":      {first, other, good, []string{"the other by the caller's"}},
		"long":        {first, &fake{clock: store.ClockServer}, Config{HoldOff: MaxHoldOff + 1, ProbeTimeout: 1}, []string{"HoldOff is", "ProbeTimeout is 1ns"}},
		"long probe":  {first, &fake{clock: store.ClockServer}, Config{HoldOff: time.Second, ProbeTimeout: time.Second + 1}, []string{"ProbeTimeout is 1.000000001s"}},
	} {
		_, err := New(row.primary, row.secondary, row.config)
		for _, want := range row.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", name, err, want)
			}
		}
	}
	s, err := New(first, &fake{name: "secondary", clock: store.ClockServer}, good)
	if err != nil || s.Source() != store.SourceGlobalRedis || s.Clock() != store.ClockServer {
		t.Fatalf("%v", err)
	}
	if _, err := s.Get(deadlined(t), "k"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "close primary") || !strings.Contains(err.Error(), "close secondary") {
		t.Errorf("Close gives %v", err)
	}
	for side, word := range map[Side]string{SideInvalid: "invalid", SidePrimary: "primary", SideSecondary: "secondary", 99: "invalid"} {
		if side.String() != word {
			t.Errorf("%d is %s", side, side)
		}
	}
	if new(Mark).Served() != SideInvalid {
		t.Error("a mark that served nothing")
	}
}
