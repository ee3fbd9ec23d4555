package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/edgelimit/edgelimit/test/benchmark/report"
)

// hotFunctions are shown of a profile.
const hotFunctions = 15

// profiled takes a CPU profile of what f does.
func profiled(name string, f func() error) (report.Profile, error) {
	var raw bytes.Buffer
	if err := pprof.StartCPUProfile(&raw); err != nil {
		return report.Profile{}, err
	}
	err := f()
	pprof.StopCPUProfile()
	if err != nil {
		return report.Profile{}, err
	}
	parsed, err := profile.Parse(&raw)
	if err != nil {
		return report.Profile{}, err
	}
	return report.Profile{Cell: name, Top: hottest(parsed, hotFunctions)}, nil
}

// hottest gives the functions in which most of the CPU time was spent.
func hottest(p *profile.Profile, most int) []report.Hot {
	flat, cumulative := make(map[string]int64), make(map[string]int64)
	var total int64
	for _, sample := range p.Sample {
		value := sample.Value[len(sample.Value)-1] // The last is the time; the first counts samples.
		total += value
		seen := make(map[string]bool)
		for i, location := range sample.Location {
			for j, line := range location.Line {
				if line.Function == nil {
					continue
				}
				name := line.Function.Name
				if i == 0 && j == 0 {
					flat[name] += value
				}
				if !seen[name] {
					seen[name] = true
					cumulative[name] += value
				}
			}
		}
	}
	if total == 0 {
		return nil
	}
	top := make([]report.Hot, 0, len(flat))
	for name, value := range flat {
		top = append(top, report.Hot{Function: name, Flat: float64(value) / float64(total), Cum: float64(cumulative[name]) / float64(total)})
	}
	slices.SortFunc(top, func(a, b report.Hot) int {
		return cmp.Or(cmp.Compare(b.Flat, a.Flat), cmp.Compare(a.Function, b.Function))
	})
	return top[:min(most, len(top))]
}

// aloneBenchmark is the benchmark of the decision in memory without the port. The decision is not
// exported, so the package measures it itself.
const aloneBenchmark = "BenchmarkDecisionAlone"

// decisionAlone runs it.
func decisionAlone(ctx context.Context, o *options) (*report.Alone, error) {
	args := []string{"test", "-run", "^$", "-bench", "^" + aloneBenchmark + "$", "-benchmem", "-benchtime", "1s", "./adapter/outbound/memory"}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = o.root
	output, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	alone, err := parseAlone(string(output))
	if err != nil {
		return nil, err
	}
	alone.Command = "go " + strings.Join(args, " ")
	return alone, nil
}

// parseAlone reads the line of the benchmark.
func parseAlone(output string) (*report.Alone, error) {
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.HasPrefix(words[0], aloneBenchmark) {
			continue
		}
		units := make(map[string]float64)
		for i := 2; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			units[words[i+1]] = value
		}
		for _, unit := range []string{"ns/op", "B/op", "allocs/op"} {
			if _, ok := units[unit]; !ok {
				return nil, fmt.Errorf("%q has no %s", line, unit)
			}
		}
		return &report.Alone{Nanos: units["ns/op"], Bytes: units["B/op"], Allocs: units["allocs/op"]}, nil
	}
	return nil, errors.New("there is no line of " + aloneBenchmark)
}
