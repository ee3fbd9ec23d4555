package store

// maxExact is 2^53-1; the other bounds are those of shared-contract/algorithm, which this package
// does not import. A test in lua compares them with each program's header.
const (
	maxExact      = 1<<53 - 1
	maxHorizon    = 3_155_760_000_000
	maxNow        = 1 << 42
	maxRegression = 86_400_000
	maxSliding    = maxExact / 1_000_000
	maxLog        = 10_000
)

func identityField() Field {
	return Field{Name: "identity", Kind: FieldText, Unit: "id", Min: 6, Max: 64}
}

func integerField(name, unit string, low, high int64) Field {
	return Field{Name: name, Kind: FieldInteger, Unit: unit, Min: low, Max: high}
}

func clockFields() []Field {
	return []Field{
		integerField("grace", "ms", 0, maxHorizon),
		integerField("max_regression", "ms", 0, maxRegression),
	}
}

// rateProgram describes one rate program: identity, the algorithm's own arguments, grace, regression,
// cost and clock; seven reply fields.
func rateProgram(name, unit string, maxLimit int64, own ...Field) *Program {
	args := append([]Field{identityField()}, own...)
	args = append(args, clockFields()...)
	args = append(args,
		integerField("cost", unit, 1, maxLimit),
		integerField("clock", "ms", 0, maxNow),
	)
	return &Program{
		Name: name, Version: 1, Keys: 1, Args: args,
		Reply: []Field{
			{Name: "status", Kind: FieldText, Word: []string{"ALLOWED", "DENIED", "CLOCK_UNSAFE", "STATE_INCOMPATIBLE", "INVALID"}},
			integerField("server_now", "ms", 0, maxExact),
			integerField("effective_now", "ms", 0, maxExact),
			integerField("limit", unit, 0, maxExact),
			integerField("remaining", unit, 0, maxExact),
			integerField("retry_after", "ms", 0, maxExact),
			integerField("reset_at", "ms", 0, maxExact),
		},
	}
}

// The rate programs. Each takes one key; identity is schema, algorithm, policy revision and parameter
// fingerprint in one text; clock 0 means the store's own clock.
var (
	// RateFixedWindowV1 is the fixed window.
	RateFixedWindowV1 = rateProgram("rate-fixed-window", "units", maxExact,
		integerField("limit", "units", 1, maxExact),
		integerField("window", "ms", 1, maxHorizon),
	)
	// RateSlidingCounterV1 is the sliding window counter.
	RateSlidingCounterV1 = rateProgram("rate-sliding-counter", "units", maxSliding,
		integerField("limit", "units", 1, maxSliding),
		integerField("window", "ms", 1, maxHorizon),
	)
	// RateTokenBucketV1 is the token bucket; numerator tokens are gained each denominator ms, in
	// lowest terms.
	RateTokenBucketV1 = rateProgram("rate-token-bucket", "tokens", maxExact,
		integerField("capacity", "tokens", 1, maxExact),
		integerField("numerator", "tokens", 1, maxExact),
		integerField("denominator", "ms", 1, maxHorizon),
	)
	// RateGCRAV1 is GCRA; limit units are due each period ms, in lowest terms, and up to burst may come
	// at once. The limit of its reply is the burst.
	RateGCRAV1 = rateProgram("rate-gcra", "units", maxExact,
		integerField("limit", "units", 1, maxExact),
		integerField("period", "ms", 1, maxHorizon),
		integerField("burst", "units", 1, maxExact),
	)
	// RateSlidingLogV1 is the sliding window log. It keeps a sorted set; the others keep a hash.
	RateSlidingLogV1 = rateProgram("rate-sliding-log", "units", maxLog,
		integerField("limit", "units", 1, maxLog),
		integerField("window", "ms", 1, maxHorizon),
	)
)
