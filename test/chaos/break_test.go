package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// breakage is a rule of the product that a run of the suite breaks on purpose, to show that it notices.
type breakage string

const (
	// breakNothing is the usual run.
	breakNothing breakage = ""
	// breakRetry sends a program again where the reply to it is missing.
	breakRetry breakage = "retry"
	// breakAllow takes a missing reply for an admission.
	breakAllow breakage = "allow"
	// breakMixup gives two callers each other's reply, as a late reply that stays in a connection would.
	breakMixup breakage = "mixup"
)

// broken is the store of a run.
func broken(s store.Store) store.Store {
	switch breakage(*breaking) {
	case breakRetry:
		return retrying{s}
	case breakMixup:
		return &mixing{Store: s}
	case breakNothing, breakAllow:
	}
	return s
}

// brokenPort is the limiter of a run.
func brokenPort(p ratelimit.EdgeRateLimitPort) ratelimit.EdgeRateLimitPort {
	if breakage(*breaking) == breakAllow {
		return allowing{p}
	}
	return p
}

// retrying breaks the rule that nothing is sent twice.
type retrying struct{ store.Store }

// Eval sends again what was sent and not answered.
func (r retrying) Eval(ctx context.Context, program *store.Program, keys []string, args []any) (store.Reply, error) {
	reply, err := r.Store.Eval(ctx, program, keys, args)
	var failure *store.Error
	if errors.As(err, &failure) && failure.Certainty == store.Uncertain {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return r.Store.Eval(again, program, keys, args)
	}
	return reply, err
}

// mixing breaks the rule that a reply is its caller's.
type mixing struct {
	store.Store

	mu     sync.Mutex
	parked chan parcel // of a caller that waits for another one
}

// parcel is what a caller of mixing was to be told.
type parcel struct {
	reply store.Reply
	err   error
}

// Eval gives its reply to another caller of the same program, where one comes soon, and that one's to
// its own.
func (m *mixing) Eval(ctx context.Context, program *store.Program, keys []string, args []any) (store.Reply, error) {
	reply, err := m.Store.Eval(ctx, program, keys, args)
	own := parcel{reply, err}
	m.mu.Lock()
	if other := m.parked; other != nil {
		m.parked = nil
		m.mu.Unlock()
		theirs := <-other
		other <- own
		return theirs.reply, theirs.err
	}
	mine := make(chan parcel)
	m.parked = mine
	m.mu.Unlock()
	select {
	case mine <- own:
		got := <-mine
		return got.reply, got.err
	case <-time.After(20 * time.Millisecond):
	}
	m.mu.Lock()
	if m.parked == mine {
		m.parked = nil
		m.mu.Unlock()
		return reply, err
	}
	m.mu.Unlock()
	mine <- own
	got := <-mine
	return got.reply, got.err
}

// allowing breaks the rule that only a decision admits.
type allowing struct{ ratelimit.EdgeRateLimitPort }

// Evaluate admits what is not known.
func (a allowing) Evaluate(ctx context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	outcome, err := a.EdgeRateLimitPort.Evaluate(ctx, request)
	if unknown, ok := outcome.(ratelimit.Indeterminate); ok {
		return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: true, PolicyID: unknown.PolicyID}}, err
	}
	return outcome, err
}

// TestSuiteFindsBrokenRules breaks one rule of the product at a time, in a process of its own, under the
// faults in which it matters. The schedule must fail there, and for that reason.
func TestSuiteFindsBrokenRules(t *testing.T) {
	t.Parallel()
	if breakage(*breaking) != breakNothing {
		t.Fatal("a broken run must run the schedule alone")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for broken, row := range map[breakage]struct {
		faults string
		finds  string
	}{
		breakNothing: {"swallow-reply,half-command,half-reply,delay-reply", ""},
		breakRetry:   {"swallow-reply,half-reply", "more was spent than anybody was told"},
		breakAllow:   {"half-command,swallow-command", "less was spent than allowed"},
		breakMixup:   {"delay-reply,pause", "has no write of its own"},
	} {
		t.Run(or(string(broken), "nothing"), func(t *testing.T) {
			t.Parallel()
			command := exec.Command(self, "-test.run=^TestSchedule$", "-test.count=1", "-test.v",
				"-break="+string(broken), "-only="+row.faults, fmt.Sprintf("-seed=%d", *seedFlag))
			output, err := command.CombinedOutput()
			switch {
			case broken == breakNothing && err != nil:
				t.Errorf("the schedule fails where nothing is broken: %v\n%s", err, output)
			case broken == breakNothing:
			case err == nil:
				t.Errorf("the schedule passes with a broken rule:\n%s", output)
			case strings.Contains(string(output), "panic: "):
				t.Errorf("the schedule panics:\n%s", output)
			case !strings.Contains(string(output), row.finds):
				t.Errorf("the schedule does not find that %s:\n%s", row.finds, output)
			default:
				t.Log(firstWith(string(output), row.finds))
			}
		})
	}
}

// firstWith is the first line that holds a text.
func firstWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
