package breaker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func good() PolicyConfig {
	return PolicyConfig{
		ID: "p", Revision: 1, Trip: ConsecutiveFailures{Threshold: 5}, OpenTimeout: 30 * time.Second, MaxProbes: 2,
		ProbeLease: 5 * time.Second, ProbeSuccesses: 3, CleanupGrace: time.Minute, MaxClockRegression: 2 * time.Second,
	}
}

const span = time.Duration(maxSpan) * time.Millisecond

func rolling(window time.Duration, buckets, minimum, permille int64) FailureRate {
	return FailureRate{Window: window, Buckets: buckets, MinimumCalls: minimum, RatePermille: permille}
}

// TestPolicyBounds: each field at both ends of its range, and one step outside. Casebook 11, 17.
func TestPolicyBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit  func(*PolicyConfig)
		field string // of the only fault; "" is none
	}{
		"as it is":                  {func(*PolicyConfig) {}, ""},
		"no ID":                     {func(c *PolicyConfig) { c.ID = "" }, "ID"},
		"revision 0":                {func(c *PolicyConfig) { c.Revision = 0 }, "Revision"},
		"greatest revision":         {func(c *PolicyConfig) { c.Revision = 1<<31 - 1 }, ""},
		"revision above":            {func(c *PolicyConfig) { c.Revision = 1 << 31 }, "Revision"},
		"no rule":                   {func(c *PolicyConfig) { c.Trip = nil }, "Trip"},
		"rule by pointer":           {func(c *PolicyConfig) { c.Trip = &ConsecutiveFailures{Threshold: 1} }, "Trip"},
		"threshold 0":               {func(c *PolicyConfig) { c.Trip = ConsecutiveFailures{} }, "Threshold"},
		"threshold 1":               {func(c *PolicyConfig) { c.Trip = ConsecutiveFailures{1} }, ""},
		"greatest threshold":        {func(c *PolicyConfig) { c.Trip = ConsecutiveFailures{MostThreshold} }, ""},
		"threshold above":           {func(c *PolicyConfig) { c.Trip = ConsecutiveFailures{MostThreshold + 1} }, "Threshold"},
		"least rate":                {func(c *PolicyConfig) { c.Trip = rolling(time.Millisecond, 1, 1, 1) }, ""},
		"greatest rate":             {func(c *PolicyConfig) { c.Trip = rolling(span, 20, MostMinimumCalls, 1000) }, ""},
		"rate 0":                    {func(c *PolicyConfig) { c.Trip = rolling(time.Second, 1, 1, 0) }, "RatePermille"},
		"rate 1001":                 {func(c *PolicyConfig) { c.Trip = rolling(time.Second, 1, 1, 1001) }, "RatePermille"},
		"no minimum":                {func(c *PolicyConfig) { c.Trip = rolling(time.Second, 1, 0, 1) }, "MinimumCalls"},
		"minimum above":             {func(c *PolicyConfig) { c.Trip = rolling(time.Second, 1, MostMinimumCalls+1, 1) }, "MinimumCalls"},
		"no buckets":                {func(c *PolicyConfig) { c.Trip = rolling(time.Second, 0, 1, 1) }, "Buckets"},
		"21 buckets":                {func(c *PolicyConfig) { c.Trip = rolling(21*time.Second, 21, 1, 1) }, "Buckets"},
		"no window":                 {func(c *PolicyConfig) { c.Trip = rolling(0, 1, 1, 1) }, "Window"},
		"window above":              {func(c *PolicyConfig) { c.Trip = rolling(span+time.Millisecond, 1, 1, 1) }, "Window"},
		"window of a fraction":      {func(c *PolicyConfig) { c.Trip = rolling(time.Millisecond+1, 1, 1, 1) }, "Window"},
		"buckets that do not fit":   {func(c *PolicyConfig) { c.Trip = rolling(time.Second, 3, 1, 1) }, "Window"},
		"more buckets than ms":      {func(c *PolicyConfig) { c.Trip = rolling(time.Millisecond, 2, 1, 1) }, "Window"},
		"no open timeout":           {func(c *PolicyConfig) { c.OpenTimeout = 0 }, "OpenTimeout"},
		"open timeout below 1 ms":   {func(c *PolicyConfig) { c.OpenTimeout = time.Microsecond }, "OpenTimeout"},
		"negative open timeout":     {func(c *PolicyConfig) { c.OpenTimeout = -time.Second }, "OpenTimeout"},
		"greatest open timeout":     {func(c *PolicyConfig) { c.OpenTimeout = span }, ""},
		"open timeout above":        {func(c *PolicyConfig) { c.OpenTimeout = span + time.Millisecond }, "OpenTimeout"},
		"no probes":                 {func(c *PolicyConfig) { c.MaxProbes = 0 }, "MaxProbes"},
		"16 probes":                 {func(c *PolicyConfig) { c.MaxProbes = 16 }, ""},
		"17 probes":                 {func(c *PolicyConfig) { c.MaxProbes = 17 }, "MaxProbes"},
		"no lease":                  {func(c *PolicyConfig) { c.ProbeLease = 0 }, "ProbeLease"},
		"lease above":               {func(c *PolicyConfig) { c.ProbeLease = span + time.Millisecond }, "ProbeLease"},
		"no successes":              {func(c *PolicyConfig) { c.ProbeSuccesses = 0 }, "ProbeSuccesses"},
		"greatest successes":        {func(c *PolicyConfig) { c.ProbeSuccesses = MostProbeSuccesses }, ""},
		"successes above":           {func(c *PolicyConfig) { c.ProbeSuccesses = MostProbeSuccesses + 1 }, "ProbeSuccesses"},
		"grace below regression":    {func(c *PolicyConfig) { c.CleanupGrace = time.Second }, "CleanupGrace"},
		"neither":                   {func(c *PolicyConfig) { c.CleanupGrace, c.MaxClockRegression = 0, 0 }, ""},
		"negative grace":            {func(c *PolicyConfig) { c.CleanupGrace = -time.Second }, "CleanupGrace"},
		"greatest grace":            {func(c *PolicyConfig) { c.CleanupGrace = span }, ""},
		"regression above a day":    {func(c *PolicyConfig) { c.MaxClockRegression, c.CleanupGrace = 24*time.Hour+time.Millisecond, span }, "MaxClockRegression"},
		"negative clock regression": {func(c *PolicyConfig) { c.MaxClockRegression = -time.Second }, "MaxClockRegression"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := good()
			c.edit(&config)
			p, err := NewPolicy(config)
			if c.field == "" {
				if err != nil || p.Machine().Check() != nil {
					t.Fatal(err)
				}
				return
			}
			if got := faultsOf(t, err); p != nil || !slices.Equal(got, []string{c.field}) {
				t.Errorf("%v with the faults %v, want %s alone: %v", p, got, c.field, err)
			}
		})
	}
}

