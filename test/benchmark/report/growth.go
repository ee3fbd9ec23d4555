package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/edgelimit/edgelimit/test/benchmark/measure"
)

// Bounds from which a part of the system is said to be what bounds it, by elapsed time.
const (
	serverIsFull   = 0.85 // of the one core that Redis runs commands on
	machineIsFull  = 0.85 // of all cores
	othersDisturb  = 0.1  // of all cores
	clustersShown1 = 3
	clustersShown2 = 6
	clustersShown3 = 12
)

// point is the median of one place on an axis.
type point struct {
	x                      int
	rate, p50, p99, p999   float64
	server, client, script float64
	machine                float64
	serverMicros, perKey   float64
	nanos                  float64
}

// points are the medians over all rounds, in order of x.
func points(samples []Sample, x func(Sample) int) []point {
	byX := make(map[int][]Sample)
	for _, s := range samples {
		byX[x(s)] = append(byX[x(s)], s)
	}
	var all []point
	for at, group := range byX {
		m := func(figure func(Sample) float64) float64 {
			values := make([]float64, len(group))
			for i, s := range group {
				values[i] = figure(s)
			}
			return measure.Median(values)
		}
		all = append(all, point{
			x: at, rate: m(rate), p99: m(p99), script: m(script), nanos: m(nanos),
			p50:          m(func(s Sample) float64 { return float64(s.P50) }),
			p999:         m(func(s Sample) float64 { return float64(s.P999) }),
			server:       m(func(s Sample) float64 { return s.ServerBusy }),
			client:       m(func(s Sample) float64 { return s.ClientBusy }),
			machine:      m(func(s Sample) float64 { return s.MachineBusy }),
			serverMicros: m(func(s Sample) float64 { return s.ServerMicros }),
			perKey:       m(func(s Sample) float64 { return s.BytesPerKey }),
		})
	}
	slices.SortFunc(all, func(a, b point) int { return a.x - b.x })
	return all
}

func byCallers(s Sample) int  { return s.Callers }
func byKeys(s Sample) int     { return s.Keys }
func byPolicies(s Sample) int { return s.Policies }

// boundOf says what bounded a place, from what was busy meanwhile.
func boundOf(p point, cores int) string {
	own, all := (p.server+p.client)/float64(cores), p.machine/float64(cores)
	switch {
	case p.server >= serverIsFull:
		return "the server's one thread"
	case own >= machineIsFull:
		return "the cores, which server and client share"
	case all >= machineIsFull && all-own > othersDisturb:
		return "the cores, of which other programs took a part"
	case all >= machineIsFull:
		return "the cores, which server, client and system share"
	}
	return "the round trip, in which each waits for the other"
}

func (p *page) grown(s *Scale) {
	p.paragraph("## Growth")
	p.paragraph("edgelimit alone, %s, allowances, through the port, along one axis at a time (`make bench-scale`). %s, %s for each cell; "+
		"over Redis %d connections.", s.Algorithm, plural(s.Conditions.Rounds, "round"), seconds(s.Conditions.Duration), s.Conditions.PoolSize)
	p.machine(s.Machine, s.Conditions)
	callers := points(s.Callers, byCallers)
	if len(callers) > 0 {
		p.paragraph("### Callers")
		p.axis("callers", callers, s.Machine.Cores, func(at point) string { return boundOf(at, s.Machine.Cores) }, "bound by")
		p.paragraph("![Decisions a second and p99 by callers](benchmarks/%s)", ChartScaleCallers)
		p.carried(s, callers)
	}
	if keys := points(s.Keys, byKeys); len(keys) > 0 {
		p.paragraph("### Keys")
		p.paragraph("Every key was made before it was measured, by one evaluation through the port. Memory of a key is the growth of the server's " +
			"`used_memory` by it.")
		p.axis("keys", keys, s.Machine.Cores, func(at point) string { return orDash(at.perKey, fmt.Sprintf("%.0f B", at.perKey)) }, "memory of a key")
		p.flat("keys", keys)
		p.paragraph("![Decisions a second by keys](benchmarks/%s)", ChartScaleKeys)
	}
	if policies := points(s.Policies, byPolicies); len(policies) > 0 {
		p.paragraph("### Policies")
		p.axis("policies", policies, s.Machine.Cores, func(at point) string { return orDash(at.script, fmt.Sprintf("%.2f µs", at.script)) }, "server time of a call")
		p.flat("policies", policies)
	}
	if memory := points(s.Memory, byKeys); len(memory) > 0 {
		p.paragraph("### Keys in memory")
		p.paragraph("All cores ask. Memory of a live key is the growth of the heap after a collection.")
		var rows [][]string
		for _, at := range memory {
			rows = append(rows, []string{
				grouped(at.x), perSecond(at.rate), nanoseconds(at.nanos), orDash(at.perKey, fmt.Sprintf("%.0f B", at.perKey)),
			})
		}
		p.table([]string{"keys", "decisions a second", "time for each decision", "memory of a live key"}, rows)
		p.flat("keys", memory)
		p.paragraph("![Time of a decision in memory by keys](benchmarks/%s)", ChartScaleMemory)
	}
}

