package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/measure"
	"github.com/edgelimit/edgelimit/test/benchmark/redisproc"
	"github.com/edgelimit/edgelimit/test/benchmark/report"
)

// The axes of a scale run.
const (
	mostCallers      = 1024
	mostPolicies     = 1000
	fewestKeys       = 1000
	scaleCallers     = 64 // where callers are not the axis
	populateCallers  = 256
	scalePeriod      = 24 * time.Hour // so that no key of a long run expires
	redisBytesAKey   = 400            // more than one takes, to judge beforehand whether there is room
	memoryBytesAKey  = 600            // likewise in this process
	subjectBytes     = 40
	largestShare     = 0.6 // of the free memory that a run may take
	uncountedPart    = 10  // one in so many keys is made before memory is counted
	settleCollection = 2   // collections until the heap holds what lives
)

// scale runs edgelimit along each axis and writes the page.
func scale(ctx context.Context, o *options, out, log io.Writer) (err error) {
	server, err := redisproc.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	s := &report.Scale{
		Machine: describe(ctx, server.Version), Algorithm: "token bucket (keys over Redis: fixed window)",
		Conditions: report.Conditions{
			Command: o.invocation(), RedisCommand: server.Command, Started: time.Now(), Rounds: o.rounds, WarmUp: o.warmUp, Duration: o.duration,
			Keys: o.keys, PoolSize: o.pool, MemoryCallers: cores(),
		},
	}
	base := contender.Setting{Address: server.Address, Kind: contender.Allow, Keys: o.keys, PoolSize: o.pool, Callers: scaleCallers, Period: scalePeriod}
	bucket := contender.OwnRedis(ratelimit.AlgorithmTokenBucket)
	for round := range o.rounds {
		fmt.Fprintf(log, "round %d of %d\n", round+1, o.rounds)
		for callers := 1; callers <= mostCallers; callers *= 2 {
			setting := base
			setting.Callers = callers
			sample, err := cell{bucket, setting, round, server, nil}.measure(ctx, o)
			if err != nil {
				return err
			}
			fmt.Fprintf(log, "%5d callers %9.0f/s p99 %8.0f us, server %3.0f %%\n", callers, sample.Rate(), float64(sample.P99)/1e3, sample.ServerBusy*100)
			s.Callers = append(s.Callers, sample)
		}
		for policies := 1; policies <= mostPolicies; policies *= 10 {
			setting := base
			setting.Policies = policies
			sample, err := cell{bucket, setting, round, server, nil}.measure(ctx, o)
			if err != nil {
				return err
			}
			fmt.Fprintf(log, "%5d policies %9.0f/s p99 %8.0f us\n", policies, sample.Rate(), float64(sample.P99)/1e3)
			s.Policies = append(s.Policies, sample)
		}
	}
	for keys := fewestKeys; keys <= o.most; keys *= 10 {
		if err := fits(ctx, keys, redisBytesAKey+subjectBytes); err != nil {
			return err
		}
		samples, err := scaleKeys(ctx, o, base, keys, server, log)
		if err != nil {
			return err
		}
		s.Keys = append(s.Keys, samples...)
	}
	for keys := fewestKeys; keys <= o.most; keys *= 10 {
		if err := fits(ctx, keys, memoryBytesAKey+subjectBytes); err != nil {
			return err
		}
		samples, err := scaleMemory(ctx, o, keys, log)
		if err != nil {
			return err
		}
		s.Memory = append(s.Memory, samples...)
	}
	if err := save(o, o.scaleFile(), s); err != nil {
		return err
	}
	if !o.page {
		return nil
	}
	return render(o, out)
}

// fits refuses what would take most of the machine's memory.
func fits(ctx context.Context, keys int, bytesAKey int64) error {
	if free := freeBytes(ctx); free > 0 && float64(int64(keys)*bytesAKey) > largestShare*float64(free) {
		return fmt.Errorf("%d keys may take %d MiB, %d MiB are free; see -most", keys, int64(keys)*bytesAKey>>20, free>>20)
	}
	return nil
}

// scaleKeys makes so many keys in Redis, says what each takes there, measures and removes them.
func scaleKeys(
	ctx context.Context, o *options, setting contender.Setting, keys int, server *redisproc.Server, log io.Writer,
) (samples []report.Sample, err error) {
	if err := server.Clear(ctx); err != nil {
		return nil, err
	}
	setting.Keys = keys
	one := contender.OwnRedis(ratelimit.AlgorithmFixedWindow)
	decider, err := one.Open(ctx, setting)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, decider.Close(), server.Clear(ctx)) }()
	// The first keys are made before the count begins, so that what connections and programs take is
	// not taken for the keys'.
	first := keys / uncountedPart
	if err := measure.Visit(ctx, populateCallers, first, decider.Decide); err != nil {
		return nil, err
	}
	before, err := server.MemoryBytes(ctx)
	if err != nil {
		return nil, err
	}
	err = measure.Visit(ctx, populateCallers, keys-first, func(ctx context.Context, key int) (bool, error) {
		return decider.Decide(ctx, first+key)
	})
	if err != nil {
		return nil, err
	}
	after, err := server.MemoryBytes(ctx)
	if err != nil {
		return nil, err
	}
	for round := range o.rounds {
		sample, err := cell{one, setting, round, server, nil}.again(ctx, o, decider)
		if err != nil {
			return nil, err
		}
		sample.BytesPerKey = float64(after-before) / float64(keys-first)
		fmt.Fprintf(log, "%9d keys %9.0f/s p99 %8.0f us, %.0f bytes a key\n", keys, sample.Rate(), float64(sample.P99)/1e3, sample.BytesPerKey)
		samples = append(samples, sample)
	}
	return samples, nil
}

// scaleMemory makes so many keys in this process, says what each takes, and measures.
func scaleMemory(ctx context.Context, o *options, keys int, log io.Writer) (samples []report.Sample, err error) {
	one := contender.OwnMemory(ratelimit.AlgorithmTokenBucket)
	setting := contender.Setting{Kind: contender.Allow, Keys: keys, Callers: cores()}
	decider, err := one.Open(ctx, setting)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, decider.Close()) }()
	before := liveHeap()
	if err := measure.Visit(ctx, visitors, keys, decider.Decide); err != nil {
		return nil, err
	}
	after := liveHeap()
	for round := range o.rounds {
		sample, err := cell{one, setting, round, nil, nil}.again(ctx, o, decider)
		if err != nil {
			return nil, err
		}
		sample.BytesPerKey = (float64(after) - float64(before)) / float64(keys)
		fmt.Fprintf(log, "%9d keys in memory %8.1f ns, %.0f bytes a key\n", keys, sample.NanosPerDecision(), sample.BytesPerKey)
		samples = append(samples, sample)
	}
	return samples, nil
}

// liveHeap is what the heap holds after collections.
func liveHeap() uint64 {
	for range settleCollection {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
