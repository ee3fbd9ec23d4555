package report

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
)

// rounds makes one sample for each rate, all else given by edit.
func rounds(name string, kind contender.Kind, callers, keys int, rates []float64, edit func(*Sample)) []Sample {
	all := make([]Sample, len(rates))
	for i, r := range rates {
		all[i] = Sample{
			Contender: name, Kind: string(kind), Callers: callers, Keys: keys, Round: i, Decisions: int64(r * 2), Elapsed: 2 * time.Second,
			P50: time.Millisecond, P99: 2 * time.Millisecond, P999: 3 * time.Millisecond, Allocs: 10, Bytes: 600,
			ScriptMicros: 2, ServerMicros: 4, ServerBusy: 0.5, ClientBusy: 0.9, MachineBusy: 1.5,
			ServerCalls: map[string]Nested{"evalsha": {1, 2}, "hmget": {1, 0.5}, "info": {0.001, 9}},
		}
		if edit != nil {
			edit(&all[i])
		}
	}
	return all
}

// madeUp is a comparison with figures that are easy to reckon with.
func madeUp() *Comparison {
	c := &Comparison{
		Machine: Machine{CPU: "a processor", Cores: 2, Go: "go1", Redis: "redis 7", Load: 0.1},
		Conditions: Conditions{
			Command: "the command", Rounds: 3, Duration: time.Second, Keys: 1000, PoolSize: 16, Callers: []int{1, 16, 64, 256},
			DenyCallers: []int{64}, MemoryCallers: 2, MemoryKeys: []int{1, 100_000},
		},
		Alone:    &Alone{Command: "go test", Nanos: 50},
		Absent:   []Absence{{"a peer", "it is not to be had"}},
		Profiles: []Profile{{"a cell", []Hot{{"f", 0.5, 0.75}}}},
	}
	for _, name := range []string{contender.PlainName, contender.AutoPipelineName, tokenBucket, fixedWindow, contender.RedisRateName} {
		role, rate := contender.Own, 100_000.0
		switch name {
		case contender.PlainName, contender.AutoPipelineName:
			role = contender.Reference
		case contender.RedisRateName:
			role, rate = contender.Peer, 50_000
		}
		c.Redis = append(c.Redis, Entry{Name: name, Role: string(role), Module: "m", Version: "v1", Fixed: role == contender.Reference})
		for _, callers := range c.Conditions.Callers {
			c.Samples = append(c.Samples, rounds(name, contender.Allow, callers, 1000, []float64{rate, rate * 2, rate / 2}, nil)...)
		}
		if role != contender.Reference {
			c.Samples = append(c.Samples, rounds(name, contender.Deny, 64, 1000, []float64{rate, rate, rate}, func(s *Sample) { s.ScriptMicros = 1 })...)
		}
	}
	for name, rate := range map[string]float64{contender.ClockName: 20e6, tokenBucket: 10e6, "slow": 1e6, "fast": 8e6} {
		role := contender.Peer
		if name == contender.ClockName {
			role = contender.Reference
		}
		if name == tokenBucket {
			role = contender.Own
		}
		c.Memory = append(c.Memory, Entry{Name: name, Role: string(role)})
		allocate := func(s *Sample) { s.Allocs = 1.00004 }
		c.InMemory = append(c.InMemory, rounds(name, contender.Allow, 1, 1, []float64{rate, rate, rate}, allocate)...)
		c.InMemory = append(c.InMemory, rounds(name, contender.Allow, 2, 100_000, []float64{rate, rate, rate}, allocate)...)
	}
	return c
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		figure   float64
		relation Relation
		bound    float64
		want     Verdict
	}{
		{2, AtLeast, 2, VerdictMet}, {1.999, AtLeast, 2, VerdictMissed},
		{2, AtMost, 2, VerdictMet}, {2.001, AtMost, 2, VerdictMissed},
		{1.999, Below, 2, VerdictMet}, {2, Below, 2, VerdictMissed},
		{math.NaN(), AtLeast, 2, VerdictNotMeasured}, {math.NaN(), AtMost, 2, VerdictNotMeasured},
		{math.Inf(1), AtLeast, 2, VerdictNotMeasured}, {1, AtMost, math.NaN(), VerdictNotMeasured},
		{1, RelationInvalid, 2, VerdictInvalid},
	} {
		if got := Judge(c.figure, c.relation, c.bound); got != c.want {
			t.Errorf("%v %v %v: %v, want %v", c.figure, c.relation, c.bound, got, c.want)
		}
	}
}

