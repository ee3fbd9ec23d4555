package breaker_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// scripted answers what it is told to and remembers what it was told.
type scripted struct {
	acquire  breaker.AcquireOutcome
	refuse   error
	record   breaker.RecordOutcome
	recorded []breaker.RecordRequest
	contexts []error // of each Record, whether its context had ended
	deadline bool    // of the last Record
}

func (s *scripted) Acquire(context.Context, breaker.AcquireRequest) (breaker.AcquireOutcome, error) {
	return s.acquire, s.refuse
}

func (s *scripted) Record(ctx context.Context, r breaker.RecordRequest) (breaker.RecordOutcome, error) {
	s.recorded = append(s.recorded, r)
	s.contexts = append(s.contexts, ctx.Err())
	_, s.deadline = ctx.Deadline()
	return s.record, nil
}

func (s *scripted) Read(context.Context, breaker.ReadRequest) (breaker.ReadOutcome, error) {
	return nil, errors.New("not asked")
}

var (
	callPermit  = breaker.Permit{PolicyID: "p", PolicyRevision: 1, Kind: breaker.PermitCall, Token: strings.Repeat("a", 32)}
	probePermit = breaker.Permit{PolicyID: "p", PolicyRevision: 1, Kind: breaker.PermitProbe, Token: strings.Repeat("b", 32)}
	errResource = errors.New("the resource failed")
)

func permitting(p breaker.Permit) *scripted {
	return &scripted{acquire: breaker.Permitted{Permit: p}, record: breaker.Recorded{PolicyID: "p", Status: breaker.StatusCounted}}
}

func TestDoRecordsWhatBecameOfTheCall(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // A case.
		permit breaker.Permit
		err    error
		result breaker.Result
		told   int
	}{
		"success":                          {t.Context(), callPermit, nil, breaker.ResultSuccess, 1},
		"failure":                          {t.Context(), callPermit, errResource, breaker.ResultFailure, 1},
		"a context error of fn's own":      {t.Context(), callPermit, context.Canceled, breaker.ResultFailure, 1},
		"success though the caller went":   {ended, callPermit, nil, breaker.ResultSuccess, 1},
		"the caller went":                  {ended, callPermit, context.Canceled, breaker.ResultNeither, 0},
		"the caller of a probe went":       {ended, probePermit, context.Canceled, breaker.ResultNeither, 1},
		"the caller's deadline was passed": {late, probePermit, context.DeadlineExceeded, breaker.ResultFailure, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := permitting(c.permit)
			outcome, err := breaker.Do(c.ctx, port, breaker.AcquireRequest{}, func(context.Context) error { return c.err })
			protected, ok := outcome.(breaker.Protected)
			if !ok || !errors.Is(err, c.err) || protected.Result != c.result || protected.Permit != c.permit {
				t.Fatalf("%+v, %v", outcome, err)
			}
			if len(port.recorded) != c.told || (protected.Recorded != nil) != (c.told == 1) {
				t.Fatalf("told %d times, outcome %+v", len(port.recorded), protected.Recorded)
			}
			if c.told == 1 && (port.recorded[0].Permit != c.permit || port.recorded[0].Result != c.result || port.contexts[0] != nil || !port.deadline) {
				t.Errorf("told %+v, its context ended: %v, deadline %v", port.recorded[0], port.contexts[0], port.deadline)
			}
		})
	}
}

// TestDoRunsWhereTheStoreIsDown: the one door that opens without its store.
func TestDoRunsWhereTheStoreIsDown(t *testing.T) {
	t.Parallel()
	for _, failure := range []breaker.AcquireOutcome{
		breaker.Unavailable{PolicyID: "p", RetryAfter: time.Second, Category: ratelimit.UnavailableConnection},
		breaker.Indeterminate{PolicyID: "p", RetryAfter: time.Second},
		breaker.Incompatible{PolicyID: "p", Category: ratelimit.IncompatibleState},
	} {
		port := &scripted{acquire: failure}
		for _, want := range []error{nil, errResource} {
			ran := 0
			outcome, err := breaker.Do(t.Context(), port, breaker.AcquireRequest{}, func(context.Context) error { ran++; return want })
			if ran != 1 || !errors.Is(err, want) || outcome != (breaker.Unprotected{Reason: failure}) {
				t.Errorf("%T: ran %d times, %+v, %v", failure, ran, outcome, err)
			}
		}
		if len(port.recorded) != 0 {
			t.Errorf("%T: told %+v", failure, port.recorded)
		}
	}
}

func TestDoDoesNotRun(t *testing.T) {
	t.Parallel()
	never := func(context.Context) error { t.Error("ran"); return nil }
	rejected := breaker.Rejected{PolicyID: "p", State: breaker.StateOpen, RetryAfter: 3 * time.Second}
	outcome, err := breaker.Do(t.Context(), &scripted{acquire: rejected}, breaker.AcquireRequest{}, never)
	var blocked *breaker.RejectedError
	if outcome != (breaker.Blocked{Rejected: rejected}) || !errors.As(err, &blocked) || blocked.Rejected != rejected ||
		err.Error() != "breaker: p is open, retry after 3s" {
		t.Errorf("%+v, %v", outcome, err)
	}
	refused := &breaker.InvalidRequestError{Fault: breaker.FaultResource}
	if outcome, err := breaker.Do(t.Context(), &scripted{refuse: refused}, breaker.AcquireRequest{}, never); outcome != nil || !errors.Is(err, refused) {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestDoKeepsTheResultOfTheFunction where its result cannot be told.
func TestDoKeepsTheResultOfTheFunction(t *testing.T) {
	t.Parallel()
	port := permitting(callPermit)
	port.record = breaker.Indeterminate{PolicyID: "p", RetryAfter: time.Second}
	outcome, err := breaker.Do(t.Context(), port, breaker.AcquireRequest{}, func(context.Context) error { return nil })
	if err != nil || outcome != (breaker.Protected{Permit: callPermit, Result: breaker.ResultSuccess, Recorded: port.record}) {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestDoCountsAPanic as a failure, once, and lets it go on.
func TestDoCountsAPanic(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("broken") },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		port := permitting(probePermit)
		var seen any
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { seen = recover() }()
			_, _ = breaker.Do(t.Context(), port, breaker.AcquireRequest{}, fn)
			t.Errorf("%s: Do returned", name)
		}()
		<-done
		if want := map[string]any{"panic": "broken", "goexit": nil}[name]; seen != want {
			t.Errorf("%s: recovered %v, want %v", name, seen, want)
		}
		if len(port.recorded) != 1 || port.recorded[0].Result != breaker.ResultFailure || port.recorded[0].Permit != probePermit {
			t.Errorf("%s: told %+v", name, port.recorded)
		}
	}
}
