package breaker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// machines generates valid numbers, small ones more often.
func machines() *rapid.Generator[Machine] {
	return rapid.Custom(func(t *rapid.T) Machine {
		m := Machine{
			OpenTimeoutMillis: rapid.Int64Range(1, 3000).Draw(t, "open timeout"),
			MaxProbes:         rapid.Int64Range(1, MostProbes).Draw(t, "probes"),
			ProbeLeaseMillis:  rapid.Int64Range(1, 3000).Draw(t, "lease"),
			ProbeSuccesses:    rapid.Int64Range(1, 4).Draw(t, "successes"),
			Clock:             algorithm.Clock{GraceMillis: 2000, MaxRegressionMillis: rapid.Int64Range(0, 2000).Draw(t, "regression")},
		}
		if rapid.Bool().Draw(t, "consecutive") {
			m.Threshold = rapid.Int64Range(1, 5).Draw(t, "threshold")
			return m
		}
		m.Buckets = rapid.Int64Range(1, MostBuckets).Draw(t, "buckets")
		m.BucketMillis = rapid.Int64Range(1, 500).Draw(t, "width")
		m.MinimumCalls = rapid.Int64Range(1, 8).Draw(t, "minimum")
		m.RatePermille = rapid.Int64Range(1, 1000).Draw(t, "rate")
		return m
	})
}

// TestLaws: over any history, what the contract promises.
func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := machines().Draw(t, "machine")
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		var s Stored
		var permits []Report
		now := int64(1_700_000_000_000)
		leased := 0
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 1, 10, m.OpenTimeoutMillis, m.ProbeLeaseMillis, -1}).Draw(t, "move")
			if i%2 == 0 || len(permits) == 0 {
				token := fmt.Sprintf("%032x", i)
				tr, next := m.Acquire(s, now, token)
				checkAcquire(t, m, s, next, tr, now, token)
				if tr.Status == StatusCall || tr.Status == StatusProbe {
					kind := PermitCall
					if tr.Status == StatusProbe {
						kind = PermitProbe
						leased++
					}
					permits = append(permits, Report{Kind: kind, Token: token, Generation: tr.SinceMillis, AcquiredAt: tr.EffectiveNowMillis})
				}
				s = next
			} else {
				r := rapid.SampledFrom(permits).Draw(t, "permit")
				r.Result = rapid.SampledFrom(Results()).Draw(t, "result")
				tr, next := m.Record(s, now, r)
				if !tr.Writes && next != s {
					t.Fatalf("%v changed the state without saying so", tr.Status)
				}
				if tr.Status == StatusLate && tr.Before != tr.State {
					t.Fatalf("a late result moved %v to %v", tr.Before, tr.State)
				}
				// The state that Record tells is the one that Read tells.
				if seen := m.Read(next, now); tr.Status != StatusClockUnsafe && (seen.State != tr.State || seen.RetryAfterMillis != tr.RetryAfterMillis) {
					t.Fatalf("record tells %+v, read %+v", tr, seen)
				}
				s = next
			}
			if !m.Valid(s) {
				t.Fatalf("an invalid state: %+v", s)
			}
			if s.Present {
				texts := m.Fields("1:cb:1:x", s)
				if back, ok := m.ParseFields("1:cb:1:x", texts); !ok || back != s {
					t.Fatalf("%v is read back as %+v, %v", texts, back, ok)
				}
			}
		}
	})
}

// checkAcquire: a rejection changes nothing and its wait is exact; probes stay bounded.
func checkAcquire(t *rapid.T, m Machine, before, after Stored, tr Transition, now int64, token string) {
	if !tr.Writes && after != before {
		t.Fatalf("%v changed the state", tr.Status)
	}
	live := int64(0)
	for _, p := range after.Probes {
		if p.ExpiresAt > tr.EffectiveNowMillis {
			live++
		}
	}
	if live > m.MaxProbes {
		t.Fatalf("%d probes live, at most %d", live, m.MaxProbes)
	}
	if tr.Status != StatusRejected {
		return
	}
	if tr.RetryAfterMillis < 1 {
		t.Fatalf("rejected with a wait of %d", tr.RetryAfterMillis)
	}
	if again, _ := m.Acquire(before, now+tr.RetryAfterMillis-1, token); again.Status != StatusRejected {
		t.Fatalf("%v a millisecond before the wait is over", again.Status)
	}
	if again, _ := m.Acquire(before, now+tr.RetryAfterMillis, token); again.Status != StatusProbe && again.Status != StatusCall {
		t.Fatalf("%v when the wait is over", again.Status)
	}
}