func (p *page) axis(name string, all []point, cores int, last func(point) string, lastName string) {
	rows := make([][]string, 0, len(all))
	for _, at := range all {
		us := func(v float64) string { return orDash(v, strconv.FormatFloat(v/float64(time.Microsecond), 'f', 0, 64)) }
		rows = append(rows, []string{
			grouped(at.x), perSecond(at.rate), us(at.p50) + " / " + us(at.p99) + " / " + us(at.p999),
			fmt.Sprintf("%.0f %%", at.server*100), fmt.Sprintf("%.0f %% of %d", at.client*100, cores*100), last(at),
		})
	}
	p.table([]string{name, "decisions a second", "p50 / p99 / p99.9, µs", "server busy", "client busy", lastName}, rows)
}

// carried says what one Redis carries, and computes what several would.
func (p *page) carried(s *Scale, callers []point) {
	first, last := callers[0], callers[len(callers)-1]
	best := slices.MaxFunc(callers, func(a, b point) int {
		switch {
		case a.rate < b.rate:
			return -1
		case a.rate > b.rate:
			return 1
		}
		return 0
	})
	p.paragraph("At %s the bound is %s: %s, with the server busy for %.0f %% of the time. At %s it is %s: %s, with the server busy for %.0f %%.",
		plural(first.x, "caller"), boundOf(first, s.Machine.Cores), perSecond(first.rate), first.server*100,
		plural(last.x, "caller"), boundOf(last, s.Machine.Cores), perSecond(last.rate), last.server*100)
	p.paragraph("**Measured:** one Redis carried %s at most, at %s, with its clients on the same %d cores; it used %s of CPU for a decision.",
		perSecond(best.rate), plural(best.x, "caller"), s.Machine.Cores, micros(best.serverMicros))
	if best.serverMicros > 0 {
		p.paragraph("**Computed:** with a core of its own that nothing else takes, that CPU time alone would allow %s.", perSecond(1e6/best.serverMicros))
	}
	var rows [][]string
	for _, n := range []int{1, clustersShown1, clustersShown2, clustersShown3} {
		how := "computed"
		if n == 1 {
			how = "measured"
		}
		rows = append(rows, []string{strconv.Itoa(n), perSecond(float64(n) * best.rate), how})
	}
	p.table([]string{"masters", "decisions a second", "how it is known"}, rows)
	p.paragraph("The rows for several masters are the measured one multiplied: an evaluation touches one key, a key lies in one slot, and masters " +
		"share nothing. That holds for keys that are spread evenly; one hot key is bound by one master. No cluster was measured, and this " +
		"revision connects to one server.")
}

// flat says how much the figure changes from one end to the other.
func (p *page) flat(axis string, all []point) {
	first, last := all[0], all[len(all)-1]
	if ratio := measure.Ratio(last.rate, first.rate); first.x != last.x && !math.IsNaN(ratio) {
		p.paragraph("From %s to %s %s the rate becomes %s times what it was.", grouped(first.x), grouped(last.x), axis, times(ratio))
	}
}
