package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/measure"
)

// page is a document while it is written.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// paragraph is a line with an empty one after it.
func (p *page) paragraph(format string, args ...any) {
	p.line(format, args...)
	p.WriteByte('\n')
}

// table writes rows of cells below a head.
func (p *page) table(head []string, rows [][]string) {
	w := table.NewWriter()
	w.AppendHeader(row(head))
	for _, cells := range rows {
		w.AppendRow(row(cells))
	}
	p.WriteString(w.RenderMarkdown())
	p.WriteString("\n\n")
}

func row(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, cell := range cells {
		r[i] = cell
	}
	return r
}

// Page writes docs/benchmarks.md. Any run may be nil; its part then says how to make it.
func Page(c *Comparison, s *Scale, d *Doors) string {
	p := &page{}
	p.paragraph("# Benchmarks")
	p.paragraph("This page is written by the program in `test/benchmark` from what it measured: `make bench` compares edgelimit with " +
		"other libraries, `make bench-scale` shows how it grows, `make bench-doors` compares the door for Envoy. The raw figures lie beside the " +
		"charts, in `benchmarks/compare.json`, `benchmarks/scale.json` and `benchmarks/doors.json`; `test/scripts/benchmark.sh render` writes the page from them again. Figures of another machine " +
		"differ; ratios differ less.")
	if c == nil {
		p.paragraph("There is no comparison yet: `make bench` makes it.")
	} else {
		p.compared(c)
	}
	if d == nil {
		p.paragraph("## Doors for Envoy")
		p.paragraph("There is no such run yet: `make bench-doors` makes it.")
	} else {
		p.doors(d)
	}
	if s == nil {
		p.paragraph("## Growth")
		p.paragraph("There is no such run yet: `make bench-scale` makes it.")
	} else {
		p.grown(s)
	}
	return strings.TrimRight(p.String(), "\n") + "\n"
}

func (p *page) compared(c *Comparison) {
	p.targets(c)
	p.conditions(c)
	p.rates(c)
	p.latencies(c)
	p.costs(c)
	p.denials(c)
	p.inside(c)
	p.inMemory(c)
	p.profiles(c)
}

func (p *page) targets(c *Comparison) {
	all := Judgements(c)
	missed, without := Missed(all)
	p.paragraph("## Targets")
	p.paragraph("%d targets: %d met, %d missed, %d not measured in this run. A ratio is of the medians over all rounds; beside it stand "+
		"the least and the greatest ratio within one round. Each figure comes from this page's one run, `%s`.",
		len(all), len(all)-missed-without, missed, without, c.Conditions.Command)
	p.judged(all)
	one := func(figure func(Sample) float64) float64 { return median(c.Samples, allow(tokenBucket, 1), figure) }
	p.paragraph("At one caller an evaluation of the token bucket takes %s allocations and %s bytes.", times(one(allocs)), times(one(size)))
}

// judged writes targets with what was measured.
func (p *page) judged(all []Judgement) {
	rows := make([][]string, 0, len(all))
	for _, j := range all {
		figure := times(j.Figure)
		if j.Least != j.Greatest && !math.IsNaN(j.Least) {
			figure += fmt.Sprintf(" (%s–%s)", times(j.Least), times(j.Greatest))
		}
		rows = append(rows, []string{j.Target, fmt.Sprintf("%v %g", j.Relation, j.Bound), figure, j.From, j.Verdict.String()})
	}
	p.table([]string{"target", "bound", "measured", "of", "verdict"}, rows)
}

