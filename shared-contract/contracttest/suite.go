package contracttest

import (
	"slices"
	"strings"
	"testing"
)

// contractTest is one behaviour. Exactly one of run and runEach is set; runEach runs for every
// algorithm, each on its own backend.
type contractTest struct {
	name    string
	needs   []Capability
	run     func(h *harness)
	runEach func(h *harness, k kind)
}

func needs(c ...Capability) []Capability { return c }

// contractTests lists the whole contract, one group per file.
func contractTests() []contractTest {
	return slices.Concat(
		requestTests(), decisionTests(), rangeTests(), denialTests(), retryTests(), clockTests(), passageTests(),
		revisionTests(), isolationTests(), concurrencyTests(), expiryTests(), foreignTests(), corruptionTests(),
	)
}

// RunEdgeRateLimit holds a provider to the contract of ratelimit.EdgeRateLimitPort.
func RunEdgeRateLimit(t *testing.T, factory Factory) {
	t.Helper()
	probe := factory(t)
	probe.check(t)
	for _, c := range Capabilities() {
		if reason, missing := probe.Missing[c]; missing {
			t.Logf("the backend cannot %s: %s", c, reason)
		}
	}
	var left []string
	for _, test := range contractTests() {
		if slices.ContainsFunc(test.needs, func(c Capability) bool { return !probe.can(c) }) {
			left = append(left, test.name)
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			if !probe.Serial {
				t.Parallel()
			}
			if test.run != nil {
				test.run(newHarness(t, factory))
				return
			}
			for _, k := range kinds() {
				t.Run(k.name, func(t *testing.T) {
					if !probe.Serial {
						t.Parallel()
					}
					test.runEach(newHarness(t, factory), k)
				})
			}
		})
	}
	if len(left) > 0 {
		t.Logf("not tested: %s", strings.Join(left, ", "))
	}
}