// TestSaturation: a bucket that is full counts no more, and its share stays exact.
func TestSaturation(t *testing.T) {
	t.Parallel()
	m := Machine{
		Buckets: 1, BucketMillis: 1000, MinimumCalls: 1, RatePermille: 1000, OpenTimeoutMillis: 1, MaxProbes: 1, ProbeLeaseMillis: 1, ProbeSuccesses: 1,
	}
	s := Stored{Present: true, State: StateClosed, LastObserved: 500, Ring: [MostBuckets]Bucket{{ID: 0, Calls: MostCalls, Failures: MostCalls - 1}}}
	if !m.Valid(s) {
		t.Fatal("not valid")
	}
	tr, after := m.Record(s, 600, Report{Kind: PermitCall, AcquiredAt: 600, Result: ResultFailure})
	if tr.Status != StatusCounted || tr.State != StateClosed || after.Ring != s.Ring || after.LastObserved != 600 {
		t.Errorf("%+v, %+v", tr, after)
	}
}

// TestWords: every closed set has as many words as members, each its own, and reads back.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, s := range States() {
		if back, ok := ParseState(s.String()); !ok || back != s {
			t.Errorf("%v reads back as %v", s, back)
		}
	}
	for _, k := range PermitKinds() {
		if back, ok := ParsePermitKind(k.String()); !ok || back != k {
			t.Errorf("%v reads back as %v", k, back)
		}
	}
	for _, r := range Results() {
		if back, ok := ParseResult(r.String()); !ok || back != r {
			t.Errorf("%v reads back as %v", r, back)
		}
	}
	for _, s := range Statuses() {
		if back, ok := ParseStatus(s.String()); !ok || back != s {
			t.Errorf("%v reads back as %v", s, back)
		}
	}
	counts := []int{len(States()), len(PermitKinds()), len(Results()), len(Statuses()), len(RequestFaults())}
	if want := []int{int(StateHalfOpen), int(PermitProbe), int(ResultNeither), int(StatusInvalid), int(FaultDeadline)}; fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("members %v, want %v", counts, want)
	}
	if _, ok := ParseState(StateInvalid.String()); ok || State(99).String() != "INVALID" {
		t.Error("the invalid state is one")
	}
}

func TestPolicySet(t *testing.T) {
	t.Parallel()
	p, err := NewPolicy(good())
	if err != nil {
		t.Fatal(err)
	}
	config := good()
	config.ID = "a"
	other, err := NewPolicy(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, policies := range map[string][]*Policy{"none": nil, "nil": {nil}, "zero": {{}}, "twice": {p, p}} {
		if _, err := NewPolicySet(policies...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	set, err := NewPolicySet(p, other)
	if err != nil || set.Get("p") != p || set.Get("x") != nil {
		t.Fatalf("%v, %v", set, err)
	}
	if all := set.All(); len(all) != 2 || all[0] != other || all[1] != p {
		t.Errorf("all: %v", all)
	}
	if p.ID() != "p" || p.Revision() != 1 || p.Trip() != (ConsecutiveFailures{5}) || p.OpenTimeout() != 30*time.Second || p.MaxProbes() != 2 ||
		p.ProbeLease() != 5*time.Second || p.ProbeSuccesses() != 3 || p.Lifetime() != 90*time.Second || p.MaxClockRegression() != 2*time.Second {
		t.Errorf("%+v", p)
	}
}

func TestResourceDigester(t *testing.T) {
	t.Parallel()
	if _, err := NewResourceDigester([]byte("short")); err == nil {
		t.Error("a short secret was taken")
	}
	d, err := NewResourceDigester([]byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", strings.Repeat("x", MaxResourceBytes+1)} {
		if _, err := d.Digest(name); err == nil || strings.Contains(err.Error(), "xx") {
			t.Errorf("%d bytes: %v", len(name), err)
		}
	}
	one, err := d.Digest("payments")
	if err != nil || one.IsZero() {
		t.Fatal(err)
	}
	two, err := d.Digest("payments.")
	if err != nil || one == two {
		t.Errorf("two names have one digest (%v)", err)
	}
	if again, _ := d.Digest("payments"); again != one {
		t.Error("one name has two digests")
	}
}