// judgement finds the one whose target holds every word.
func judgement(t *testing.T, all []Judgement, words ...string) Judgement {
	t.Helper()
	var found []Judgement
	for _, j := range all {
		holds := true
		for _, word := range words {
			holds = holds && strings.Contains(j.Target, word)
		}
		if holds {
			found = append(found, j)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d targets with %q", len(found), words)
	}
	return found[0]
}

func TestJudgements(t *testing.T) {
	t.Parallel()
	all := Judgements(madeUp())
	for _, c := range []struct {
		words   []string
		figure  float64
		verdict Verdict
	}{
		{[]string{"redis_rate", "64 callers", "decisions"}, 2, VerdictMet},
		{[]string{"plain", "64 callers", "decisions"}, 1, VerdictMissed},
		{[]string{"redis_rate", "256 callers"}, 2, VerdictMissed},
		{[]string{"p99"}, 1, VerdictMissed},
		{[]string{"1 caller,"}, 1, VerdictMet},
		{[]string{"AutoPipeline"}, 1, VerdictMet},
		{[]string{"token bucket by plain", "server time"}, 1, VerdictMet},
		{[]string{"fixed window by plain", "server time"}, 1, VerdictMet},
		{[]string{tokenBucket, "denial"}, 0.5, VerdictMet},
		{[]string{fixedWindow, "denial"}, 0.5, VerdictMet},
		{[]string{"64 callers, allocations"}, 10, VerdictMet},
		{[]string{"64 callers, bytes"}, 600, VerdictMet},
		{[]string{"one key"}, 2, VerdictMissed},
		{[]string{"100,000 keys", "(fast)"}, 0.8, VerdictMet},
		{[]string{"in the decision"}, 0, VerdictMet},
		{[]string{"through the port", "allocations"}, 1, VerdictMet},
	} {
		j := judgement(t, all, c.words...)
		if math.Abs(j.Figure-c.figure) > 1e-9 || j.Verdict != c.verdict {
			t.Errorf("%s: %v %v, want %v %v", j.Target, j.Figure, j.Verdict, c.figure, c.verdict)
		}
	}
	if missed, without := Missed(all); missed != 4 || without != 0 || len(all) != 16 {
		t.Errorf("%d missed, %d not measured of %d", missed, without, len(all))
	}
}

// The ratio is of medians; its spread is that of the rounds, each with its own.
func TestRatioOfMediansAndSpreadOfRounds(t *testing.T) {
	t.Parallel()
	j := ofRatio("x", AtLeast, 1, []float64{10, 40, 30}, []float64{10, 10, 60}, times)
	if j.Figure != 3 || j.Least != 0.5 || j.Greatest != 4 || j.Verdict != VerdictMet {
		t.Errorf("%+v", j)
	}
	if j := ofRatio("x", AtLeast, 1, []float64{1, 2}, []float64{1}, times); !math.IsNaN(j.Least) {
		t.Errorf("rounds that do not belong together have a spread: %+v", j)
	}
}

func TestWhatWasNotMeasuredIsNeitherMetNorMissed(t *testing.T) {
	t.Parallel()
	all := Judgements(&Comparison{})
	if missed, without := Missed(all); missed != 0 || without != len(all) {
		t.Errorf("%d missed, %d not measured of %d", missed, without, len(all))
	}
	page := Page(&Comparison{Redis: []Entry{{Name: "x"}}, Memory: []Entry{{Name: "x"}}}, &Scale{}, &Doors{Entries: []Entry{{Name: "x"}}})
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || !strings.Contains(page, "not measured") {
		t.Error(page)
	}
}

func madeUpScale() *Scale {
	s := &Scale{Machine: Machine{Cores: 2}, Conditions: Conditions{Rounds: 3, Duration: time.Second}, Algorithm: "token bucket"}
	for callers, rate := range map[int]float64{1: 10_000, 64: 120_000, 1024: 100_000} {
		s.Callers = append(s.Callers, rounds("x", contender.Allow, callers, 1000, []float64{rate, rate * 3, rate / 3}, func(s *Sample) {
			if callers == 64 {
				s.ServerBusy = 0.95
			}
		})...)
	}
	for _, keys := range []int{1000, 1_000_000} {
		edit := func(s *Sample) { s.BytesPerKey = 222 }
		s.Keys = append(s.Keys, rounds("x", contender.Allow, 64, keys, []float64{1e5}, edit)...)
		s.Memory = append(s.Memory, rounds("x", contender.Allow, 2, keys, []float64{5e6}, edit)...)
	}
	for _, policies := range []int{1, 1000} {
		s.Policies = append(s.Policies, rounds("x", contender.Allow, 64, 1000, []float64{1e5}, func(s *Sample) { s.Policies = policies })...)
	}
	return s
}

// madeUpDoors has one that is fast and one that is quick to answer.
func madeUpDoors() *Doors {
	d := &Doors{Conditions: Conditions{Rounds: 3, Callers: []int{1, 64}, DenyCallers: []int{64}}}
	for name, c := range map[string]struct {
		role contender.Role
		rate float64
		p99  time.Duration
	}{
		"edgelimit":       {contender.Own, 40_000, 2 * time.Millisecond},
		"other":           {contender.Peer, 10_000, time.Millisecond},
		"other, buffered": {contender.Peer, 20_000, 3 * time.Millisecond},
	} {
		d.Entries = append(d.Entries, Entry{Name: name, Role: string(c.role)})
		for _, callers := range d.Conditions.Callers {
			d.Samples = append(d.Samples, rounds(name, contender.Allow, callers, 1000, []float64{c.rate, c.rate, c.rate}, func(s *Sample) { s.P99 = c.p99 })...)
		}
		d.Samples = append(d.Samples, rounds(name, contender.Deny, 64, 1000, []float64{c.rate}, nil)...)
	}
	return d
}

func TestPageShowsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	page := Page(madeUp(), madeUpScale(), madeUpDoors())
	for _, want := range []string{
		"16 targets: 12 met, 4 missed, 0 not measured",
		"| token bucket by plain EVALSHA, 64 callers, decisions a second | at least 1.4 | 1.00 | 100.0k/s by 100.0k/s | **missed** |",
		"| redis_rate | 50.0k/s (0.50) | 50.0k/s (0.50) | 50.0k/s (0.50) | 50.0k/s (0.50) |",
		"| redis_rate | 1000 / 2000 / 3000 |",
		"evalsha 1.00 × 2.00, hmget 1.00 × 0.50 |",
		"- `a peer`: it is not to be had.",
		"| `f` | 50.0 % | 75.0 % |",
		"by the package's own benchmark (`go test`): 50.0 ns, 0 allocations",
		"took 5 % of the machine",
		"one Redis carried 120.0k/s at most, at 64 callers",
		"that CPU time alone would allow 250.0k/s",
		"| 3 | 360.0k/s | computed |",
		"| 64 callers, decisions a second, by the fastest of the others (other, buffered) | at least 1.5 | 2.00 | 40.0k/s by 20.0k/s | met |",
		"| 64 callers, p99 latency, by the lowest of the others (other) | below 1 | 2.00 | 2000 µs by 1000 µs | **missed** |",
		"| edgelimit | 40.0k/s | 40.0k/s |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "NaN") {
		t.Error("the page has a NaN")
	}
	if t.Failed() {
		t.Log(page)
	}
}

