package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/redisproc"
	"github.com/edgelimit/edgelimit/test/benchmark/report"
)

// compareCallers are the numbers of callers over Redis. Denials are measured at one of them in the
// short form.
var compareCallers = []int{1, 16, 64, 256}

const shortDenyCallers = 64

// compareMemoryKeys are the numbers of keys in memory: one is asked by one caller, several by as many
// as there are cores.
var compareMemoryKeys = []int{1, 100_000}

// compare runs all contenders against each other and writes the page.
func compare(ctx context.Context, o *options, out, log io.Writer) (err error) {
	server, err := redisproc.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	c := &report.Comparison{
		Machine: describe(ctx, server.Version),
		Conditions: report.Conditions{
			Command: o.invocation(), RedisCommand: server.Command, Started: time.Now(), Rounds: o.rounds, WarmUp: o.warmUp, Duration: o.duration,
			Keys: o.keys, PoolSize: o.pool, Callers: compareCallers, DenyCallers: compareCallers,
			MemoryCallers: cores(), MemoryKeys: compareMemoryKeys,
		},
	}
	if o.short {
		c.Conditions.DenyCallers = []int{shortDenyCallers}
	}
	overRedis, inMemory := o.chosen(contender.OverRedis()), o.chosen(contender.InMemory())
	if len(overRedis)+len(inMemory) == 0 {
		return errors.New("-only leaves no contender")
	}
	known := versions()
	c.Redis, c.Memory = entries(overRedis, known), entries(inMemory, known)
	for _, absent := range contender.NotCompared() {
		c.Absent = append(c.Absent, report.Absence(absent))
	}
	for round := range o.rounds {
		fmt.Fprintf(log, "round %d of %d\n", round+1, o.rounds)
		if err := compareOverRedis(ctx, o, c, rotated(overRedis, round), server, round, log); err != nil {
			return err
		}
		if err := compareInMemory(ctx, o, c, rotated(inMemory, round), round, log); err != nil {
			return err
		}
	}
	if o.only == nil {
		if c.Alone, err = decisionAlone(ctx, o); err != nil {
			fmt.Fprintf(log, "the decision alone was not measured: %v\n", err)
		}
	}
	if o.profile {
		if c.Profiles, err = profiles(ctx, o, server); err != nil {
			return err
		}
	}
	if err := server.Clear(ctx); err != nil {
		return err
	}
	if err := save(o, o.compareFile(), c); err != nil {
		return err
	}
	summarise(out, c)
	if !o.page {
		return nil
	}
	return render(o, out)
}

// chosen are the contenders that -only leaves.
func (o *options) chosen(all []contender.Contender) []contender.Contender {
	if o.only == nil {
		return all
	}
	var left []contender.Contender
	for _, c := range all {
		if o.only.MatchString(c.Name) {
			left = append(left, c)
		}
	}
	return left
}

// rotated begins with another contender in each round, so that none always follows the same one.
func rotated(all []contender.Contender, round int) []contender.Contender {
	if len(all) == 0 {
		return all
	}
	first := round * (len(all)/3 + 1) % len(all)
	return append(append([]contender.Contender(nil), all[first:]...), all[:first]...)
}

func compareOverRedis(
	ctx context.Context, o *options, c *report.Comparison, all []contender.Contender, server *redisproc.Server, round int, log io.Writer,
) error {
	for _, kind := range []contender.Kind{contender.Allow, contender.Deny} {
		callers := c.Conditions.Callers
		if kind == contender.Deny {
			callers = c.Conditions.DenyCallers
		}
		for _, n := range callers {
			for _, one := range all {
				if one.Fixed && kind == contender.Deny {
					continue
				}
				sample, err := cell{one, contender.Setting{
					Address: server.Address, Kind: kind, Keys: o.keys, PoolSize: o.pool, Callers: n,
				}, round, server, nil}.measure(ctx, o)
				if err != nil {
					return err
				}
				fmt.Fprintf(log, "%-34s %-5s %4d callers %9.0f/s p99 %8.0f us, %.1f allocs, script %.2f us\n",
					one.Name, kind, n, sample.Rate(), float64(sample.P99)/1e3, sample.Allocs, sample.ScriptMicros)
				c.Samples = append(c.Samples, sample)
			}
		}
	}
	return nil
}

func compareInMemory(ctx context.Context, o *options, c *report.Comparison, all []contender.Contender, round int, log io.Writer) error {
	for _, keys := range c.Conditions.MemoryKeys {
		callers := c.Conditions.MemoryCallers
		if keys == 1 {
			callers = 1
		}
		for _, one := range all {
			sample, err := cell{one, contender.Setting{Kind: contender.Allow, Keys: keys, Callers: callers}, round, nil, nil}.measure(ctx, o)
			if err != nil {
				return err
			}
			fmt.Fprintf(log, "%-34s memory %7d keys %8.1f ns, %.2f allocs\n", one.Name, keys, sample.NanosPerDecision(), sample.Allocs)
			c.InMemory = append(c.InMemory, sample)
		}
	}
	return nil
}

// profiles takes those of the token bucket: over Redis at one caller and at many, and in memory.
func profiles(ctx context.Context, o *options, server *redisproc.Server) ([]report.Profile, error) {
	var all []report.Profile
	for _, c := range []cell{
		{contender.OwnRedis(ratelimit.AlgorithmTokenBucket), contender.Setting{
			Address: server.Address, Kind: contender.Allow, Keys: o.keys, PoolSize: o.pool, Callers: shortDenyCallers,
		}, 0, server, nil},
		{contender.OwnRedis(ratelimit.AlgorithmTokenBucket), contender.Setting{
			Address: server.Address, Kind: contender.Allow, Keys: o.keys, PoolSize: o.pool, Callers: 1,
		}, 0, server, nil},
		{contender.OwnMemory(ratelimit.AlgorithmTokenBucket), contender.Setting{Kind: contender.Allow, Keys: 1, Callers: 1}, 0, nil, nil},
	} {
		where := "over Redis"
		if c.server == nil {
			where = "in memory"
		}
		p, err := profiled(fmt.Sprintf("%s %s, callers: %d", c.contender.Name, where, c.setting.Callers), func() error {
			_, err := c.measure(ctx, o)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// summarise prints the targets.
func summarise(out io.Writer, c *report.Comparison) {
	printJudgements(out, report.Judgements(c))
}

// printJudgements prints targets with what was measured.
func printJudgements(out io.Writer, all []report.Judgement) {
	for _, j := range all {
		fmt.Fprintf(out, "%-13s %-82s %v %g: %.2f\n", j.Verdict, j.Target, j.Relation, j.Bound, j.Figure)
	}
	missed, without := report.Missed(all)
	fmt.Fprintf(out, "benchmark: %d targets, %d missed, %d not measured\n", len(all), missed, without)
}
