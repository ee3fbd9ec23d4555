package service

import (
	"testing"

	"github.com/edgelimit/edgelimit/test/lanes"
)

const (
	exactCallers  = 64
	exactRequests = 5000
	exactLimit    = 1000
)

// TestThreeInstancesAdmitExactly holds three instances on one Redis to one count: 64 callers on one
// subject, 5,000 requests, and as many admitted as the limit says, each leaving another remainder.
func TestThreeInstancesAdmitExactly(t *testing.T) {
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			config := settings{address: server.Addr, namespace: namespace(), policies: `
window: {revision: 1, algorithm: fixed-window, limit: 1000, window: 24h}
bucket: {revision: 1, algorithm: token-bucket, capacity: 1000, refill-tokens: 1, refill-period: 24h}
`}
			removeAfter(t, server.Addr, config.namespace)
			path := config.file(t)
			instances := []*instance{serveReady(t, path), serveReady(t, path), serveReady(t, path)}

			// A day may end in between: what is counted is each day's, and the moment at which the day
			// ends is in every answer.
			t.Run("FixedWindow", func(t *testing.T) {
				windows := map[int64][]answer{}
				for _, a := range burst(t, instances, exactCallers, exactRequests, `{"policyId":"window","subject":"one"}`) {
					if a.word() != "EVALUATED" {
						t.Fatalf("%+v", a)
					}
					windows[a.Decision.ResetAtMillis] = append(windows[a.Decision.ResetAtMillis], a)
				}
				if len(windows) > 2 {
					t.Errorf("%d windows", len(windows))
				}
				for _, answers := range windows {
					exactly(t, answers, min(exactLimit, len(answers)))
				}
			})
			// A token comes back 24 hours after the first one left: not within this test.
			t.Run("TokenBucket", func(t *testing.T) {
				exactly(t, burst(t, instances, exactCallers, exactRequests, `{"policyId":"bucket","subject":"one"}`), exactLimit)
			})
		})
	}
}

// exactly holds answers to a number of admissions, each of which left another remainder.
func exactly(t *testing.T, answers []answer, want int) {
	t.Helper()
	left := map[int64]int{}
	for _, a := range answers {
		switch {
		case a.word() != "EVALUATED" || a.Decision.Source != "GLOBAL_REDIS" || a.Decision.Certainty != "CERTAIN":
			t.Fatalf("%+v", a)
		case a.Decision.Allowed:
			left[a.Decision.Remaining]++
		case a.Decision.Remaining != 0:
			t.Errorf("denied with %d left", a.Decision.Remaining)
		}
	}
	t.Logf("%d of %d admitted", len(left), len(answers))
	for i := range int64(want) {
		if n := left[exactLimit-1-i]; n != 1 {
			t.Errorf("%d answers left %d", n, exactLimit-1-i)
		}
	}
	if len(left) != want {
		t.Errorf("%d admitted, want %d", len(left), want)
	}
}
