package report

import (
	"fmt"
	"math"
	"time"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/measure"
)

// DoorJudgements holds a run of doors to the targets of the project. Where another service was
// measured in several configurations, each target is of the one that does best at it.
func DoorJudgements(d *Doors) []Judgement {
	own := ""
	for _, e := range d.Entries {
		if e.Role == string(contender.Own) {
			own = e.Name
		}
	}
	at := func(name string, figure func(Sample) float64) []float64 {
		return pick(d.Samples, allow(name, costCallers), figure)
	}
	best := func(figure func(Sample) float64, better func(a, b float64) bool) string {
		name, value := "none measured", math.NaN()
		for _, e := range d.Entries {
			m := measure.Median(at(e.Name, figure))
			if e.Role == string(contender.Peer) && !math.IsNaN(m) && (math.IsNaN(value) || better(m, value)) {
				name, value = e.Name, m
			}
		}
		return name
	}
	fastest := best(rate, func(a, b float64) bool { return a > b })
	lowest := best(p99, func(a, b float64) bool { return a < b })
	return []Judgement{
		ofRatio("64 callers, decisions a second, by the fastest of the others ("+fastest+")", AtLeast, 1.5, at(own, rate), at(fastest, rate), perSecond),
		ofRatio("64 callers, p99 latency, by the lowest of the others ("+lowest+")", Below, 1, at(own, p99), at(lowest, p99), latency),
	}
}

func (p *page) doors(d *Doors) {
	p.paragraph("## Doors for Envoy")
	p.paragraph("Services that speak `envoy.service.ratelimit.v3.RateLimitService`, asked by the same client over gRPC, with the same rules and the same "+
		"Redis. One descriptor a request; %s, %s for each cell, %s keys, %d connections of each service to Redis. Client, service and "+
		"Redis share the cores.", plural(d.Conditions.Rounds, "round"), seconds(d.Conditions.Duration), grouped(d.Conditions.Keys), d.Conditions.PoolSize)
	p.judged(DoorJudgements(d))
	p.machine(d.Machine, d.Conditions)
	p.entries("service", d.Entries)
	head := []string{"service"}
	for _, callers := range d.Conditions.Callers {
		head = append(head, plural(callers, "caller"))
	}
	for _, callers := range d.Conditions.DenyCallers {
		head = append(head, "denials, "+plural(callers, "caller"))
	}
	cells := func(text func(Cell) string) [][]string {
		rows := make([][]string, 0, len(d.Entries))
		for _, e := range d.Entries {
			r := []string{e.Name}
			for _, callers := range d.Conditions.Callers {
				r = append(r, text(allow(e.Name, callers)))
			}
			for _, callers := range d.Conditions.DenyCallers {
				r = append(r, text(deny(e.Name, callers)))
			}
			rows = append(rows, r)
		}
		return rows
	}
	p.paragraph("Decisions a second:")
	p.table(head, cells(func(c Cell) string { return perSecond(median(d.Samples, c, rate)) }))
	p.paragraph("p50 / p99 / p99.9 in µs:")
	p.table(head, cells(func(c Cell) string { return percentiles(d.Samples, c) }))
	p.paragraph("CPU time of the service / of Redis for a decision, in µs:")
	p.table(head, cells(func(c Cell) string {
		service := median(d.Samples, c, func(s Sample) float64 { return s.DoorMicros })
		server := median(d.Samples, c, func(s Sample) float64 { return s.ServerMicros })
		return orDash(service, fmt.Sprintf("%.1f", service)) + " / " + orDash(server, fmt.Sprintf("%.1f", server))
	}))
}

// percentiles are the medians of p50, p99 and p99.9 in µs.
func percentiles(samples []Sample, c Cell) string {
	us := func(figure func(Sample) float64) string {
		value := median(samples, c, figure)
		return orDash(value, fmt.Sprintf("%.0f", value/float64(time.Microsecond)))
	}
	return us(func(s Sample) float64 { return float64(s.P50) }) + " / " + us(p99) + " / " + us(func(s Sample) float64 { return float64(s.P999) })
}
