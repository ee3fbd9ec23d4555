package service

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/lanes"
)

const oneSubject = `{"subject":"one"}`

// deep is a policy that no test empties and whose first token comes back after 50 minutes: whatever
// was spent shows in what is left, whatever the time of day.
const (
	deepLimit = 1_000_000
	deep      = "deep: {revision: 1, algorithm: token-bucket, capacity: 1000000, refill-tokens: 1, refill-period: 50m}"
)

// TestScriptFlushUnderLoad empties the script cache again and again while callers ask: nobody notices,
// and the sum is exact.
func TestScriptFlushUnderLoad(t *testing.T) {
	t.Parallel()
	server := lanes.StartProcess(t, lanes.Options{})
	client := connect(t, server.Addr)
	s := serveReady(t, settings{address: server.Addr, namespace: namespace(), policies: deep}.file(t))

	stop := background(t, s, 8, oneSubject)
	for flush := range 50 {
		before := commandCounts(t, client)["eval"]
		do(t, client, "SCRIPT", "FLUSH")
		eventually(t, "a caller loads the program again", func() error {
			if commandCounts(t, client)["eval"] == before {
				return fmt.Errorf("no EVAL after flush %d", flush+1)
			}
			return nil
		})
	}
	var left []int64
	for _, a := range slices.Concat(stop()...) {
		if a.word() != "EVALUATED" || !a.Decision.Allowed {
			t.Fatalf("%+v", a)
		}
		left = append(left, a.Decision.Remaining)
	}
	t.Logf("%d evaluations over 50 flushes, %d EVAL", len(left), commandCounts(t, client)["eval"])
	// Each took one token: the remainders are all those from the top, each once.
	slices.Sort(left)
	for i, remaining := range left {
		if want := int64(deepLimit - len(left) + i); remaining != want {
			t.Fatalf("place %d of %d: %d left, want %d", i, len(left), remaining, want)
		}
	}
}

// TestRedisRestartedEmptyInMidBurst loses the data set and the script cache while callers ask. What
// they are told is a decision, or honestly none, and the service is ready again by itself.
func TestRedisRestartedEmptyInMidBurst(t *testing.T) {
	t.Parallel()
	server := lanes.StartProcess(t, lanes.Options{})
	s := serveReady(t, settings{address: server.Addr, namespace: namespace(), policies: deep}.file(t))

	var answers []answer
	spentAtLeast := func(n int64) {
		t.Helper()
		eventually(t, "callers are served", func() error {
			a := s.one(oneSubject)
			answers = append(answers, a)
			if a.Outcome != "EVALUATED" || a.Decision.Remaining > deepLimit-n {
				return fmt.Errorf("%+v", a)
			}
			return nil
		})
	}
	stop := background(t, s, 16, oneSubject)
	spentAtLeast(300)
	server.Kill()
	server.Restart()
	s.awaitReady()
	spentAtLeast(300)
	answers = slices.Concat(append(stop(), answers)...)

	// The bucket is full 50 minutes for each spent token after the first one was spent: so each decision
	// says which data set it was made on.
	lives := map[int64][]int64{}
	undecided := map[string]int{}
	for _, a := range answers {
		switch {
		case a.Outcome == "EVALUATED" && a.Decision.Allowed:
			spent := deepLimit - a.Decision.Remaining
			began := a.Decision.ResetAtMillis - spent*(50*time.Minute).Milliseconds()
			lives[began] = append(lives[began], spent)
		case a.Outcome == "UNAVAILABLE", a.Outcome == "INDETERMINATE":
			undecided[a.word()]++
		default:
			t.Fatalf("%+v", a)
		}
	}
	if len(lives) != 2 {
		t.Fatalf("decisions were made on %d data sets", len(lives))
	}
	unknown := int64(undecided["INDETERMINATE"])
	for began, spent := range lives {
		slices.Sort(spent)
		told, most := int64(len(spent)), spent[len(spent)-1]
		t.Logf("data set of %v: %d decisions, %d spent", time.UnixMilli(began).UTC(), told, most)
		if len(slices.Compact(spent)) != int(told) {
			t.Errorf("two callers were told the same decision")
		}
		// Nothing is spent beside what was told, but what nobody knows of.
		if most < told || most > told+unknown {
			t.Errorf("%d told, %d spent, %d indeterminate", told, most, unknown)
		}
	}
	t.Logf("undecided: %v", undecided)
}