func faultsOf(t *testing.T, err error) []string {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("error %v joins nothing", err)
	}
	var fields []string
	for _, each := range joined.Unwrap() {
		var fault *PolicyError
		if !errors.As(each, &fault) || !strings.HasPrefix(each.Error(), fault.Field+": ") {
			t.Fatalf("%v is no *PolicyError", each)
		}
		fields = append(fields, fault.Field)
	}
	slices.Sort(fields)
	return fields
}

// TestAllFaultsAtOnce: one report says everything.
func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := NewPolicy(PolicyConfig{Trip: FailureRate{}, CleanupGrace: -1, MaxClockRegression: -1})
	want := []string{
		"Buckets", "CleanupGrace", "ID", "MaxClockRegression", "MaxProbes", "MinimumCalls", "OpenTimeout", "ProbeLease", "ProbeSuccesses",
		"RatePermille", "Revision", "Window",
	}
	if got := faultsOf(t, err); !slices.Equal(got, want) {
		t.Errorf("faults %v, want %v", got, want)
	}
}

// TestFingerprint: two policies that differ in any number differ in it, and nothing else changes it.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, edit := range map[string]func(*PolicyConfig){
		"as it is":   func(*PolicyConfig) {},
		"threshold":  func(c *PolicyConfig) { c.Trip = ConsecutiveFailures{6} },
		"rate":       func(c *PolicyConfig) { c.Trip = rolling(time.Second, 2, 5, 500) },
		"window":     func(c *PolicyConfig) { c.Trip = rolling(2*time.Second, 2, 5, 500) },
		"buckets":    func(c *PolicyConfig) { c.Trip = rolling(time.Second, 1, 5, 500) },
		"minimum":    func(c *PolicyConfig) { c.Trip = rolling(time.Second, 2, 6, 500) },
		"permille":   func(c *PolicyConfig) { c.Trip = rolling(time.Second, 2, 5, 501) },
		"timeout":    func(c *PolicyConfig) { c.OpenTimeout++; c.OpenTimeout += time.Millisecond - 1 },
		"probes":     func(c *PolicyConfig) { c.MaxProbes++ },
		"lease":      func(c *PolicyConfig) { c.ProbeLease += time.Millisecond },
		"successes":  func(c *PolicyConfig) { c.ProbeSuccesses++ },
		"grace":      func(c *PolicyConfig) { c.CleanupGrace += time.Millisecond },
		"regression": func(c *PolicyConfig) { c.MaxClockRegression += time.Millisecond },
	} {
		config := good()
		edit(&config)
		p, err := NewPolicy(config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, twice := seen[p.Fingerprint()]; twice || len(p.Fingerprint()) != 16 {
			t.Errorf("%s has the fingerprint %s of %s", name, p.Fingerprint(), other)
		}
		seen[p.Fingerprint()] = name
		config.ID, config.Revision = "other", 2
		if again, err := NewPolicy(config); err != nil || again.Fingerprint() != p.Fingerprint() {
			t.Errorf("%s: ID and revision are in the fingerprint", name)
		}
	}
}

