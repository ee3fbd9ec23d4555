package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/accesslog"
	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/replay"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

var sampleLog = filepath.Join("..", "..", "..", "..", "test", "testdata", "access-combined.log.gz")

// simulatorFunc is a simulator made of a function.
type simulatorFunc func(ctx context.Context, at time.Time, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error)

func (f simulatorFunc) EvaluateAt(ctx context.Context, at time.Time, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	return f(ctx, at, request)
}

func policy(t *testing.T, id ratelimit.PolicyID, parameters ratelimit.Parameters, algorithm ratelimit.Algorithm) *ratelimit.RateLimitPolicy {
	t.Helper()
	p, err := ratelimit.NewRateLimitPolicy(ratelimit.RateLimitPolicyConfig{
		ID: id, Revision: 2, Algorithm: algorithm, Parameters: parameters, MaxCost: 1, FailurePolicy: ratelimit.FailClosed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fixedWindow(t *testing.T, id ratelimit.PolicyID, limit int64, window time.Duration) *ratelimit.RateLimitPolicy {
	t.Helper()
	return policy(t, id, ratelimit.FixedWindowParameters{Limit: limit, Window: window}, ratelimit.AlgorithmFixedWindow)
}

// counting is a fixed window in the plainest form: a count for each subject and window.
func counting(limit int64, window time.Duration) simulatorFunc {
	counts := make(map[string]int64)
	return func(_ context.Context, at time.Time, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		key := fmt.Sprint(r.Subject, at.UnixMilli()/window.Milliseconds())
		d := ratelimit.RateLimitDecision{Limit: limit, PolicyID: r.PolicyID, PolicyRevision: 2, Source: ratelimit.SourceLocalMemory, Certainty: ratelimit.CertaintyCertain}
		if counts[key] < limit {
			counts[key]++
			d.Allowed = true
		} else {
			d.RetryAfter = time.Millisecond
		}
		d.Remaining = limit - counts[key]
		d.ResetAt = time.UnixMilli((at.UnixMilli()/window.Milliseconds() + 1) * window.Milliseconds())
		return ratelimit.Evaluated{Decision: d}, nil
	}
}

func digester(t *testing.T) func(string) (ratelimit.SubjectDigest, error) {
	t.Helper()
	d, err := ratelimit.NewSubjectDigester(bytes.Repeat([]byte("s"), 32))
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest
}

var wide = accesslog.Bounds{Window: time.Hour, Lines: 1_000_000}

func line(second int, host string) string {
	return fmt.Sprintf("%s - - [17/May/2015:10:05:%02d +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"agent\"\n", host, second)
}

const start = int64(1431857100000) // 17 May 2015 10:05:00 UTC

func TestSmallLog(t *testing.T) {
	t.Parallel()
	log := line(3, "a") + line(1, "a") + "not a line\n" + line(2, "a") + line(1, "b") + line(59, "a")
	var out bytes.Buffer
	digest := digester(t)
	summary, err := replay.Run(t.Context(), replay.Config{
		Simulator: counting(2, time.Minute), Digest: digest, Policies: []*ratelimit.RateLimitPolicy{fixedWindow(t, "p", 2, time.Minute)},
		Subject: accesslog.SubjectIP, Bounds: wide, Logs: []replay.Log{{Name: "access.log", Reader: strings.NewReader(log)}}, Out: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := digest("a")
	if err != nil {
		t.Fatal(err)
	}
	want := replay.Summary{
		SubjectField: "ip", Lines: 6, Requests: 5, Unparsed: 1, FromMillis: start + 1000, ToMillis: start + 59000,
		FirstUnparsed: []replay.UnparsedLine{{Log: "access.log", Line: 3, Reason: "no user and [time] after the ident", Text: "not a line"}},
		Policies: []replay.PolicySummary{{
			PolicyID: "p", Revision: 2, Algorithm: "fixed-window", Requests: 5, Admitted: 3, Denied: 2, DeniedShare: 0.4,
			Busiest:        &replay.Window{Kind: "window", Millis: 60000, FromMillis: start, Requests: 5, Denied: 2},
			DeniedSubjects: 1, MostDenied: []replay.Subject{{Digest: a.String(), Denied: 2}},
		}},
	}
	series := summary.Policies[0].Series
	summary.Policies[0].Series = replay.Series{}
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Error(diff)
	}
	if series.PointMillis != 1000 || series.FromMillis != start+1000 || len(series.Admitted) != 59 || sum(series.Admitted) != 3 || series.Denied[2] != 1 || series.Denied[58] != 1 {
		t.Errorf("series %+v", series)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d lines:\n%s", len(lines), &out)
	}
	wantLine := `{"line":2,"timeMillis":1431857101000,"policyId":"p","subjectDigest":"` + a.String() + `","outcome":"EVALUATED","decision":{"allowed":true,"limit":2,"remaining":1,"retryAfterMillis":0,"resetAtMillis":1431857160000,"policyId":"p","policyRevision":2,"source":"LOCAL_MEMORY","certainty":"CERTAIN"}}`
	if lines[0] != wantLine {
		t.Errorf("line\n%s want\n%s", lines[0], wantLine)
	}
	var order []int64
	for _, text := range lines {
		var l replay.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		order = append(order, l.Line)
	}
	if fmt.Sprint(order) != "[2 5 4 1 6]" {
		t.Errorf("order %v", order)
	}
}

func sum(points []int64) (total int64) {
	for _, n := range points {
		total += n
	}
	return total
}

func TestSeveralLogsLateLinesAndMissingSubjects(t *testing.T) {
	t.Parallel()
	first := line(10, "a") + line(40, "a") + line(5, "a")
	second := line(20, "b") + strings.ReplaceAll(line(30, "c"), "c - -", "- - -")
	var out bytes.Buffer
	summary, err := replay.Run(t.Context(), replay.Config{
		Simulator: counting(9, time.Minute), Digest: digester(t), Policies: []*ratelimit.RateLimitPolicy{fixedWindow(t, "p", 9, time.Minute)},
		Subject: accesslog.SubjectIP, Bounds: accesslog.Bounds{Window: 20 * time.Second, Lines: 100},
		Logs: []replay.Log{{Name: "2", Reader: strings.NewReader(first)}, {Name: "1", Reader: strings.NewReader(second)}}, Out: &out,
	})
	if err != nil || summary.Lines != 5 || summary.Requests != 3 || summary.Late != 1 || summary.WithoutSubject != 1 {
		t.Errorf("%v %+v", err, summary)
	}
	if got := out.String(); strings.Count(got, `"log":1`) != 2 || strings.Count(got, `{"line":1,"log":2,`) != 1 || strings.Index(got, `"log":2`) < strings.Index(got, `"log":1`) {
		t.Errorf("output\n%s", got)
	}
}

func TestOutcomesThatAreNoDecisions(t *testing.T) {
	t.Parallel()
	outcomes := []ratelimit.Outcome{
		ratelimit.Unavailable{PolicyID: "p", RetryAfter: time.Second, Category: ratelimit.UnavailableCapacity},
		ratelimit.Indeterminate{PolicyID: "p", RetryAfter: time.Second},
		ratelimit.Incompatible{PolicyID: "p", Category: ratelimit.IncompatibleState},
		nil,
	}
	asked := 0
	var out bytes.Buffer
	summary, err := replay.Run(t.Context(), replay.Config{
		Simulator: simulatorFunc(func(_ context.Context, _ time.Time, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
			if r.Deadline.IsZero() || r.Cost != 1 {
				t.Errorf("request %+v", r)
			}
			asked++
			return outcomes[asked-1], nil
		}),
		Digest: digester(t), Policies: []*ratelimit.RateLimitPolicy{fixedWindow(t, "p", 2, time.Minute)}, Subject: accesslog.SubjectUserAgent, Bounds: wide,
		Logs: []replay.Log{{Reader: strings.NewReader(strings.Repeat(line(1, "a"), 4))}}, Out: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := summary.Policies[0]
	if diff := cmp.Diff([]any{int64(4), int64(0), int64(0), int64(1), map[string]int64{"CAPACITY": 1}, map[string]int64{"STATE": 1, "UNKNOWN": 1}},
		[]any{p.Requests, p.Admitted, p.Denied, p.Indeterminate, p.Unavailable, p.Incompatible}); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(out.String(), `"outcome":"UNAVAILABLE","category":"CAPACITY","retryAfterMillis":1000}`) {
		t.Errorf("output\n%s", &out)
	}
}

func TestEarlyEnds(t *testing.T) {
	t.Parallel()
	base := func() replay.Config {
		return replay.Config{
			Simulator: counting(2, time.Minute), Digest: digester(t), Policies: []*ratelimit.RateLimitPolicy{fixedWindow(t, "p", 2, time.Minute)},
			Subject: accesslog.SubjectIP, Bounds: wide, Logs: []replay.Log{{Name: "log", Reader: strings.NewReader(line(1, "a") + line(2, "a"))}},
		}
	}
	t.Run("context", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		c := base()
		c.Simulator = simulatorFunc(func(ctx context.Context, at time.Time, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
			if at.UnixMilli() == start+2000 {
				cancel()
			}
			return counting(2, time.Minute)(ctx, at, r)
		})
		summary, err := replay.Run(ctx, c)
		if !errors.Is(err, context.Canceled) || summary.Policies[0].Requests != 1 {
			t.Errorf("%v %+v", err, summary)
		}
	})
	t.Run("simulator", func(t *testing.T) {
		t.Parallel()
		c := base()
		refused := &ratelimit.InvalidRequestError{Fault: ratelimit.FaultUnknownPolicy}
		c.Simulator = simulatorFunc(func(context.Context, time.Time, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
			return nil, refused
		})
		if _, err := replay.Run(t.Context(), c); !errors.Is(err, refused) {
			t.Errorf("%v", err)
		}
	})
	t.Run("log", func(t *testing.T) {
		t.Parallel()
		c := base()
		c.Logs = append(c.Logs, replay.Log{Name: "broken", Reader: strings.NewReader("\x1f\x8b")})
		if _, err := replay.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "broken: ") {
			t.Errorf("%v", err)
		}
	})
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		c := base()
		c.Out = full{}
		if _, err := replay.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("%v", err)
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSeriesStaysBounded(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for hour := range 2000 {
		at := time.UnixMilli(start).UTC().Add(time.Duration(hour) * time.Hour)
		log.WriteString(strings.ReplaceAll(line(0, "a"), "17/May/2015:10:05:00", at.Format("02/Jan/2006:15:04:05")))
	}
	summary, err := replay.Run(t.Context(), replay.Config{
		Simulator: counting(1, 2*time.Hour), Digest: digester(t), Policies: []*ratelimit.RateLimitPolicy{fixedWindow(t, "p", 1, 2*time.Hour)},
		Subject: accesslog.SubjectIP, Bounds: wide, Logs: []replay.Log{{Reader: strings.NewReader(log.String())}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := summary.Policies[0]
	s := p.Series
	if len(s.Admitted) > 120 || len(s.Admitted) < 20 || sum(s.Admitted) != p.Admitted || sum(s.Denied) != p.Denied || p.Admitted+p.Denied != 2000 ||
		s.FromMillis%s.PointMillis != 0 || s.FromMillis > start || s.FromMillis+int64(len(s.Admitted))*s.PointMillis <= summary.ToMillis {
		t.Errorf("%+v for %+v", s, p)
	}
}