// stalled is a service whose Redis answers nothing any more.
func stalled(t *testing.T) (*lanes.Process, *instance) {
	t.Helper()
	server := lanes.StartProcess(t, lanes.Options{})
	s := serveReady(t, settings{address: server.Addr, namespace: namespace(), policies: deep, timeout: 100 * time.Millisecond}.file(t))
	s.becomes(oneSubject, "EVALUATED")
	server.Pause()
	return server, s
}

// TestBlackHole holds every answer to be one while Redis accepts and never answers, and the service to
// be as it was when Redis answers again.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	server, s := stalled(t)
	// The bound of each is the client's: it is many times the command timeout.
	words := map[string]int{}
	for _, a := range burst(t, []*instance{s}, 64, 2000, oneSubject) {
		if a.Outcome != "UNAVAILABLE" && a.Outcome != "INDETERMINATE" {
			t.Errorf("%+v", a)
		}
		words[a.word()]++
	}
	t.Logf("%v", words)
	if status, _ := s.get("/livez"); status != 200 {
		t.Errorf("livez %d", status)
	}
	eventually(t, "readyz tells of it", func() error {
		if status, body := s.get("/readyz"); status != 503 || !strings.Contains(body, `"reason":"`) {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	server.Resume()
	s.becomes(oneSubject, "EVALUATED")
	s.awaitReady()
}

// TestBlackHoleLeavesNothingBehind asks for the stacks of a service that has just answered many calls
// without its Redis: none of them is still at it.
func TestBlackHoleLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	_, s := stalled(t)
	burst(t, []*instance{s}, 64, 1000, oneSubject)
	s.signal(syscall.SIGQUIT) // writes all stacks and ends
	if code := s.wait(); code != 2 {
		t.Errorf("exit code %d", code)
	}
	log := s.log()
	if n := strings.Count(log, "\ngoroutine "); n < 2 || n > 200 {
		t.Errorf("%d goroutines: %s", n, log)
	}
	for _, frame := range []string{"(*EdgeRateLimiter).Evaluate", "(*api).evaluate", "(*Store).Eval"} {
		if n := strings.Count(log, frame); n > 0 {
			t.Errorf("%d evaluations are still under way (%s): %s", n, frame, log)
		}
	}
}

// TestStartsWithoutRedis holds the service to run without its Redis, to say so, and to need nobody when
// it comes.
func TestStartsWithoutRedis(t *testing.T) {
	t.Parallel()
	server := lanes.StartProcess(t, lanes.Options{})
	server.Stop()
	s := serve(t, settings{address: server.Addr, namespace: namespace(), policies: deep}.file(t))
	if status, body := s.get("/livez"); status != 200 {
		t.Errorf("livez %d %s", status, body)
	}
	eventually(t, "readyz names the reason", func() error {
		if status, body := s.get("/readyz"); status != 503 || !strings.Contains(body, `"status":"not-ready","reason":"`) || !strings.Contains(body, "connection refused") {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	for range 10 {
		if a := s.one(oneSubject); a.word() != "UNAVAILABLE NOT_READY" || *a.RetryAfterMillis != 1000 || a.PolicyID != "deep" {
			t.Errorf("%+v", a)
		}
	}
	server.Restart()
	s.awaitReady()
	if a := s.one(oneSubject); a.word() != "EVALUATED" || a.Decision.Remaining != deepLimit-1 {
		t.Errorf("%+v", a)
	}
}

// TestDeadlineIsJudgedBeforehand holds a caller with less time than one command may take to be told so,
// with nothing sent.
func TestDeadlineIsJudgedBeforehand(t *testing.T) {
	t.Parallel()
	server := lanes.StartProcess(t, lanes.Options{})
	client := connect(t, server.Addr)
	s := serveReady(t, settings{address: server.Addr, namespace: namespace(), policies: deep}.file(t))
	before := commandCounts(t, client)["evalsha"]
	if a := s.one(`{"subject":"one","deadlineMillis":9999}`); a.word() != "UNAVAILABLE DEADLINE" {
		t.Errorf("%+v", a)
	}
	if sent := commandCounts(t, client)["evalsha"] - before; sent != 0 {
		t.Errorf("%d sent", sent)
	}
	if a := s.one(`{"subject":"one","deadlineMillis":20000}`); a.word() != "EVALUATED" || a.Decision.Remaining != deepLimit-1 {
		t.Errorf("%+v", a)
	}
}