// TestMachineCheck finds in a machine that no policy made what the constructor finds in a policy.
func TestMachineCheck(t *testing.T) {
	t.Parallel()
	p, err := NewPolicy(good())
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Machine){
		"both rules": func(m *Machine) { m.Buckets, m.BucketMillis, m.MinimumCalls, m.RatePermille = 1, 1, 1, 1 },
		"no rule":    func(m *Machine) { m.Threshold = 0 },
		"window above": func(m *Machine) {
			m.Threshold, m.Buckets, m.BucketMillis, m.MinimumCalls, m.RatePermille = 0, 2, maxSpan, 1, 1
		},
		"grace": func(m *Machine) { m.Clock.GraceMillis = 0 },
	} {
		m := p.Machine()
		edit(&m)
		var out *algorithm.RangeError
		if err := m.Check(); !errors.As(err, &out) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The worst intermediate values stay exact.
	if MostRatePermille*MostBuckets*MostCalls > algorithm.MaxExact || MostRatePermille*MostBuckets*(MostCalls+1) <= algorithm.MaxExact {
		t.Error("MostCalls is not the greatest count that stays exact")
	}
}

// TestBoundsAreThePrograms': shared-contract/store says the same.
func TestBoundsAreThePrograms(t *testing.T) {
	t.Parallel()
	want := map[string][2]int64{
		"threshold": {0, MostThreshold}, "buckets": {0, MostBuckets}, "bucket_width": {0, maxSpan}, "minimum_calls": {0, MostMinimumCalls},
		"rate_permille": {0, MostRatePermille}, "open_timeout": {1, maxSpan}, "max_probes": {1, MostProbes}, "probe_lease": {1, maxSpan},
		"probe_successes": {1, MostProbeSuccesses}, "token": {TokenLength, TokenLength}, "generation": {0, maxNow}, "acquired_at": {0, maxNow},
	}
	seen := 0
	for _, program := range store.BreakerPrograms() {
		for _, f := range program.Args {
			if bounds, known := want[f.Name]; known {
				seen++
				if f.Min != bounds[0] || f.Max != bounds[1] {
					t.Errorf("%s: %s is %d..%d, want %v", program.ID(), f.Name, f.Min, f.Max, bounds)
				}
			}
		}
		if len(program.Reply) > store.MaxReplyValues {
			t.Errorf("%s replies %d values", program.ID(), len(program.Reply))
		}
	}
	if seen != 9*3+2+2 {
		t.Errorf("%d arguments compared", seen)
	}
	for i, result := range Results() {
		if word := store.BreakerRecordV1.Args[16].Word[i]; word != result.String() {
			t.Errorf("result %v is %s on the wire", result, word)
		}
	}
}
