package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	processes "github.com/shirou/gopsutil/v4/process"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/doors"
	"github.com/edgelimit/edgelimit/test/benchmark/redisproc"
	"github.com/edgelimit/edgelimit/test/benchmark/report"
)

// compareDoors runs the doors for Envoy against each other and writes the page.
func compareDoors(ctx context.Context, o *options, out, log io.Writer) (err error) {
	if o.own == "" || o.peer == "" {
		return errors.New("-own and -peer name the two programs; test/scripts/benchmark.sh doors builds both")
	}
	server, err := redisproc.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	dir, err := os.MkdirTemp("", "edgelimit-doors-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &report.Doors{
		Machine: describe(ctx, server.Version),
		Conditions: report.Conditions{
			Command: o.invocation(), RedisCommand: server.Command, Started: time.Now(), Rounds: o.rounds, WarmUp: o.warmUp, Duration: o.duration,
			Keys: o.keys, PoolSize: o.pool, Callers: compareCallers, DenyCallers: []int{shortDenyCallers},
		},
	}
	all, closeAll, err := doors.Start(ctx, doors.Config{Own: o.own, Peer: o.peer, Redis: server.Address, Dir: dir, Pool: o.pool})
	if err != nil {
		return err
	}
	defer closeAll()
	contenders := make([]contender.Contender, len(all))
	byName := make(map[string]*doors.Door)
	for i, door := range all {
		contenders[i] = door.Contender()
		byName[door.Name] = door
	}
	d.Entries = entries(contenders, map[string]string{contenders[0].Module: "(this tree)"})
	for i, door := range all {
		if door.Role == contender.Peer {
			d.Entries[i].Version = builtVersion(ctx, o.peer, door.Module)
		}
	}
	for round := range o.rounds {
		fmt.Fprintf(log, "round %d of %d\n", round+1, o.rounds)
		for _, kind := range []contender.Kind{contender.Allow, contender.Deny} {
			callers := d.Conditions.Callers
			if kind == contender.Deny {
				callers = d.Conditions.DenyCallers
			}
			for _, n := range callers {
				for _, one := range rotated(contenders, round) {
					c := cell{one, contender.Setting{Kind: kind, Keys: o.keys, Callers: n}, round, server, nil}
					sample, err := measureDoor(ctx, o, c, byName[one.Name])
					if err != nil {
						return err
					}
					fmt.Fprintf(log, "%-52s %-5s %4d callers %9.0f/s p99 %8.0f us, %.1f us of the door\n",
						one.Name, kind, n, sample.Rate(), float64(sample.P99)/1e3, sample.DoorMicros)
					d.Samples = append(d.Samples, sample)
				}
			}
		}
	}
	if err := save(o, o.doorsFile(), d); err != nil {
		return err
	}
	printJudgements(out, report.DoorJudgements(d))
	if !o.page {
		return nil
	}
	return render(o, out)
}

// measureDoor measures a cell, and the CPU time that the door used for it.
func measureDoor(ctx context.Context, o *options, c cell, door *doors.Door) (report.Sample, error) {
	decider, err := c.contender.Open(ctx, c.setting)
	if err != nil {
		return report.Sample{}, fmt.Errorf("%v: %w", c, err)
	}
	c.used = func() float64 { return processMicros(ctx, door.PID()) }
	sample, err := c.drive(ctx, o, decider)
	return sample, errors.Join(err, decider.Close())
}

// processMicros is the CPU time of a process, 0 where the system does not tell.
func processMicros(ctx context.Context, pid int) float64 {
	p, err := processes.NewProcessWithContext(ctx, int32(pid)) //nolint:gosec // G115: process IDs are below 2^22.
	if err != nil {
		return 0
	}
	used, err := p.TimesWithContext(ctx)
	if err != nil {
		return 0
	}
	return (used.User + used.System) * 1e6
}

// builtVersion is the version of a module that a program was built of, "" where it is not to be read.
func builtVersion(ctx context.Context, program, module string) string {
	text, err := exec.CommandContext(ctx, "go", "version", "-m", program).Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) >= 3 && words[1] == module && (words[0] == "dep" || words[0] == "mod") {
			return words[2]
		}
	}
	return ""
}
