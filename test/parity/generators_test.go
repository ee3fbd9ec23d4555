package parity

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// subject is a random policy, or what stands in its place, of programs that share a key.
type subject struct {
	horizon    int64 // ms in which much changes
	regression int64 // ms
	clock      bool  // whether the programs take a clock
	// step gives a program of the subject and arguments that it accepts. clock is the wire form of the
	// clock argument, now what the program will decide by.
	step func(r *rand.Rand, now int64, clock string, current state) (*store.Program, []string)
	// plant gives a state that could stand there. nil where none but the programs' own makes sense.
	plant func(r *rand.Rand) state
}

// generators has the subjects of every program by ID. A program without one fails the suite.
var generators = map[string]func(r *rand.Rand) subject{
	store.RateFixedWindowV1.ID():    fixedWindows,
	store.RateSlidingCounterV1.ID(): slidingCounters,
	store.RateTokenBucketV1.ID():    tokenBuckets,
	store.RateGCRAV1.ID():           gcras,
	store.RateSlidingLogV1.ID():     slidingLogs,
	store.BreakerAcquireV1.ID():     breakers,
	store.BreakerRecordV1.ID():      breakers,
	store.BreakerReadV1.ID():        breakers,
	store.StoreIncrByV1.ID():        counters,
	store.CacheReplaceV1.ID():       entries,
	store.CacheDeleteV1.ID():        entries,
}

