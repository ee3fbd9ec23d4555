package contracttest

import (
	"sync"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func concurrencyTests() []contractTest {
	return []contractTest{
		{name: "HotKey", runEach: hotKey},
		{name: "HotKeyTwoInstances", needs: needs(CapabilityShare), runEach: hotKeyTwoInstances},
		{name: "InstancesShareState", needs: needs(CapabilityShare), runEach: instancesShareState},
		{name: "ManyKeys", runEach: manyKeys},
	}
}

// rush asks calls times at once, through the limiters in turn, for subjects in turn, and counts
// admissions by subject. Anything but Evaluated fails the test: contention is no reason to give up.
func (h *harness) rush(limiters []ratelimit.EdgeRateLimitPort, p *ratelimit.RateLimitPolicy, subjects []ratelimit.SubjectDigest, calls int, cost int64) []int64 {
	h.Helper()
	outcomes := make([]ratelimit.Outcome, calls)
	faults := make([]error, calls)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			<-start
			outcomes[i], faults[i] = h.ask(limiters[i%len(limiters)], p, subjects[i%len(subjects)], cost)
		})
	}
	close(start)
	wg.Wait()
	admitted := make([]int64, len(subjects))
	for i, outcome := range outcomes {
		if faults[i] != nil {
			h.Fatal(faults[i])
		}
		if _, ok := outcome.(ratelimit.Evaluated); !ok {
			h.Fatalf("under contention: %+v", outcome)
		}
		if ratelimit.Allows(outcome) {
			admitted[i%len(subjects)]++
		}
	}
	return admitted
}

// hotKey: 100 goroutines on one key with a limit of 100 are all admitted, and of any more none.
// Costs above one fill it as far as they go. Casebook 8.
func hotKey(h *harness, k kind) {
	const limit = 100
	p := h.policy(k.config("hot", limit, year))
	l := []ratelimit.EdgeRateLimitPort{h.b.New(h, p)}
	for i, c := range []struct {
		calls    int
		cost     int64
		admitted int64
	}{{100, 1, 100}, {250, 1, 100}, {100, 3, 33}, {64, 100, 1}, {64, 51, 1}} {
		subject := h.subject(i)
		if got := h.rush(l, p, []ratelimit.SubjectDigest{subject}, c.calls, c.cost); got[0] != c.admitted {
			h.Errorf("%d calls of cost %d at once: %d admitted, want %d", c.calls, c.cost, got[0], c.admitted)
		}
		if left := limit - c.admitted*c.cost; left > 0 {
			h.admitted(l[0], p, subject, left, 0)
		}
		h.denied(l[0], p, subject, 1, 0)
	}
}

// hotKeyTwoInstances: the limit is the fleet's, not each instance's. Casebook 8.
func hotKeyTwoInstances(h *harness, k kind) {
	p := h.policy(k.config("fleet", 100, year))
	l := []ratelimit.EdgeRateLimitPort{h.b.New(h, p), h.b.New(h, p)}
	subject := h.subject(0)
	if got := h.rush(l, p, []ratelimit.SubjectDigest{subject}, 200, 1); got[0] != 100 {
		h.Errorf("%d admitted through two instances, want 100", got[0])
	}
	for _, each := range l {
		h.denied(each, p, subject, 1, 0)
	}
}

// instancesShareState: what one instance spends, the other has not.
func instancesShareState(h *harness, k kind) {
	p := h.policy(k.config("shared", 10, year))
	one, two := h.b.New(h, p), h.b.New(h, p)
	subject := h.subject(0)
	h.admitted(one, p, subject, 4, 6)
	h.admitted(two, p, subject, 5, 1)
	h.denied(one, p, subject, 2, 1)
	h.admitted(one, p, subject, 1, 0)
	h.denied(two, p, subject, 1, 0)
}

// manyKeys: many subjects at once do not disturb each other. Casebook 27.
func manyKeys(h *harness, k kind) {
	const limit, each = 3, 5
	p := h.policy(k.config("many", limit, year))
	l := []ratelimit.EdgeRateLimitPort{h.b.New(h, p)}
	subjects := make([]ratelimit.SubjectDigest, 60)
	for i := range subjects {
		subjects[i] = h.subject(i)
	}
	for i, got := range h.rush(l, p, subjects, each*len(subjects), 1) {
		if got != limit {
			h.Errorf("subject %d: %d admitted, want %d", i, got, limit)
		}
	}
}
