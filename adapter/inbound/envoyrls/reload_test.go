package envoyrls_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

// generationRules are rules in which everything names the generation: both limits and both names.
func generationRules(n int) string {
	return fmt.Sprintf(`
domain: d
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: %[1]d, name: g%[2]d}}
- {key: b, rate_limit: {unit: hour, requests_per_unit: %[1]d, name: g%[2]d}}
`, 1_000_000+n, n)
}

// TestReplacingUnderLoad replaces rules for as long as many callers ask: every call is answered, and by
// one generation alone.
func TestReplacingUnderLoad(t *testing.T) {
	t.Parallel()
	const callers, replacements = 8, 300
	s := service(t, config(t, generationRules(0), newMemoryPorts(t, time.Now)))
	loaded := make([]*rules.Rules, 10)
	for i := range loaded {
		loaded[i] = parse(t, generationRules(i))
	}
	var done atomic.Bool
	var answered, changed atomic.Int64
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			last := ""
			r := request("d", of("a", fmt.Sprint(caller)), of("b", fmt.Sprint(caller)), of("a", "shared"), of("b", "shared"))
			for !done.Load() {
				response, err := s.ShouldRateLimit(t.Context(), r)
				if err != nil {
					t.Errorf("caller %d: %v", caller, err)
					return
				}
				answered.Add(1)
				first := response.GetStatuses()[0].GetCurrentLimit()
				for _, status := range response.GetStatuses() {
					limit := status.GetCurrentLimit()
					if status.GetCode() != ratelimitv3.RateLimitResponse_OK || limit.GetName() != first.GetName() || limit.GetRequestsPerUnit() != first.GetRequestsPerUnit() ||
						limit.GetName() != fmt.Sprintf("g%d", limit.GetRequestsPerUnit()-1_000_000) || status.GetLimitRemaining() >= limit.GetRequestsPerUnit() {
						t.Errorf("an answer of two generations: %v", response)
						return
					}
				}
				if first.GetName() != last {
					last = first.GetName()
					changed.Add(1)
				}
			}
		})
	}
	for i := range replacements {
		before := answered.Load()
		if err := s.Replace(loaded[i%len(loaded)]); err != nil {
			t.Error(err)
		}
		for answered.Load() == before && !t.Failed() { // each generation meets calls
			time.Sleep(10 * time.Microsecond)
		}
	}
	done.Store(true)
	wait.Wait()
	if changed.Load() < replacements/10 {
		t.Errorf("callers saw %d changes of %d", changed.Load(), replacements)
	}
	t.Logf("%d answers over %d generations, %d changes seen", answered.Load(), replacements, changed.Load())
}

// TestStateOutlivesReplacing: what a rule has counted stays counted where its parameters stay, and
// begins anew where they change.
func TestStateOutlivesReplacing(t *testing.T) {
	t.Parallel()
	const before = "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: minute, requests_per_unit: 2}}\n- {key: b, rate_limit: {unit: minute, requests_per_unit: 2}}\n"
	s, _ := overMemory(t, before, nil)
	ask(t, s, request("d", withHits(of("a", "1"), 2), withHits(of("b", "1"), 2)))
	if err := s.Replace(parse(t, "domain: d\ndescriptors:\n- {key: new, rate_limit: {unit: day, requests_per_unit: 1}}\n- {key: b, rate_limit: {unit: minute, requests_per_unit: 3}}\n- {key: a, rate_limit: {unit: minute, requests_per_unit: 2}}\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := brief(ask(t, s, request("d", of("a", "1"), of("b", "1")))), "OVER_LIMIT | OVER_LIMIT 2/MINUTE 0 1m0s | OK 3/MINUTE 2 1m0s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := s.Replace(parse(t, before)); err != nil {
		t.Fatal(err)
	}
	if got, want := brief(ask(t, s, request("d", of("a", "1"), of("b", "1")))), "OVER_LIMIT | OVER_LIMIT 2/MINUTE 0 1m0s | OVER_LIMIT 2/MINUTE 0 1m0s"; got != want {
		t.Errorf("back at what was: %s, want %s", got, want)
	}
	if got := s.Rules().Domains(); got != 1 {
		t.Errorf("%d domains", got)
	}
	// Rules without any policy need no port.
	if err := s.Replace(parse(t, "domain: d\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := brief(ask(t, s, request("d", of("a", "1")))), "OK | OK 0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