const (
	mostExact   = 1<<53 - 1
	mostHorizon = 3_155_760_000_000
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// cost gives costs near the limit and small ones.
func cost(r *rand.Rand, limit int64) int64 {
	switch r.IntN(4) {
	case 0:
		return limit - r.Int64N(min(limit, 3))
	case 1:
		return 1 + r.Int64N(min(limit, 3))
	default:
		return scale(r, limit)
	}
}

// limited makes the subject of a rate program: own are its arguments between identity and grace, of
// which the costs are up to limit.
func limited(r *rand.Rand, program *store.Program, tag string, limit, horizon int64, own ...int64) subject {
	regression := scale(r, 10_000) - 1
	grace := regression + scale(r, 100_000) - 1
	fixed := []string{fmt.Sprintf("1:%s:%d:parity", tag, 1+r.IntN(9))}
	for _, n := range append(own, grace, regression) {
		fixed = append(fixed, decimal(n))
	}
	return subject{
		horizon: min(horizon, mostHorizon), regression: regression, clock: true,
		step: func(r *rand.Rand, _ int64, clock string, _ state) (*store.Program, []string) {
			return program, append(fixed[:len(fixed):len(fixed)], decimal(cost(r, limit)), clock)
		},
	}
}

func fixedWindows(r *rand.Rand) subject {
	limit, window := scale(r, mostExact), scale(r, mostHorizon)
	return limited(r, store.RateFixedWindowV1, "fw", limit, window, limit, window)
}

func slidingCounters(r *rand.Rand) subject {
	limit, window := scale(r, mostExact/1_000_000), scale(r, mostHorizon)
	return limited(r, store.RateSlidingCounterV1, "sc", limit, window, limit, window)
}

func slidingLogs(r *rand.Rand) subject {
	limit, window := scale(r, pick[int64](r, 10, 100, 10_000)), scale(r, mostHorizon)
	return limited(r, store.RateSlidingLogV1, "sl", limit, window, limit, window)
}

// tokenBuckets need not be in lowest terms, and a few are beyond the exact range.
func tokenBuckets(r *rand.Rand) subject {
	for {
		numerator := scale(r, 1_000_000_000)
		denominator := scale(r, min(mostHorizon, mostExact/(numerator+1)))
		capacity := scale(r, mostExact)
		if fill := capacity / numerator; r.IntN(20) == 0 || fill == 0 || denominator <= mostHorizon/fill {
			return limited(r, store.RateTokenBucketV1, "tb", capacity, max(denominator, min(fill, mostHorizon/denominator)*denominator),
				capacity, numerator, denominator)
		}
	}
}

func gcras(r *rand.Rand) subject {
	for {
		limit := scale(r, 1_000_000_000)
		period := scale(r, min(mostHorizon, mostExact/limit))
		burst := scale(r, mostExact)
		if span := burst / limit; r.IntN(20) == 0 || span == 0 || period <= mostHorizon/span {
			return limited(r, store.RateGCRAV1, "gc", burst, max(period, min(span, mostHorizon/period)*period), limit, period, burst)
		}
	}
}

// hexTokens are tokens of a breaker's calls.
var hexTokens = []string{strings.Repeat("0", 32), strings.Repeat("0123456789abcdef", 2), strings.Repeat("f", 32), strings.Repeat("a1", 16)}

func breakers(r *rand.Rand) subject {
	regression := scale(r, 10_000) - 1
	grace := regression + scale(r, 100_000) - 1
	timeout, lease := scale(r, 10_000_000), scale(r, 10_000_000)
	policy := []string{fmt.Sprintf("1:cb:%d:parity", 1+r.IntN(9))}
	horizon := max(timeout, lease)
	failures := []int64{scale(r, 5), 0, 0, 0, 0}
	if r.IntN(2) == 0 {
		buckets := 1 + r.Int64N(20)
		width := scale(r, mostHorizon/buckets)
		failures = []int64{0, buckets, width, scale(r, 20), 1 + r.Int64N(1000)}
		horizon = max(horizon, width)
	}
	for _, n := range append(failures, timeout, 1+r.Int64N(pick[int64](r, 2, 16)), lease, scale(r, 4), grace, regression) {
		policy = append(policy, decimal(n))
	}
	return subject{
		horizon: min(horizon, mostHorizon), regression: regression, clock: true,
		step: func(r *rand.Rand, now int64, clock string, current state) (*store.Program, []string) {
			args := policy[:len(policy):len(policy)]
			switch r.IntN(6) {
			case 0:
				return store.BreakerReadV1, append(args, clock)
			case 1, 2:
				return store.BreakerAcquireV1, append(args, pick(r, hexTokens...), clock)
			}
			generation := pick(r, current.pairs["o"], "0", decimal(now))
			if _, err := strconv.ParseUint(generation, 10, 63); err != nil {
				generation = "0"
			}
			kind := pick(r, "CALL", "CALL", "PROBE")
			if current.pairs["s"] == "half-open" {
				kind = "PROBE"
			}
			return store.BreakerRecordV1, append(args, kind, pick(r, hexTokens...), generation,
				decimal(max(now-scale(r, horizon)+1, 0)), pick(r, "SUCCESS", "FAILURE", "FAILURE", "NEITHER"), clock)
		},
	}
}

// integers are what a counter holds and gets.
var integers = []string{
	"0", "1", "-1", "9007199254740991", "-9007199254740991", "9007199254740990", "-9007199254740990", "4503599627370496", "-4503599627370496",
}

func counters(r *rand.Rand) subject {
	integer := func(r *rand.Rand) string {
		if r.IntN(2) == 0 {
			return pick(r, integers...)
		}
		return decimal(scale(r, mostExact) * pick[int64](r, -1, 1))
	}
	horizon := scale(r, mostHorizon)
	return subject{
		horizon: horizon,
		step: func(r *rand.Rand, _ int64, _ string, _ state) (*store.Program, []string) {
			ttl := decimal(scale(r, horizon))
			if r.IntN(12) == 0 {
				ttl = pick(r, oddArguments...) // The program leaves it to SET to judge it, where it creates a key.
			}
			return store.StoreIncrByV1, []string{integer(r), ttl}
		},
		plant: func(r *rand.Rand) state {
			if r.IntN(3) == 0 {
				return foreign(r)
			}
			return state{kind: "string", text: integer(r)}
		},
	}
}

// cacheTokens are tokens of a cache's versions.
var cacheTokens = []string{strings.Repeat("A", 22), "abcdefghij0123456789_-", strings.Repeat("-", 22)}

func entries(r *rand.Rand) subject {
	entry := func(r *rand.Rand) string {
		return "1:" + pick(r, cacheTokens...) + ":" + pick(r, "", "v", "\x00", "1:x", strings.Repeat("v", r.IntN(100)))
	}
	horizon := scale(r, mostHorizon)
	return subject{
		horizon: horizon,
		step: func(r *rand.Rand, _ int64, _ string, current state) (*store.Program, []string) {
			observed := pick(r, cacheTokens...)
			if len(current.text) >= 25 && r.IntN(2) == 0 {
				observed = current.text[2:24]
			}
			if r.IntN(3) == 0 {
				return store.CacheDeleteV1, []string{observed}
			}
			return store.CacheReplaceV1, []string{observed, entry(r), decimal(scale(r, horizon))}
		},
		plant: func(r *rand.Rand) state { return state{kind: "string", text: entry(r)} },
	}
}

// oddArguments are what no program accepts where it wants an integer, and little else.
var oddArguments = []string{
	"", " ", "-1", "+1", "-0", "00", "1.5", "1e3", "nan", "inf", "0x1", "1 ", "0", "12345678901234567", "9007199254740992", "9223372036854775807",
	"9223372036854775808", "3155760000001", "4398046511105", "86400001", "1:fw:1:parity", "1:xx:1:parity", "x\x00", strings.Repeat("x", 65),
	strings.Repeat("9", 32), "CALL", "open",
}

// spoiled puts one argument out of its type or range, or gives one too many or too few, or another
// number of keys.
func spoiled(r *rand.Rand, c call) call {
	args := append([]string(nil), c.args...)
	switch r.IntN(12) {
	case 0:
		args = args[:len(args)-1]
	case 1:
		args = append(args, "1")
	case 2:
		args = nil
	case 3:
		c.keys = append(c.keys[:1:1], "second")
	case 4, 5, 6:
		i := r.IntN(len(args))
		args[i] = changed(r, args[i])
	default:
		args[r.IntN(len(args))] = pick(r, oddArguments...)
	}
	c.args = args
	return c
}
