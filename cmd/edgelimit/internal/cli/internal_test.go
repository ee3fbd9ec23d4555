package cli

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/replay"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestOutcomesHaveCodesAndWords(t *testing.T) {
	t.Parallel()
	denied := ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Limit: 5, RetryAfter: time.Second, PolicyID: "p", PolicyRevision: 1}}
	for _, c := range []struct {
		outcome ratelimit.Outcome
		code    int
		word    string
	}{
		{ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: true}}, 0, "allowed: "},
		{denied, 3, "denied: 0 of 5 left under policy p (revision 1); retry after 1s, "},
		{ratelimit.Unavailable{PolicyID: "p", Category: ratelimit.UnavailablePool, RetryAfter: time.Second}, 4, "unavailable (POOL): "},
		{ratelimit.Indeterminate{PolicyID: "p", RetryAfter: time.Second}, 4, "indeterminate: "},
		{ratelimit.Incompatible{PolicyID: "p", Category: ratelimit.IncompatibleState}, 5, "incompatible (STATE): "},
		{nil, 1, "no outcome"},
	} {
		if code := outcomeCode(c.outcome); code != c.code {
			t.Errorf("%T: code %d, want %d", c.outcome, code, c.code)
		}
		if got := describe(c.outcome); !strings.HasPrefix(got, c.word) {
			t.Errorf("%T: %q", c.outcome, got)
		}
	}
}

func TestSummaryCode(t *testing.T) {
	t.Parallel()
	one := map[string]int64{"X": 1}
	for _, c := range []struct {
		policies []replay.PolicySummary
		code     int
	}{
		{nil, 0},
		{[]replay.PolicySummary{{Denied: 3}}, 0},
		{[]replay.PolicySummary{{Unavailable: one}, {}}, 4},
		{[]replay.PolicySummary{{}, {Indeterminate: 1}}, 4},
		{[]replay.PolicySummary{{Unavailable: one}, {Incompatible: one}}, 5},
	} {
		if code := summaryCode(replay.Summary{Policies: c.policies}); code != c.code {
			t.Errorf("%+v: %d, want %d", c.policies, code, c.code)
		}
	}
}

func TestErrorCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
		tell bool
	}{
		{nil, 0, false},
		{errors.New("x"), 1, true},
		{usagef("x"), 2, true},
		{usage(nil), 0, false},
		{silent(3), 3, false},
		{silent(0), 0, false},
		{fmt.Errorf("wrapped: %w", silent(4)), 4, false},
		{errors.Join(silent(4), errors.New("close")), 4, true},
	} {
		if code, tell := codeOf(c.err); code != c.code || tell != c.tell {
			t.Errorf("%v: %d %v, want %d %v", c.err, code, tell, c.code, c.tell)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 90 * time.Minute: "1h30m", time.Second: "1s", 24 * time.Hour: "24h",
		250 * time.Millisecond: "250ms", 10*time.Minute + 500*time.Millisecond: "10m0.5s", 20 * time.Second: "20s", 10 * time.Minute: "10m",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for want, d := range map[string]time.Duration{"5/s": time.Second, "5/60s": time.Minute, "5/250ms": 250 * time.Millisecond, "5/1500ms": 1500 * time.Millisecond} {
		if got := rateText(5, d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}
	info.Main.Version = "v1.2.3"
	if got := describeBuild(info); !strings.HasPrefix(got, "edgelimit v1.2.3, commit abc with changes, go") {
		t.Error(got)
	}
	if got := describeBuild(nil); !strings.HasPrefix(got, "edgelimit (devel), commit unknown, go") {
		t.Error(got)
	}
}

func TestChartJoinsPoints(t *testing.T) {
	t.Parallel()
	s := replay.Series{PointMillis: 1000, Admitted: make([]int64, 100), Denied: make([]int64, 100)}
	for i := range s.Admitted {
		s.Admitted[i], s.Denied[i] = 2, 1
	}
	admitted, denied, each := columns(s)
	if len(admitted) != 50 || each != 2 || admitted[49] != 4 || denied[0] != 2 {
		t.Errorf("%v %v %d", admitted, denied, each)
	}
	if got := chart(s); !strings.Contains(got, "each column 2s, from 1970-01-01 00:00:00 UTC") || !strings.Contains(got, "#") || !strings.Contains(got, "·") {
		t.Error(got)
	}
	if got := chart(replay.Series{}); got != "" {
		t.Error(got)
	}
}
