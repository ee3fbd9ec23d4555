package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/measure"
)

// Verdict says whether a target was reached.
type Verdict uint8

// The verdicts. The zero value is invalid.
const (
	VerdictInvalid Verdict = iota
	VerdictMet
	VerdictMissed
	// VerdictNotMeasured: the run has no figure for it.
	VerdictNotMeasured
)

// String gives the verdict as tables show it.
func (v Verdict) String() string {
	switch v {
	case VerdictMet:
		return "met"
	case VerdictMissed:
		return "**missed**"
	case VerdictNotMeasured:
		return "not measured"
	case VerdictInvalid:
	}
	return "invalid"
}

// Relation says on which side of its bound a figure must lie.
type Relation uint8

// The relations. The zero value is invalid.
const (
	RelationInvalid Relation = iota
	AtLeast
	AtMost
	Below
)

// String gives the relation as tables show it.
func (r Relation) String() string {
	switch r {
	case AtLeast:
		return "at least"
	case AtMost:
		return "at most"
	case Below:
		return "below"
	case RelationInvalid:
	}
	return "invalid"
}

// Judge compares a figure with its bound.
func Judge(figure float64, relation Relation, bound float64) Verdict {
	if math.IsNaN(figure) || math.IsInf(figure, 0) || math.IsNaN(bound) {
		return VerdictNotMeasured
	}
	met := false
	switch relation {
	case AtLeast:
		met = figure >= bound
	case AtMost:
		met = figure <= bound
	case Below:
		met = figure < bound
	case RelationInvalid:
		return VerdictInvalid
	}
	if met {
		return VerdictMet
	}
	return VerdictMissed
}

// Judgement is one target with what was measured.
type Judgement struct {
	Target   string
	Relation Relation
	Bound    float64
	Figure   float64 // a ratio of medians, or a median
	Least    float64 // of the single rounds
	Greatest float64
	From     string // the medians that the figure was computed of
	Verdict  Verdict
}

var (
	tokenBucket = contender.OwnName(ratelimit.AlgorithmTokenBucket)
	fixedWindow = contender.OwnName(ratelimit.AlgorithmFixedWindow)
)

// The figures that targets are of.
func rate(s Sample) float64   { return s.Rate() }
func p99(s Sample) float64    { return float64(s.P99) }
func script(s Sample) float64 { return s.ScriptMicros }
func allocs(s Sample) float64 { return s.Allocs }
func size(s Sample) float64   { return s.Bytes }
func nanos(s Sample) float64  { return s.NanosPerDecision() }

func allow(name string, callers int) Cell {
	return Cell{Contender: name, Kind: string(contender.Allow), Callers: callers}
}

func deny(name string, callers int) Cell {
	return Cell{Contender: name, Kind: string(contender.Deny), Callers: callers}
}

