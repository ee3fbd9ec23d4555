package service

import (
	"fmt"
	"testing"

	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestOneCommandPerEvaluation counts on a server of its own what evaluations through the service make
// it do.
func TestOneCommandPerEvaluation(t *testing.T) {
	t.Parallel()
	server := lanes.StartProcess(t, lanes.Options{})
	client := connect(t, server.Addr)
	s := serveReady(t, settings{address: server.Addr, namespace: namespace(), policies: `
window: {revision: 1, algorithm: fixed-window, limit: 1000000, window: 8760h}
counter: {revision: 1, algorithm: sliding-window-counter, limit: 1000000, window: 8760h}
bucket: {revision: 1, algorithm: token-bucket, capacity: 1000000, refill-tokens: 1, refill-period: 50m, cleanup-grace: 1h}
denied: {revision: 1, algorithm: token-bucket, capacity: 1, refill-tokens: 1, refill-period: 8760h}
`}.file(t))
	programs := int64(len(store.RatePrograms()))

	// Readiness has tried each program, and so loaded it: that EVAL is the only one there ever is.
	counts := commandCounts(t, client)
	if counts["eval"] != programs || counts["evalsha"] != programs {
		t.Errorf("before the first evaluation: %d EVAL, %d EVALSHA for %d programs", counts["eval"], counts["evalsha"], programs)
	}
	for _, policy := range []string{"window", "counter", "bucket"} {
		if a := s.one(fmt.Sprintf(`{"policyId":%q,"subject":"one"}`, policy)); a.word() != "EVALUATED" {
			t.Fatalf("%+v", a)
		}
	}
	denied := `{"policyId":"denied","subject":"one"}`
	s.becomes(denied, "EVALUATED")

	const each = 200
	for _, c := range []struct {
		name, body string
		want       map[string]int64
	}{
		{"window", `{"policyId":"window","subject":"one"}`, map[string]int64{"hset": each}},
		{"counter", `{"policyId":"counter","subject":"one"}`, map[string]int64{"hset": each}},
		// A bucket's expiry moves with its fill: by grace and the time to fill it at once, so seldom.
		{"bucket", `{"policyId":"bucket","subject":"one"}`, map[string]int64{"hset": each, "pexpire": 0}},
		{"denied", denied, map[string]int64{"hset": 0, "pexpire": 0}},
	} {
		do(t, client, "CONFIG", "RESETSTAT")
		for range each {
			if a := s.one(c.body); a.word() != "EVALUATED" || a.Decision.Allowed != (c.name != "denied") {
				t.Fatalf("%+v", a)
			}
		}
		counts := commandCounts(t, client)
		want := map[string]int64{"evalsha": each, "time": each, "hget": each, "pexpire": 0}
		for command, n := range c.want {
			want[command] = n
		}
		for command, n := range want {
			if counts[command] != n {
				t.Errorf("%s: %s ran %d times for %d evaluations, want %d", c.name, command, counts[command], each, n)
			}
			delete(counts, command)
		}
		// What is left is of readiness, of new connections and of this test: nothing of it grows with
		// evaluations.
		for command, n := range counts {
			switch command {
			case "ping", "hello", "client|setinfo", "select", "info", "acl|whoami", "config|resetstat":
				if n < each/2 {
					continue
				}
			}
			t.Errorf("%s: %s ran %d times for %d evaluations", c.name, command, n, each)
		}
	}
}
