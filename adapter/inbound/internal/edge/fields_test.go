package edge

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

var now = time.UnixMilli(1_800_000_000_500).UTC()

// write gives the fields of a report as lines.
func write(t testing.TB, list []Style, report Report) []string {
	t.Helper()
	fields, err := NewFields(policies(t), list)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range fields.Append(nil, report, now) {
		lines = append(lines, f.Name+": "+f.Value)
	}
	return lines
}

func decided(policy ratelimit.PolicyID, allowed bool, limit, remaining int64, retry, reset time.Duration) Report {
	verdict := VerdictAllow
	if !allowed {
		verdict = VerdictDeny
	}
	return Report{Verdict: verdict, Policy: policy, RetryAfter: retry, Outcome: ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{
		Allowed: allowed, Limit: limit, Remaining: remaining, RetryAfter: retry, ResetAt: now.Add(reset), PolicyID: policy,
	}}}
}

func TestFields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		styles []Style
		report Report
		want   []string
	}{
		"allowed, both drafts in one item": {
			DefaultStyles(), decided("fixed", true, 5, 4, 0, 32_100*time.Millisecond),
			[]string{`Ratelimit-Policy: "fixed";q=5;w=60`, `Ratelimit: "fixed";a=4;w=33;r=4;t=33`},
		},
		"draft 12 alone": {
			[]Style{StyleDraft12},
			decided("fixed", true, 5, 0, 0, time.Minute),
			[]string{`Ratelimit-Policy: "fixed";q=5;w=60`, `Ratelimit: "fixed";a=0;w=60`},
		},
		"draft 11 alone": {
			[]Style{StyleDraft11},
			decided("fixed", true, 5, 0, 0, time.Minute),
			[]string{`Ratelimit-Policy: "fixed";q=5;w=60`, `Ratelimit: "fixed";r=0;t=60`},
		},
		"denied: the window ends with Retry-After": {
			[]Style{StyleDraft12, StyleRateLimit},
			decided("bucket", false, 100, 0, 1001*time.Millisecond, 3400*time.Millisecond),
			[]string{
				`Ratelimit-Policy: "bucket";q=100;w=4`, `Ratelimit: "bucket";a=0;w=2`,
				"Ratelimit-Limit: 100", "Ratelimit-Remaining: 0", "Ratelimit-Reset: 2", "Retry-After: 2",
			},
		},
		"every style": {
			Styles(), decided("gcra", true, 4, 3, 0, 6*time.Second),
			[]string{
				`Ratelimit-Policy: "gcra";q=4;w=24`, `Ratelimit: "gcra";a=3;w=6;r=3;t=6`,
				"Ratelimit-Limit: 4", "Ratelimit-Remaining: 3", "Ratelimit-Reset: 6",
				"X-Ratelimit-Limit: 4", "X-Ratelimit-Remaining: 3", "X-Ratelimit-Reset: 1800000007",
			},
		},
		"a window of part of a second is rounded up": {
			[]Style{StyleDraft12},
			decided("log", true, 7, 6, 0, 1500*time.Millisecond),
			[]string{`Ratelimit-Policy: "log";q=7;w=2`, `Ratelimit: "log";a=6;w=2`},
		},
		"a store's clock that is behind": {
			[]Style{StyleDraft12},
			decided("fixed", true, 5, 4, 0, -time.Hour),
			[]string{`Ratelimit-Policy: "fixed";q=5;w=60`, `Ratelimit: "fixed";a=4;w=0`},
		},
		"a store's clock that is ahead": {
			[]Style{StyleDraft12},
			decided("counter", true, 30, 29, 0, time.Hour),
			[]string{`Ratelimit-Policy: "counter";q=30;w=10`, `Ratelimit: "counter";a=29;w=20`},
		},
		"more than an integer of structured fields": {
			[]Style{StyleDraft12, StyleRateLimit},
			decided("edge", true, 1<<53-1, 1<<53-2, 0, time.Millisecond),
			[]string{
				`Ratelimit-Policy: "edge";q=999999999999999;w=1`, `Ratelimit: "edge";a=999999999999999;w=1`,
				"Ratelimit-Limit: 999999999999999", "Ratelimit-Remaining: 999999999999999", "Ratelimit-Reset: 1",
			},
		},
		"a policy that the door was not made with": {
			[]Style{StyleDraft12}, decided("new", true, 5, 4, 0, time.Second), []string{`Ratelimit: "new";a=4;w=1`},
		},
		"no style":               {nil, decided("fixed", false, 5, 0, time.Millisecond, time.Second), []string{"Retry-After: 1"}},
		"unavailable":            {Styles(), Report{Verdict: VerdictUnavailable, RetryAfter: 1500 * time.Millisecond, Outcome: ratelimit.Unavailable{}}, []string{"Retry-After: 2"}},
		"incompatible":           {Styles(), Report{Verdict: VerdictIncompatible, Outcome: ratelimit.Incompatible{}}, nil},
		"refused":                {Styles(), Report{Verdict: VerdictRefused, Refusal: RefusalSubjectMissing}, nil},
		"shadow, allowed":        {Styles(), shadow(decided("fixed", true, 5, 4, 0, 0)), []string{`Edgelimit-Shadow: allow;policy="fixed"`}},
		"shadow, denied":         {Styles(), shadow(decided("fixed", false, 5, 0, 33*time.Second, 0)), []string{`Edgelimit-Shadow: deny;policy="fixed";retry-after=33`}},
		"shadow, unknown policy": {Styles(), shadow(Report{Verdict: VerdictRefused, Policy: "\"\n"}), []string{"Edgelimit-Shadow: refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, write(t, test.styles, test.report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func shadow(r Report) Report {
	r.Shadow = true
	return r
}

func TestStyles(t *testing.T) {
	t.Parallel()
	for _, list := range [][]Style{{StyleInvalid}, {StyleXRateLimit + 1}, {StyleDraft12, StyleDraft12}} {
		if _, err := NewFields(policies(t), list); err == nil {
			t.Errorf("%v is accepted", list)
		}
	}
	for _, s := range Styles() {
		if back, err := ParseStyle(s.String()); err != nil || back != s {
			t.Errorf("%v: %v %v", s, back, err)
		}
	}
	if _, err := ParseStyle("INVALID"); err == nil {
		t.Error("INVALID is a style")
	}
}

// FuzzFields holds every value that is written to be what its reader's parser takes: structured fields
// of RFC 9651, or digits. Whatever the limiter answers, nothing else goes out.
func FuzzFields(f *testing.F) {
	f.Add("fixed", true, int64(5), int64(4), int64(0), int64(32_100), uint8(15), false)
	f.Add("edge", false, int64(1<<53-1), int64(-1), int64(1), int64(-1), uint8(15), false)
	f.Add("\"\r\nSet-Cookie: a", false, int64(-1<<63), int64(1<<63-1), int64(1<<62), int64(1<<62), uint8(3), true)
	set := policies(f)
	f.Fuzz(func(t *testing.T, policy string, allowed bool, limit, remaining, retryMillis, resetMillis int64, mask uint8, inShadow bool) {
		var list []Style
		for i, s := range Styles() {
			if mask&(1<<i) != 0 {
				list = append(list, s)
			}
		}
		fields, err := NewFields(set, list)
		if err != nil {
			t.Fatal(err)
		}
		report := decided(ratelimit.PolicyID(policy), allowed, limit, remaining, time.Duration(retryMillis)*time.Millisecond, 0)
		evaluated, ok := report.Outcome.(ratelimit.Evaluated)
		if !ok {
			t.Fatal("not evaluated")
		}
		evaluated.Decision.ResetAt = time.UnixMilli(resetMillis)
		report.Outcome, report.Shadow = evaluated, inShadow
		for _, field := range fields.Append(nil, report, now) {
			checkField(t, field, policy)
		}
	})
}

func checkField(t *testing.T, field Field, policy string) {
	t.Helper()
	switch field.Name {
	case nameRateLimit, namePolicy:
		list, err := httpsfv.UnmarshalList([]string{field.Value})
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %q: %v", field.Name, field.Value, err)
		}
		item, ok := list[0].(httpsfv.Item)
		if !ok || item.Value != policy {
			t.Fatalf("%s: %q is about %v, want %q", field.Name, field.Value, item.Value, policy)
		}
		for _, key := range item.Params.Names() {
			value, _ := item.Params.Get(key)
			if n, ok := value.(int64); !ok || n < 0 {
				t.Errorf("%s: %q has %s=%v", field.Name, field.Value, key, value)
			}
		}
		if written, err := httpsfv.Marshal(list); err != nil || written != field.Value {
			t.Errorf("%s: %q is written as %q: %v", field.Name, field.Value, written, err)
		}
	case NameShadow:
		item, err := httpsfv.UnmarshalItem([]string{field.Value})
		if err != nil {
			t.Fatalf("%s: %q: %v", field.Name, field.Value, err)
		}
		if _, ok := item.Value.(httpsfv.Token); !ok {
			t.Errorf("%s: %q is no token", field.Name, field.Value)
		}
	default:
		if n, err := strconv.ParseInt(field.Value, 10, 64); err != nil || n < 0 || n > maxFieldInteger || strings.HasPrefix(field.Value, "+") {
			t.Errorf("%s: %q is no count of seconds or units: %v", field.Name, field.Value, err)
		}
	}
}
