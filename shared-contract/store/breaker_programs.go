package store

// Bounds of breaker programs: those of shared-contract/breaker, which this package does not import. A
// test there compares.
const (
	maxBreakerCount     = 1_000_000_000
	maxBreakerBuckets   = 20
	maxBreakerProbes    = 16
	maxBreakerSuccesses = 1_000_000
	breakerTokenBytes   = 32
)

func wordField(name string, words ...string) Field {
	return Field{Name: name, Kind: FieldText, Word: words}
}

func breakerTokenField() Field {
	return Field{Name: "token", Kind: FieldText, Unit: "id", Min: breakerTokenBytes, Max: breakerTokenBytes}
}

func breakerStateField(name string) Field {
	return wordField(name, "closed", "open", "half-open", "INVALID")
}

func breakerMoments(names ...string) []Field {
	fields := make([]Field, 0, len(names))
	for _, name := range names {
		fields = append(fields, integerField(name, "ms", 0, maxExact))
	}
	return fields
}

// breakerProgram describes one breaker program: the policy, the program's own arguments, and the clock.
func breakerProgram(name string, own []Field, reply ...Field) *Program {
	args := []Field{
		identityField(),
		integerField("threshold", "calls", 0, maxBreakerCount),
		integerField("buckets", "buckets", 0, maxBreakerBuckets),
		integerField("bucket_width", "ms", 0, maxHorizon),
		integerField("minimum_calls", "calls", 0, maxBreakerCount),
		integerField("rate_permille", "permille", 0, 1000),
		integerField("open_timeout", "ms", 1, maxHorizon),
		integerField("max_probes", "probes", 1, maxBreakerProbes),
		integerField("probe_lease", "ms", 1, maxHorizon),
		integerField("probe_successes", "probes", 1, maxBreakerSuccesses),
	}
	args = append(args, clockFields()...)
	args = append(args, own...)
	args = append(args, integerField(ClockArgument, "ms", 0, maxNow))
	return &Program{Name: name, Version: 1, Keys: 1, Args: args, Reply: reply}
}

// The programs of the circuit breaker. Each takes one key and begins with the policy: identity is
// schema, algorithm, revision and fingerprint in one text; either threshold is set, or the four after
// it. clock 0 means the store's own clock.
var (
	// BreakerAcquireV1 asks for a call.
	BreakerAcquireV1 = breakerProgram("breaker-acquire",
		[]Field{breakerTokenField()},
		append([]Field{
			wordField("status", "CALL", "PROBE", "REJECTED", "CLOCK_UNSAFE", "STATE_INCOMPATIBLE", "INVALID"),
			breakerStateField("state"),
		}, breakerMoments("server_now", "effective_now", "since", "retry_after", "lease_until")...)...,
	)
	// BreakerRecordV1 counts a result.
	BreakerRecordV1 = breakerProgram("breaker-record",
		[]Field{
			wordField("kind", "CALL", "PROBE"),
			breakerTokenField(),
			integerField("generation", "ms", 0, maxNow),
			integerField("acquired_at", "ms", 0, maxNow),
			wordField("result", "SUCCESS", "FAILURE", "NEITHER"),
		},
		append([]Field{
			wordField("status", "COUNTED", "RELEASED", "LATE", "CLOCK_UNSAFE", "STATE_INCOMPATIBLE", "INVALID"),
			breakerStateField("before"),
			breakerStateField("state"),
		}, breakerMoments("server_now", "effective_now", "since", "retry_after")...)...,
	)
	// BreakerReadV1 tells the state.
	BreakerReadV1 = breakerProgram("breaker-read", nil,
		append(append([]Field{
			wordField("status", "READ", "CLOCK_UNSAFE", "STATE_INCOMPATIBLE", "INVALID"),
			breakerStateField("state"),
		}, breakerMoments("server_now", "effective_now", "since", "retry_after")...),
			integerField("tally", "calls", 0, maxExact),
			integerField("total", "calls", 0, maxExact),
		)...,
	)
)

// BreakerPrograms lists the programs of the circuit breaker.
func BreakerPrograms() []*Program {
	return []*Program{BreakerAcquireV1, BreakerRecordV1, BreakerReadV1}
}
