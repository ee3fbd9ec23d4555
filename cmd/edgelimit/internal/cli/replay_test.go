package cli_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/cli"
	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/replay"
)

func TestReplaySampleLog(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "decisions.ndjson")
	r := run(t, "", nil, "replay", "--config", replayExample, "--out", out, "--json", sampleLog)
	r.expect(t, 0, `"provider": "memory"`, "")
	if r.stderr != "" {
		t.Errorf("a progress bar where there is no terminal: %q", r.stderr)
	}
	var summary replay.Summary
	if err := json.Unmarshal([]byte(r.stdout), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.Lines != 10_000 || summary.Requests != 10_000 || summary.Unparsed+summary.Late+summary.WithoutSubject != 0 || len(summary.Policies) != 5 {
		t.Errorf("%+v", summary)
	}
	counted := make(map[string]*[2]int64)    // admitted and denied by policy
	byPolicy := make(map[string]replay.Line) // of one line of the log
	var apart comparison
	for _, p := range summary.Policies {
		if p.Requests != 10_000 || p.Admitted+p.Denied != 10_000 || p.Denied == 0 || len(p.MostDenied) == 0 {
			t.Errorf("%+v", p)
		}
		counted[p.PolicyID] = &[2]int64{p.Admitted, p.Denied}
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines, last := 0, int64(0)
	for scanner := bufio.NewScanner(f); scanner.Scan(); lines++ {
		var l replay.Line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil || l.Decision == nil || l.TimeMillis < last || l.Line < 1 || l.Line > 10_000 || len(l.SubjectDigest) != 64 {
			t.Fatalf("line %d: %v %s", lines+1, err, scanner.Text())
		}
		last = l.TimeMillis
		if byPolicy[l.PolicyID] = l; len(byPolicy) == len(summary.Policies) {
			apart.add(t, byPolicy)
			clear(byPolicy)
		}
		if l.Decision.Allowed {
			counted[l.PolicyID][0]--
		} else {
			counted[l.PolicyID][1]--
		}
	}
	for id, left := range counted {
		if *left != [2]int64{} {
			t.Errorf("%s: summary and lines differ by %v", id, left)
		}
	}
	if lines != 50_000 {
		t.Errorf("%d lines", lines)
	}
	// README.md and docs/guarantees.md give these figures.
	if want := (comparison{compared: 10_000, falseDenials: 171, falseAdmissions: 8}); apart != want {
		t.Errorf("the counter is apart from the log in %+v, want %+v", apart, want)
	}
}

// comparison counts in how many decisions the sliding window counter differs from the log.
type comparison struct{ compared, falseDenials, falseAdmissions int }

// add takes the decisions of one line of the log by policy, and holds GCRA to the token bucket.
func (c *comparison) add(t *testing.T, decisions map[string]replay.Line) {
	t.Helper()
	gcra, bucket := *decisions["bursts-gcra"].Decision, *decisions["bursts"].Decision
	if gcra.PolicyID = bucket.PolicyID; gcra != bucket {
		t.Fatalf("GCRA decides %+v, the token bucket %+v", gcra, bucket)
	}
	counter, log := decisions["per-hour"].Decision.Allowed, decisions["per-hour-exact"].Decision.Allowed
	c.compared++
	switch {
	case log && !counter:
		c.falseDenials++
	case counter && !log:
		c.falseAdmissions++
	}
}

func TestReplayStandardInput(t *testing.T) {
	t.Parallel()
	good := `192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1` + "\n"
	log := strings.Repeat(good, 21) + "\x1b[31mno log line\n" + strings.Replace(good, "10:05", "12:05", 1) + strings.Replace(good, "10:05", "10:04", 1) + strings.Replace(good, "192.0.2.7", "-", 1)
	r := run(t, log, nil, "replay", "--config", replayExample, "--policy", "per-minute", "--sort-window", "1m", "-")
	r.expect(t, 0, "25 lines, 22 requests from 2015-05-17 10:05:03 UTC to 2015-05-17 12:05:03 UTC, limited by ip, provider memory\n", "")
	for _, want := range []string{
		"1 line in neither log format; the first:\n  standard input:22: ", `"\x1b[31mno log line"`,
		"1 line without ip, not evaluated", "1 line too late to be sorted, not evaluated (--sort-window 1m, --sort-lines 1000000)", "per-minute  fixed-window        22        21       1        4.55 %",
		"busiest window of 1m: 21 requests of all subjects, 1 of them denied, from 2015-05-17 10:05:00 UTC",
		"# denied, each column 5m",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "192.0.2.7") {
		t.Errorf("a raw subject:\n%s", r.stdout)
	}
	run(t, "garbage\n", nil, "replay", "--config", replayExample, "-").expect(t, 1, "1 line in neither", "no line is in common or combined log format")
	run(t, "", nil, "replay", "--config", replayExample, "-").expect(t, 0, "0 lines, 0 requests, limited by ip", "")
	run(t, "", nil, "replay", "--config", replayExample, "/nonexistent.log").expect(t, 1, "", "no such file")
	run(t, "", nil, "replay", "--config", replayExample, ".").expect(t, 1, "", "is a directory")
	run(t, "\x1f\x8b\x08", nil, "replay", "--config", replayExample, "-").expect(t, 1, "", "standard input: accesslog: ")
}

// TestReplayAtTheBoundOfKeys holds that what was not decided is named, and the exit code says so.
func TestReplayAtTheBoundOfKeys(t *testing.T) {
	t.Parallel()
	r := run(t, "", []string{"EDGELIMIT_APP__RATE_LIMIT__MEMORY__MAX_KEYS=1"}, "replay", "--config", replayExample, "--policy", "per-hour", sampleLog)
	r.expect(t, cli.ExitNotEvaluated, "unavailable (CAPACITY): ", "")
}

// slowReader gives a line each time it is asked, and never ends.
type slowReader struct{ asked chan struct{} }

func (s slowReader) Read(p []byte) (int, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	time.Sleep(time.Millisecond)
	return copy(p, `192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`+"\n"), nil
}

// TestReplayIsInterrupted is not parallel: the signal is the whole process's.
func TestReplayIsInterrupted(t *testing.T) {
	stdin := slowReader{make(chan struct{}, 1)}
	var stdout, stderr lockedBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run([]string{"replay", "--config", replayExample, "--sort-window", "0s", "-"}, stdin, &stdout, &stderr, nil)
	}()
	<-stdin.asked
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 1 || !strings.Contains(stderr.String(), "interrupted") || stdout.String() != "" {
		t.Errorf("%d %q %q", code, stdout.String(), stderr.String())
	}
}