func (p *page) conditions(c *Comparison) {
	p.paragraph("## Conditions")
	p.machine(c.Machine, c.Conditions)
	p.others(c)
	k := c.Conditions
	p.paragraph("%s in one process. In each round all contenders follow each other at each number of callers, beginning with another "+
		"one each time; a cell is driven for %s after a warm-up of %s that is not counted. %s keys over Redis, asked for evenly; every key was "+
		"asked for once before. Each caller asks again as soon as it was answered.",
		plural(k.Rounds, "round"), seconds(k.Duration), seconds(k.WarmUp), grouped(k.Keys))
	p.paragraph("All have the same limit: %s a minute, all of which may come at once, for allowances over Redis; 1 in 24 h, spent beforehand, "+
		"for denials; %s a second in memory. (The sliding window log goes to %s: that a second over Redis, that a millisecond in memory, "+
		"where it denies what is beyond.) Every client has %d connections and is otherwise as its library makes it by default, go-redis of "+
		"the version below wherever go-redis is used; rueidis alone chooses its own connections. Keys and subject digests were made "+
		"beforehand: what turns an identity into one is measured for nobody. Server and clients share the cores.",
		grouped(contender.AllowLimit), grouped(contender.MemoryLimit), grouped(contender.LogLimit), k.PoolSize)
	p.entries("over Redis", c.Redis)
	p.entries("in memory", c.Memory)
	if len(c.Absent) > 0 {
		p.paragraph("Not compared:")
		for _, a := range c.Absent {
			p.line("- `%s`: %s.", a.Name, a.Why)
		}
		p.line("")
	}
}

func (p *page) entries(where string, all []Entry) {
	if len(all) == 0 {
		return
	}
	rows := make([][]string, 0, len(all))
	for _, e := range all {
		rows = append(rows, []string{e.Name, e.Role, strings.TrimSpace(e.Module + " " + e.Version), e.Algorithm, e.Note})
	}
	p.table([]string{where, "is", "module", "decides by", "note"}, rows)
}

func (p *page) machine(m Machine, k Conditions) {
	load := "unknown"
	if m.Load >= 0 {
		load = fmt.Sprintf("%.2f", m.Load)
	}
	p.table([]string{"what", "is"}, [][]string{
		{"processor", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)},
		{"memory", fmt.Sprintf("%.1f GiB", float64(m.MemoryBytes)/(1<<30))},
		{"system", m.System},
		{"Go", m.Go},
		{"server", m.Redis + ", " + k.RedisCommand},
		{"load average before the run", load},
		{"begun", k.Started.UTC().Format(time.RFC3339)},
		{"command", k.Command},
	})
}

// disturbed is the share of the machine that others may take before figures are not those of an idle
// one.
const disturbed = 0.05

// others says how much of the machine something else took during the run, and which calls failed.
func (p *page) others(c *Comparison) {
	var shares []float64
	failed := make(map[string]int64)
	for _, s := range c.Samples {
		if s.MachineBusy > 0 {
			shares = append(shares, max(0, s.MachineBusy-s.ServerBusy-s.ClientBusy)/float64(c.Machine.Cores))
		}
		failed[s.Contender] += s.Failures
	}
	if share := measure.Median(shares); !math.IsNaN(share) {
		text := fmt.Sprintf("Something else than the benchmark and its server took %.0f %% of the machine (the median over all cells over Redis).", share*100)
		if share > disturbed {
			text += " It was not idle: absolute figures are too low and latencies too high, and ratios stray."
		}
		p.paragraph("%s", text)
	}
	for _, e := range c.Redis {
		if n := failed[e.Name]; n > 0 {
			p.paragraph("%s of %s failed; they are counted nowhere else.", plural(int(n), "call"), e.Name)
		}
	}
}

// ofReference is a figure with its ratio to the plain EVALSHA beside it.
func ofReference(samples []Sample, cell Cell, reference string, figure func(Sample) float64, form func(float64) string) string {
	value := median(samples, cell, figure)
	base := cell
	base.Contender, base.Kind = reference, string(contender.Allow)
	ratio := measure.Ratio(value, median(samples, base, figure))
	if math.IsNaN(value) {
		return noFigure
	}
	if math.IsNaN(ratio) {
		return form(value)
	}
	return fmt.Sprintf("%s (%s)", form(value), times(ratio))
}

