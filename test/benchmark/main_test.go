package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/measure"
	"github.com/edgelimit/edgelimit/test/benchmark/redisproc"
	"github.com/edgelimit/edgelimit/test/benchmark/report"
)

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"compare", "-short"}, io.Discard)
	if err != nil || o.duration != 500*time.Millisecond || o.warmUp != 125*time.Millisecond || o.rounds != 3 || o.most != shortMost || !o.page {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = parse([]string{"scale"}, io.Discard); err != nil || o.duration != 2*time.Second || o.most != fullMost {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = parse([]string{"compare", "-only", "edge"}, io.Discard); err != nil || o.page {
		t.Errorf("a part of the contenders would be published: %+v, %v", o, err)
	}
	for _, args := range [][]string{
		{"compare", "-rounds", "0"}, {"compare", "-seconds", "-1"}, {"compare", "-seconds", "NaN"}, {"compare", "-keys", "0"},
		{"compare", "-pool", "0"}, {"compare", "-only", "("}, {"compare", "more"}, {"compare", "-unknown"}, {"scale", "-most", "1"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v: accepted", args)
		}
	}
	if _, err := parse([]string{"compare", "-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("%v", err)
	}
}

// The command that a page names gives the same run.
func TestInvocationGivesTheSameRun(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"compare", "-short"}, {"compare", "-rounds", "5", "-seconds", "1.5", "-keys", "10", "-pool", "4"}, {"scale", "-most", "100000"},
	} {
		a, err := parse(args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(a.invocation())
		b, err := parse(words[1:], io.Discard)
		if err != nil || *b != *a || words[0] != "test/scripts/benchmark.sh" {
			t.Errorf("%v: %+v by %v, want %+v: %v", args, b, words, a, err)
		}
		if _, err := os.Stat(filepath.Join(a.root, words[0])); err != nil {
			t.Error(err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"doubt"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A run of one contender, from the server to the JSON: no page, and one sample for each cell.
func TestCompareOne(t *testing.T) {
	t.Setenv(redisproc.AddressVariable, "")
	file := filepath.Join(t.TempDir(), "run.json")
	var out bytes.Buffer
	if err := run(t.Context(), []string{
		"compare", "-short", "-rounds", "2", "-seconds", "0.01", "-keys", "5", "-only", "^(plain EVALSHA|edgelimit gcra)$", "-json", file, "-profile=false",
	}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	c, err := report.Load[report.Comparison](file)
	if err != nil {
		t.Fatal(err)
	}
	// Two rounds of two contenders at four numbers of callers, denials of one, and one in memory with
	// two numbers of keys.
	if len(c.Samples) != 2*(2*4+1) || len(c.InMemory) != 2*2 || len(c.Redis) != 2 || len(c.Memory) != 1 {
		t.Errorf("%d and %d samples of %v and %v", len(c.Samples), len(c.InMemory), c.Redis, c.Memory)
	}
	for _, s := range c.Samples {
		if s.Decisions == 0 || s.Rate() <= 0 || s.P50 <= 0 || s.P99 < s.P50 || s.P999 < s.P99 || s.ScriptMicros <= 0 || s.ServerCalls["evalsha"].PerDecision < 0.5 {
			t.Errorf("%+v", s)
		}
	}
	if c.Redis[0].Version == "" || c.Machine.Redis == "" || !strings.Contains(out.String(), "targets") {
		t.Errorf("%+v, %+v, %q", c.Redis, c.Machine, out.String())
	}
}

// A page is written from what was saved, below another root.
func TestRender(t *testing.T) {
	t.Parallel()
	o := &options{root: t.TempDir()}
	if err := report.Save(o.compareFile(), &report.Comparison{Conditions: report.Conditions{Command: "the very command"}}); err != nil {
		t.Fatal(err)
	}
	if err := render(o, io.Discard); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(o.pageFile())
	if err != nil || !strings.Contains(string(page), "the very command") {
		t.Errorf("%q, %v", page, err)
	}
}

func TestRotated(t *testing.T) {
	t.Parallel()
	all := contender.OverRedis()
	firsts := make(map[string]bool)
	for round := range 3 {
		turned := rotated(all, round)
		firsts[turned[0].Name] = true
		names := make([]string, len(turned))
		for i, c := range turned {
			names[i] = c.Name
		}
		slices.Sort(names)
		if len(slices.Compact(names)) != len(all) {
			t.Errorf("round %d: %v", round, names)
		}
	}
	if len(firsts) != 3 {
		t.Errorf("rounds begin with %v", firsts)
	}
	if len(rotated(nil, 2)) != 0 {
		t.Error("something of nothing")
	}
}

func TestACellThatIsNotWhatItSaysIsRefused(t *testing.T) {
	t.Parallel()
	of := func(role contender.Role, kind contender.Kind) cell {
		return cell{contender: contender.Contender{Name: "x", Role: role}, setting: contender.Setting{Kind: kind}}
	}
	fixed, unchecked := of(contender.Reference, contender.Deny), of(contender.Own, contender.Allow)
	fixed.contender.Fixed, unchecked.contender.Unchecked = true, true
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		cell  cell
		tally measure.Tally
		ok    bool
	}{
		"allowed":              {of(contender.Own, contender.Allow), measure.Tally{Allowed: 100}, true},
		"denied":               {of(contender.Own, contender.Deny), measure.Tally{Denied: 100}, true},
		"denied, not allowed":  {of(contender.Own, contender.Allow), measure.Tally{Allowed: 98, Denied: 2}, false},
		"allowed, not denied":  {of(contender.Peer, contender.Deny), measure.Tally{Allowed: 2, Denied: 98}, false},
		"one window's end":     {of(contender.Peer, contender.Deny), measure.Tally{Allowed: 1, Denied: 999}, true},
		"fixed":                {fixed, measure.Tally{Allowed: 100}, true},
		"unchecked":            {unchecked, measure.Tally{Allowed: 1, Denied: 99}, true},
		"one of ours failed":   {of(contender.Own, contender.Allow), measure.Tally{Allowed: 100_000, Failed: 1, FirstError: broken}, false},
		"few of a peer failed": {of(contender.Peer, contender.Allow), measure.Tally{Allowed: 999, Failed: 1, FirstError: broken}, true},
		"many of a peer":       {of(contender.Peer, contender.Allow), measure.Tally{Allowed: 90, Failed: 10, FirstError: broken}, false},
	} {
		c.tally.Elapsed = time.Second
		if _, err := c.cell.sample(&c.tally); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseAlone(t *testing.T) {
	t.Parallel()
	alone, err := parseAlone("goos: linux\nBenchmarkDecisionAlone-2   \t 1000000\t        51.3 ns/op\t       0 B/op\t       0 allocs/op\nPASS\n")
	if err != nil || *alone != (report.Alone{Nanos: 51.3}) {
		t.Errorf("%+v, %v", alone, err)
	}
	for _, text := range []string{"", "PASS\n", "BenchmarkDecisionAlone-2 10 x ns/op 0 B/op 0 allocs/op\n", "BenchmarkDecisionAlone-2 10 5 ns/op\n"} {
		if _, err := parseAlone(text); err == nil {
			t.Errorf("%q: accepted", text)
		}
	}
}

func TestHottest(t *testing.T) {
	t.Parallel()
	location := func(names ...string) *profile.Location {
		l := &profile.Location{}
		for _, name := range names {
			l.Line = append(l.Line, profile.Line{Function: &profile.Function{Name: name}})
		}
		return l
	}
	leaf, inlined, root := location("leaf"), location("inner", "outer"), location("root")
	p := &profile.Profile{Sample: []*profile.Sample{
		{Location: []*profile.Location{leaf, root}, Value: []int64{1, 60}},
		{Location: []*profile.Location{inlined, root}, Value: []int64{1, 30}},
		{Location: []*profile.Location{root, root}, Value: []int64{1, 10}}, // recursion counts once
	}}
	want := []report.Hot{{Function: "leaf", Flat: 0.6, Cum: 0.6}, {Function: "inner", Flat: 0.3, Cum: 0.3}, {Function: "root", Flat: 0.1, Cum: 1}}
	if got := hottest(p, 5); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := hottest(p, 1); !slices.Equal(got, want[:1]) {
		t.Errorf("%v", got)
	}
	if got := hottest(&profile.Profile{}, 5); len(got) != 0 {
		t.Errorf("%v of nothing", got)
	}
}

func TestProfiled(t *testing.T) { // Not parallel: a process has one CPU profile.
	p, err := profiled("a cell", func() error { return nil })
	if err != nil || p.Cell != "a cell" {
		t.Errorf("%+v, %v", p, err)
	}
	broken := errors.New("broken")
	if _, err := profiled("a cell", func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestAddServer(t *testing.T) {
	t.Parallel()
	s := report.Sample{Decisions: 100, Elapsed: time.Millisecond}
	addServer(&s, redisproc.Counters{CPUMicros: 1000}, redisproc.Counters{
		CPUMicros: 1500, Commands: map[string]redisproc.Call{"evalsha": {Calls: 100, Micros: 300}, "hmget": {Calls: 100, Micros: 50}, "get": {}},
	})
	if s.ScriptMicros != 3 || s.ServerMicros != 5 || s.ServerBusy != 0.5 || s.ServerCalls["hmget"] != (report.Nested{PerDecision: 1, Micros: 0.5}) || len(s.ServerCalls) != 2 {
		t.Errorf("%+v", s)
	}
}

func TestDoorsNeedTheirPrograms(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"doors"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "-own") {
		t.Errorf("%v", err)
	}
}

// The version of a module that this very program was built of.
func TestBuiltVersion(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := builtVersion(t.Context(), program, "github.com/redis/go-redis/v9"), versions()["github.com/redis/go-redis/v9"]; got == "" || got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := builtVersion(t.Context(), program, "nobody.example/at/all"); got != "" {
		t.Errorf("%q", got)
	}
}
