package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/measure"
	"github.com/edgelimit/edgelimit/test/benchmark/redisproc"
	"github.com/edgelimit/edgelimit/test/benchmark/report"
)

// tolerated is the share of calls that may fail, or come to the other kind of decision, before a cell
// is not what it says.
const tolerated = 0.01

// visitors ask for every key once before a cell.
const visitors = 16

// cell is one cell to be run. server is nil in memory.
type cell struct {
	contender contender.Contender
	setting   contender.Setting
	round     int
	server    *redisproc.Server
	// used gives the CPU time in µs of a process between client and Redis. Optional.
	used func() float64
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %d callers, %d keys", c.contender.Name, c.setting.Kind, c.setting.Callers, c.setting.Keys)
}

// measure opens the contender, asks for every key once, and drives it.
func (c cell) measure(ctx context.Context, o *options) (report.Sample, error) {
	decider, err := c.contender.Open(ctx, c.setting)
	if err != nil {
		return report.Sample{}, fmt.Errorf("%v: %w", c, err)
	}
	sample, err := c.drive(ctx, o, decider)
	return sample, errors.Join(err, decider.Close())
}

// drive asks for every key once and then measures an opened contender.
func (c cell) drive(ctx context.Context, o *options, decider contender.Decider) (report.Sample, error) {
	if err := measure.Visit(ctx, visitors, c.setting.Keys, decider.Decide); err != nil {
		return report.Sample{}, fmt.Errorf("%v: %w", c, err)
	}
	return c.again(ctx, o, decider)
}

// again measures an opened contender whose keys were asked for before.
func (c cell) again(ctx context.Context, o *options, decider contender.Decider) (report.Sample, error) {
	load := measure.Load{
		Callers: c.setting.Callers, Keys: c.setting.Keys, WarmUp: o.warmUp, Duration: o.duration, Latency: c.server != nil,
	}
	var before redisproc.Counters
	var cpuBefore time.Duration
	var machineBefore, doorBefore float64
	tally, err := measure.Drive(ctx, load, decider.Decide, func() (err error) {
		if c.server != nil {
			if before, err = c.server.Counters(ctx); err != nil {
				return err
			}
			err = c.server.Reset(ctx)
		}
		if c.used != nil {
			doorBefore = c.used()
		}
		cpuBefore, machineBefore = cpuTime(), machineSeconds(ctx)
		return err
	})
	if err != nil {
		return report.Sample{}, fmt.Errorf("%v: %w", c, err)
	}
	cpuUsed, machineUsed := cpuTime()-cpuBefore, machineSeconds(ctx)-machineBefore
	sample, err := c.sample(tally)
	if err != nil {
		return report.Sample{}, err
	}
	sample.ClientBusy, sample.MachineBusy = cpuUsed.Seconds()/tally.Elapsed.Seconds(), machineUsed/tally.Elapsed.Seconds()
	if c.used != nil {
		sample.DoorMicros = (c.used() - doorBefore) / float64(sample.Decisions)
	}
	if c.server != nil {
		after, err := c.server.Counters(ctx)
		if err != nil {
			return report.Sample{}, fmt.Errorf("%v: %w", c, err)
		}
		addServer(&sample, before, after)
	}
	return sample, nil
}

// sample turns a tally into what is kept of it, or says why the cell is not what it should be.
func (c cell) sample(tally *measure.Tally) (report.Sample, error) {
	n := float64(tally.Decisions())
	s := report.Sample{
		Contender: c.contender.Name, Kind: string(c.setting.Kind), Callers: c.setting.Callers, Keys: c.setting.Keys,
		Policies: c.setting.Policies, Round: c.round,
		Decisions: tally.Decisions(), Failures: tally.Failed, Elapsed: tally.Elapsed,
		Allocs: float64(tally.Mallocs) / n, Bytes: float64(tally.Bytes) / n,
	}
	if tally.Latency != nil {
		s.P50 = time.Duration(tally.Latency.ValueAtQuantile(50))
		s.P99 = time.Duration(tally.Latency.ValueAtQuantile(99))
		s.P999 = time.Duration(tally.Latency.ValueAtQuantile(99.9))
	}
	if !c.contender.Fixed && !c.contender.Unchecked {
		s.Unexpected = tally.Denied
		if c.setting.Kind == contender.Deny {
			s.Unexpected = tally.Allowed
		}
	}
	if share := float64(s.Unexpected) / n; share > tolerated {
		return s, fmt.Errorf("%v: %.1f %% of the decisions were of the other kind", c, share*100)
	}
	if share := float64(s.Failures) / (n + float64(s.Failures)); share > tolerated || (s.Failures > 0 && c.contender.Role == contender.Own) {
		return s, fmt.Errorf("%v: %d calls failed, the first with: %w", c, s.Failures, tally.FirstError)
	}
	return s, nil
}

// addServer adds what the server counted while a cell ran.
func addServer(s *report.Sample, before, after redisproc.Counters) {
	n := float64(s.Decisions)
	if scripts := after.Scripts(); scripts.Calls > 0 {
		s.ScriptMicros = float64(scripts.Micros) / float64(scripts.Calls)
	}
	s.ServerMicros = (after.CPUMicros - before.CPUMicros) / n
	s.ServerBusy = (after.CPUMicros - before.CPUMicros) / float64(s.Elapsed.Microseconds())
	s.ServerCalls = make(map[string]report.Nested)
	for name, call := range after.Commands {
		if call.Calls > 0 {
			s.ServerCalls[name] = report.Nested{PerDecision: float64(call.Calls) / n, Micros: float64(call.Micros) / float64(call.Calls)}
		}
	}
}
