package contracttest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestSuiteFindsFaults runs the suite in a process of its own over the reference provider with one
// deliberate fault at a time. It must fail, and in the subtest that is there for that fault.
func TestSuiteFindsFaults(t *testing.T) {
	if os.Getenv(faultVariable) != "" {
		t.Fatal("a faulty process must run TestReference alone")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for fault, where := range map[string][]string{
		"spends-on-denial":        {"DenialSpendsNothing/fixed-window", "DenialWritesNothing/fixed-window"},
		"limit-plus-one":          {"RemainingCountsDown/fixed-window", "HotKey/sliding-window-counter", "IdleThenBurst/fixed-window", "HotKey/sliding-window-log"},
		"retry-early":             {"RetryAfterIsExact/fixed-window", "RetryAfterIsExact/token-bucket", "RandomSequence/sliding-window-counter"},
		"retry-late":              {"RetryAfterIsExact/fixed-window", "RetryAfterIsExact/sliding-window-counter", "RetryAfterIsExact/gcra", "RetryAfterIsExact/sliding-window-log"},
		"retry-from-clamped":      {"RetryAfterIsExact/fixed-window", "RandomSequence/fixed-window"},
		"reset-late":              {"ResetAtIsExact/fixed-window", "ResetAtIsExact/token-bucket"},
		"shortfall-wrong":         {"LargeStepBackIsUnsafe/token-bucket", "NoStepBackTolerated/fixed-window"},
		"regression-ignored":      {"LargeStepBackIsUnsafe/fixed-window", "NoStepBackTolerated/token-bucket", "StepsOfTheClock/fixed-window"},
		"remaining-before":        {"RemainingCountsDown/token-bucket", "MixedCosts/fixed-window"},
		"remainder-lost":          {"RandomSequence/token-bucket", "RefillRemainderIsCarried"},
		"fraction-lost":           {"RandomSequence/gcra"},
		"log-forgets":             {"LongLog"},
		"uncertain":               {"RemainingCountsDown/sliding-window-counter"},
		"policies-collide":        {"PoliciesAreApart/fixed-window", "PolicyAfterPolicy/token-bucket"},
		"policy-case-ignored":     {"PoliciesAreApart/fixed-window"},
		"digest-cut":              {"SubjectsAreApart/fixed-window"},
		"revision-ignored":        {"RevisionsRoll/fixed-window"},
		"identity-unchecked":      {"SameRevisionOtherParameters/token-bucket", "CorruptIdentity/fixed-window"},
		"forgives-corruption":     {"CorruptNumbers/fixed-window", "ForeignKeys/token-bucket"},
		"overwrites-incompatible": {"ForeignKeys/fixed-window", "CorruptNumbers/token-bucket", "SameRevisionOtherParameters/fixed-window"},
		"no-ttl":                  {"TTLIsFinite/fixed-window", "SustainedTTL/token-bucket"},
		"ttl-grows":               {"SustainedTTL/fixed-window", "TTLCoversTheState/sliding-window-counter"},
		"never-expires":           {"StateGoesByItself/fixed-window"},
		"deadline-ignored":        {"DeadlinePast/fixed-window"},
		"cancel-ignored":          {"Canceled/token-bucket"},
		"outcome-beside-error":    {"RequestFaults/fixed-window"},
		"cost-unchecked":          {"RequestFaults/token-bucket"},
	} {
		t.Run(fault, func(t *testing.T) {
			command := exec.Command(self, "-test.run=^TestReference$/"+only(where), "-test.count=1")
			command.Env = append(os.Environ(), faultVariable+"="+fault)
			output, err := command.CombinedOutput()
			if err == nil {
				t.Fatalf("the suite passes a provider with the fault %s", fault)
			}
			if strings.Contains(string(output), "panic: ") {
				t.Fatalf("the suite panics:\n%s", output)
			}
			for _, name := range where {
				if !strings.Contains(string(output), "--- FAIL: TestReference/"+name+" ") {
					t.Errorf("TestReference/%s does not notice the fault %s", name, fault)
				}
			}
		})
	}
}

// only is a pattern for the subtests that are there for a fault: the others would take minutes.
func only(where []string) string {
	names := make([]string, len(where))
	for i, path := range where {
		names[i], _, _ = strings.Cut(path, "/")
	}
	return "^(" + strings.Join(names, "|") + ")$"
}