func TestPageSaysWhatIsNotThereYet(t *testing.T) {
	t.Parallel()
	page := Page(nil, nil, nil)
	for _, want := range []string{"`make bench` makes it", "`make bench-scale` makes it", "`make bench-doors` makes it"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// Every picture that the page shows is written, and is XML.
func TestCharts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, s := madeUp(), madeUpScale()
	if err := WriteCharts(dir, c, s); err != nil {
		t.Fatal(err)
	}
	page := Page(c, s, nil)
	files, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(files) != 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if !strings.Contains(page, "(benchmarks/"+filepath.Base(file)+")") {
			t.Errorf("no page shows %s", filepath.Base(file))
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(strings.NewReader(string(text)))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	if err := WriteCharts(t.TempDir(), &Comparison{}, &Scale{}); err != nil {
		t.Errorf("a run without samples: %v", err)
	}
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a", "run.json")
	if run, err := LoadIfAny[Comparison](file); run != nil || err != nil {
		t.Errorf("%v, %v from no file", run, err)
	}
	if _, err := Load[Comparison](file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v from no file", err)
	}
	want := madeUp()
	if err := Save(file, want); err != nil {
		t.Fatal(err)
	}
	got, err := Load[Comparison](file)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v, want\n%+v", err, got, want)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadIfAny[Comparison](file); err == nil {
		t.Error("half a file is accepted")
	}
}

func TestBoundOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, client, machine float64
		want                    string
	}{
		{0.5, 0.5, 1, "round trip"}, {0.9, 0.9, 2, "one thread"}, {0.7, 1.2, 2, "server and client share"},
		{0.3, 0.4, 2, "other programs"}, {0.6, 0.95, 1.72, "and system share"},
	} {
		if got := boundOf(point{server: c.server, client: c.client, machine: c.machine}, 2); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		grouped(1): "1", grouped(999): "999", grouped(1000): "1,000", grouped(10_000_000): "10,000,000",
		perSecond(1500): "1.5k/s", perSecond(2_500_000): "2.50M/s", perSecond(math.NaN()): noFigure,
		latency(1_500_000): "1500 µs", micros(1.234): "1.23 µs", nanoseconds(46.78): "46.8 ns", times(math.Inf(1)): noFigure,
		plural(1, "round"): "1 round", plural(1000, "key"): "1,000 keys", seconds(500 * time.Millisecond): "0.5 s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