// Judgements holds a comparison to every target of the project.
func Judgements(c *Comparison) []Judgement {
	var all []Judgement
	add := func(target string, relation Relation, bound float64, a, b []float64, form func(float64) string) {
		all = append(all, ofRatio(target, relation, bound, a, b, form))
	}
	at := func(cell Cell, figure func(Sample) float64) []float64 { return pick(c.Samples, cell, figure) }
	own := func(target string, relation Relation, bound float64, values []float64) {
		j := Judgement{Target: target, Relation: relation, Bound: bound, Figure: measure.Median(values), From: "the median itself"}
		j.Least, j.Greatest = measure.Spread(values)
		j.Verdict = Judge(j.Figure, relation, bound)
		all = append(all, j)
	}

	add("token bucket by redis_rate, 64 callers, decisions a second", AtLeast, 2,
		at(allow(tokenBucket, 64), rate), at(allow(contender.RedisRateName, 64), rate), perSecond)
	add("token bucket by plain EVALSHA, 64 callers, decisions a second", AtLeast, 1.4,
		at(allow(tokenBucket, 64), rate), at(allow(contender.PlainName, 64), rate), perSecond)
	add("token bucket by redis_rate, 256 callers, decisions a second", AtLeast, 2.5,
		at(allow(tokenBucket, 256), rate), at(allow(contender.RedisRateName, 256), rate), perSecond)
	add("token bucket by redis_rate, 64 callers, p99 latency", AtMost, 0.5,
		at(allow(tokenBucket, 64), p99), at(allow(contender.RedisRateName, 64), p99), latency)
	add("token bucket by plain EVALSHA, 1 caller, decisions a second", AtLeast, 0.95,
		at(allow(tokenBucket, 1), rate), at(allow(contender.PlainName, 1), rate), perSecond)
	add("fixed window by EVALSHA through AutoPipeline, 256 callers, decisions a second", AtLeast, 0.75,
		at(allow(fixedWindow, 256), rate), at(allow(contender.AutoPipelineName, 256), rate), perSecond)
	add("token bucket by plain EVALSHA, server time of a call", AtMost, 3,
		at(allow(tokenBucket, 64), script), at(allow(contender.PlainName, 64), script), micros)
	add("fixed window by plain EVALSHA, server time of a call", AtMost, 2.6,
		at(allow(fixedWindow, 64), script), at(allow(contender.PlainName, 64), script), micros)
	for _, name := range []string{tokenBucket, fixedWindow} {
		add(name+", denial by allowance, server time of a call", Below, 1,
			at(deny(name, 64), script), at(allow(name, 64), script), micros)
	}
	own("token bucket, 64 callers, allocations of an evaluation", AtMost, 14, at(allow(tokenBucket, 64), allocs))
	own("token bucket, 64 callers, bytes of an evaluation", AtMost, 700, at(allow(tokenBucket, 64), size))

	one := func(name string) []float64 {
		return pick(c.InMemory, Cell{Contender: name, Kind: string(contender.Allow), Callers: 1, Keys: 1}, nanos)
	}
	add("in memory, one key, token bucket through the port by the clock alone", AtMost, 1.6, one(tokenBucket), one(contender.ClockName), nanoseconds)
	const manyKeys = 100_000
	many := func(name string) []float64 {
		return pick(c.InMemory, Cell{
			Contender: name, Kind: string(contender.Allow), Callers: c.Conditions.MemoryCallers, Keys: manyKeys,
		}, nanos)
	}
	fastest, fastestName := fastestPeer(c, many)
	add("in memory, 100,000 keys on all cores, token bucket by the fastest peer ("+fastestName+")", AtMost, 1, many(tokenBucket), fastest, nanoseconds)
	var alone []float64
	if c.Alone != nil {
		alone = []float64{c.Alone.Allocs}
	}
	own("in memory, allocations in the decision", AtMost, 0, alone)
	own("in memory, allocations through the port", AtMost, 1, pick(c.InMemory,
		Cell{Contender: tokenBucket, Kind: string(contender.Allow), Callers: 1, Keys: 1}, func(s Sample) float64 {
			// What the process allocates beside the decisions (timers, the run itself) is spread over
			// millions of them; a decision that allocates does so at least once in a thousand.
			return math.Round(s.Allocs*1000) / 1000
		}))
	return all
}

// ofRatio judges a ratio of medians. Its spread is that of the ratios within each round.
func ofRatio(target string, relation Relation, bound float64, a, b []float64, form func(float64) string) Judgement {
	above, below := measure.Median(a), measure.Median(b)
	j := Judgement{
		Target: target, Relation: relation, Bound: bound, Figure: measure.Ratio(above, below),
		Least: math.NaN(), Greatest: math.NaN(), From: form(above) + " by " + form(below),
	}
	if len(a) == len(b) {
		ratios := make([]float64, len(a))
		for i := range a {
			ratios[i] = measure.Ratio(a[i], b[i])
		}
		j.Least, j.Greatest = measure.Spread(ratios)
	}
	j.Verdict = Judge(j.Figure, relation, bound)
	return j
}

// fastestPeer is the peer of the least median, with its figures; none where no peer was measured.
func fastestPeer(c *Comparison, figures func(name string) []float64) ([]float64, string) {
	name, least := "none measured", math.Inf(1)
	for _, entry := range c.Memory {
		if m := measure.Median(figures(entry.Name)); entry.Role == string(contender.Peer) && m < least {
			name, least = entry.Name, m
		}
	}
	return figures(name), name
}

// Missed counts the judgements that were not met, and those without a figure.
func Missed(all []Judgement) (missed, notMeasured int) {
	for _, j := range all {
		switch j.Verdict {
		case VerdictMissed, VerdictInvalid:
			missed++
		case VerdictNotMeasured:
			notMeasured++
		case VerdictMet:
		}
	}
	return missed, notMeasured
}

// Figures as tables show them; a dash where there is none.

const noFigure = "–"

func orDash(value float64, text string) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return noFigure
	}
	return text
}

func perSecond(v float64) string {
	if v >= 1e6 {
		return orDash(v, fmt.Sprintf("%.2fM/s", v/1e6))
	}
	return orDash(v, fmt.Sprintf("%.1fk/s", v/1e3))
}

func micros(v float64) string      { return orDash(v, fmt.Sprintf("%.2f µs", v)) }
func nanoseconds(v float64) string { return orDash(v, fmt.Sprintf("%.1f ns", v)) }

// latency shows nanoseconds as microseconds.
func latency(v float64) string {
	return orDash(v, fmt.Sprintf("%.0f µs", v/float64(time.Microsecond)))
}

func times(v float64) string { return orDash(v, fmt.Sprintf("%.2f", v)) }

// seconds shows a duration without its trailing zeros.
func seconds(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

// grouped writes an integer with commas.
func grouped(n int) string {
	digits := []byte(fmt.Sprint(n))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = slices.Insert(digits, i, ',')
	}
	return string(digits)
}