func (p *page) rates(c *Comparison) {
	p.paragraph("## Decisions a second over Redis")
	p.paragraph("Allowances; medians, in parentheses the ratio to the plain EVALSHA at the same number of callers.")
	p.byCallers(c, func(cell Cell) string { return ofReference(c.Samples, cell, contender.PlainName, rate, perSecond) })
	p.paragraph("![Decisions a second by callers](benchmarks/%s)", ChartRates)
}

func (p *page) latencies(c *Comparison) {
	p.paragraph("## Latency over Redis")
	p.paragraph("Allowances; medians over the rounds of p50 / p99 / p99.9 in µs.")
	p.byCallers(c, func(cell Cell) string { return percentiles(c.Samples, cell) })
	p.paragraph("![p99 latency by callers](benchmarks/%s)", ChartLatency)
}

// byCallers writes a table with a column for each number of callers.
func (p *page) byCallers(c *Comparison, cellText func(Cell) string) {
	head := []string{"contender"}
	for _, callers := range c.Conditions.Callers {
		head = append(head, plural(callers, "caller"))
	}
	var rows [][]string
	for _, e := range c.Redis {
		cells := []string{e.Name}
		for _, callers := range c.Conditions.Callers {
			cells = append(cells, cellText(allow(e.Name, callers)))
		}
		rows = append(rows, cells)
	}
	p.table(head, rows)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// costCallers is where the cost of an evaluation is shown, and where the targets are judged.
const costCallers = 64

func (p *page) costs(c *Comparison) {
	p.paragraph("## Cost of an evaluation over Redis")
	p.paragraph("Allocations and bytes are the whole process's, divided by its decisions. Server time of a call is Redis's own "+
		"(`CONFIG RESETSTAT`, then usec_per_call of EVALSHA and EVAL in `INFO commandstats`); server CPU is what the whole server process "+
		"used for each decision, reading and writing sockets among it. All but the second column at %d callers.", costCallers)
	var rows [][]string
	for _, e := range c.Redis {
		at := func(cell Cell, figure func(Sample) float64, format string) string {
			value := median(c.Samples, cell, figure)
			return orDash(value, fmt.Sprintf(format, value))
		}
		pair := func(callers int) string {
			return at(allow(e.Name, callers), allocs, "%.1f") + ", " + at(allow(e.Name, callers), size, "%.0f")
		}
		scriptTime := func(cell Cell) string {
			if value := median(c.Samples, cell, script); value == 0 {
				return noFigure
			}
			return at(cell, script, "%.2f")
		}
		rows = append(rows, []string{
			e.Name, pair(1), pair(costCallers), scriptTime(allow(e.Name, costCallers)), scriptTime(deny(e.Name, costCallers)),
			ofReference(c.Samples, allow(e.Name, costCallers), contender.PlainName, func(s Sample) float64 { return s.ServerMicros }, micros),
		})
	}
	p.table([]string{
		"contender", "allocations, bytes (1 caller)", "allocations, bytes", "server time of a call, allowed, µs", "denied, µs",
		"server CPU of an allowance",
	}, rows)
}

func (p *page) denials(c *Comparison) {
	p.paragraph("## Denials over Redis")
	p.paragraph("Every key is spent. Decisions a second, in parentheses the ratio to the plain EVALSHA, and p99 latency.")
	head := []string{"contender"}
	for _, callers := range c.Conditions.DenyCallers {
		head = append(head, plural(callers, "caller"), "p99")
	}
	var rows [][]string
	for _, e := range c.Redis {
		if e.Fixed {
			continue
		}
		cells := []string{e.Name}
		for _, callers := range c.Conditions.DenyCallers {
			cells = append(cells, ofReference(c.Samples, deny(e.Name, callers), contender.PlainName, rate, perSecond),
				latency(median(c.Samples, deny(e.Name, callers), p99)))
		}
		rows = append(rows, cells)
	}
	p.table(head, rows)
}

// inside shows what the server does for one decision.
func (p *page) inside(c *Comparison) {
	p.paragraph("## What the server does for an allowance")
	p.paragraph("Commands for each decision as the server counts them, with its time for one in µs. Those that a program runs are within the "+
		"program's own time. Last round at %d callers.", costCallers)
	var rows [][]string
	for _, e := range c.Redis {
		var last *Sample
		for i, s := range c.Samples {
			if s.Contender == e.Name && s.Kind == string(contender.Allow) && s.Callers == costCallers && (last == nil || s.Round >= last.Round) {
				last = &c.Samples[i]
			}
		}
		if last == nil {
			continue
		}
		names := make([]string, 0, len(last.ServerCalls))
		for name, n := range last.ServerCalls {
			if n.PerDecision >= 0.005 {
				names = append(names, name)
			}
		}
		slices.SortFunc(names, func(a, b string) int {
			x, y := last.ServerCalls[a], last.ServerCalls[b]
			if x.Micros*x.PerDecision != y.Micros*y.PerDecision {
				if x.Micros*x.PerDecision > y.Micros*y.PerDecision {
					return -1
				}
				return 1
			}
			return strings.Compare(a, b)
		})
		for i, name := range names {
			n := last.ServerCalls[name]
			names[i] = fmt.Sprintf("%s %.2f × %.2f", name, n.PerDecision, n.Micros)
		}
		rows = append(rows, []string{e.Name, strings.Join(names, ", ")})
	}
	p.table([]string{"contender", "commands × µs"}, rows)
}

func (p *page) inMemory(c *Comparison) {
	p.paragraph("## In memory")
	p.paragraph("Time that passes for each decision, allowances; in parentheses the ratio to reading the clock alone. One key is asked by one "+
		"caller; several keys by %s at once, so that the time of one call is that many times as long.", plural(c.Conditions.MemoryCallers, "caller"))
	head := []string{"contender"}
	for _, keys := range c.Conditions.MemoryKeys {
		head = append(head, plural(keys, "key"), "allocations, bytes")
	}
	var rows [][]string
	for _, e := range c.Memory {
		cells := []string{e.Name}
		for _, keys := range c.Conditions.MemoryKeys {
			callers := c.Conditions.MemoryCallers
			if keys == 1 {
				callers = 1
			}
			cell := allow(e.Name, callers)
			cell.Keys = keys
			a, b := median(c.InMemory, cell, allocs), median(c.InMemory, cell, size)
			cells = append(cells, ofReference(c.InMemory, cell, contender.ClockName, nanos, nanoseconds),
				orDash(a, fmt.Sprintf("%.2f, %.0f", a, b)))
		}
		rows = append(rows, cells)
	}
	p.table(head, rows)
	if c.Alone != nil {
		p.paragraph("The decision alone, without the port, by the package's own benchmark (`%s`): %s, %g allocations, %g bytes.",
			c.Alone.Command, nanoseconds(c.Alone.Nanos), c.Alone.Allocs, c.Alone.Bytes)
	}
	p.paragraph("![Time of a decision in memory](benchmarks/%s)", ChartMemory)
}

func (p *page) profiles(c *Comparison) {
	if len(c.Profiles) == 0 {
		return
	}
	p.paragraph("## Where the time goes")
	p.paragraph("CPU profiles of this process (runtime/pprof), each of one more cell after the last round. Flat is the share of the samples in the " +
		"function itself, cumulative with what it calls.")
	for _, profile := range c.Profiles {
		p.paragraph("%s:", profile.Cell)
		var rows [][]string
		for _, hot := range profile.Top {
			rows = append(rows, []string{"`" + hot.Function + "`", fmt.Sprintf("%.1f %%", hot.Flat*100), fmt.Sprintf("%.1f %%", hot.Cum*100)})
		}
		p.table([]string{"function", "flat", "cumulative"}, rows)
	}
}
