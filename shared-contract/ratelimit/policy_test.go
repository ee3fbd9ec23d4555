package ratelimit

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

const century = time.Duration(algorithm.MaxHorizonMillis) * time.Millisecond

func goodConfig() RateLimitPolicyConfig {
	return RateLimitPolicyConfig{
		ID: "api", Revision: 3, Algorithm: AlgorithmFixedWindow,
		Parameters: FixedWindowParameters{Limit: 10, Window: time.Minute}, MaxCost: 5,
		CleanupGrace: time.Minute, MaxClockRegression: 2 * time.Second, FailurePolicy: FailClosed,
	}
}

func bucketConfig(parameters TokenBucketParameters) RateLimitPolicyConfig {
	c := goodConfig()
	c.Algorithm, c.Parameters, c.MaxCost = AlgorithmTokenBucket, parameters, 1
	return c
}

func counterConfig(parameters SlidingWindowCounterParameters) RateLimitPolicyConfig {
	c := goodConfig()
	c.Algorithm, c.Parameters, c.MaxCost = AlgorithmSlidingWindowCounter, parameters, 1
	return c
}

func gcraConfig(parameters GCRAParameters) RateLimitPolicyConfig {
	c := goodConfig()
	c.Algorithm, c.Parameters, c.MaxCost = AlgorithmGCRA, parameters, 1
	return c
}

func logConfig(parameters SlidingWindowLogParameters) RateLimitPolicyConfig {
	c := goodConfig()
	c.Algorithm, c.Parameters, c.MaxCost = AlgorithmSlidingWindowLog, parameters, 1
	return c
}

func mustPolicy(t *testing.T, config RateLimitPolicyConfig) *RateLimitPolicy {
	t.Helper()
	p, err := NewRateLimitPolicy(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fields gives the fields that an error refuses, sorted.
func fields(err error) []string {
	var names []string
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, each := range joined.Unwrap() {
		var fault *PolicyError
		if errors.As(each, &fault) {
			names = append(names, fault.Field)
		}
	}
	slices.Sort(names)
	return names
}

func TestPolicyGivesBackWhatItWasMadeOf(t *testing.T) {
	t.Parallel()
	c := goodConfig()
	p := mustPolicy(t, c)
	if p.ID() != c.ID || p.Revision() != c.Revision || p.Algorithm() != c.Algorithm || p.Parameters() != c.Parameters ||
		p.MaxCost() != c.MaxCost || p.CleanupGrace() != c.CleanupGrace || p.MaxClockRegression() != c.MaxClockRegression ||
		p.FailurePolicy() != FailClosed || p.Limit() != 10 {
		t.Errorf("%+v", p)
	}
	if want := (algorithm.Clock{GraceMillis: 60_000, MaxRegressionMillis: 2000}); p.Clock() != want {
		t.Errorf("clock %+v, want %+v", p.Clock(), want)
	}
	if p.Certainty() != CertaintyCertain {
		t.Errorf("certainty %v", p.Certainty())
	}
	counter := mustPolicy(t, counterConfig(SlidingWindowCounterParameters{Limit: 7, Window: time.Second}))
	if counter.Certainty() != CertaintyApproximateAlgorithm || counter.Limit() != 7 {
		t.Errorf("counter: %v, limit %d", counter.Certainty(), counter.Limit())
	}
	bucket := mustPolicy(t, bucketConfig(TokenBucketParameters{Capacity: 9, RefillTokens: 1, RefillPeriod: time.Second}))
	if bucket.Certainty() != CertaintyCertain || bucket.Limit() != 9 {
		t.Errorf("bucket: %v, limit %d", bucket.Certainty(), bucket.Limit())
	}
	gcra := mustPolicy(t, gcraConfig(GCRAParameters{Limit: 2, Period: time.Second, Burst: 9}))
	if gcra.Certainty() != CertaintyCertain || gcra.Limit() != 9 || gcra.Algorithm() != AlgorithmGCRA {
		t.Errorf("gcra: %v, limit %d, %v", gcra.Certainty(), gcra.Limit(), gcra.Algorithm())
	}
	log := mustPolicy(t, logConfig(SlidingWindowLogParameters{Limit: 8, Window: time.Second}))
	if log.Certainty() != CertaintyCertain || log.Limit() != 8 || log.Algorithm() != AlgorithmSlidingWindowLog {
		t.Errorf("log: %v, limit %d, %v", log.Certainty(), log.Limit(), log.Algorithm())
	}
}

// Each field at its bounds and beyond. Casebook 11, 15, 17.
func TestPolicyRefusals(t *testing.T) {
	t.Parallel()
	edit := func(f func(*RateLimitPolicyConfig)) RateLimitPolicyConfig {
		c := goodConfig()
		f(&c)
		return c
	}
	for name, c := range map[string]struct {
		config RateLimitPolicyConfig
		want   []string // the fields refused
	}{
		"good":        {goodConfig(), nil},
		"everything":  {RateLimitPolicyConfig{}, []string{"FailurePolicy", "ID", "MaxCost", "Parameters", "Revision"}},
		"pointer":     {edit(func(c *RateLimitPolicyConfig) { c.Parameters = &FixedWindowParameters{Limit: 10, Window: time.Minute} }), []string{"Parameters"}},
		"nil pointer": {edit(func(c *RateLimitPolicyConfig) { c.Parameters = (*FixedWindowParameters)(nil) }), []string{"Parameters"}},
		"embedded": {edit(func(c *RateLimitPolicyConfig) {
			c.Parameters = struct{ FixedWindowParameters }{FixedWindowParameters{Limit: 10, Window: time.Minute}}
		}), []string{"Parameters"}},
		"mismatched and wrong": {edit(func(c *RateLimitPolicyConfig) {
			c.Algorithm, c.MaxCost = AlgorithmTokenBucket, 0
			c.Parameters = FixedWindowParameters{Limit: 10}
		}), []string{"Algorithm", "MaxCost", "Window"}},
		"revision 0":           {edit(func(c *RateLimitPolicyConfig) { c.Revision = 0 }), []string{"Revision"}},
		"revision -1":          {edit(func(c *RateLimitPolicyConfig) { c.Revision = -1 }), []string{"Revision"}},
		"last revision":        {edit(func(c *RateLimitPolicyConfig) { c.Revision = MaxPolicyRevision }), nil},
		"revision above":       {edit(func(c *RateLimitPolicyConfig) { c.Revision = MaxPolicyRevision + 1 }), []string{"Revision"}},
		"no failure policy":    {edit(func(c *RateLimitPolicyConfig) { c.FailurePolicy = 0 }), []string{"FailurePolicy"}},
		"other failure policy": {edit(func(c *RateLimitPolicyConfig) { c.FailurePolicy = FailClosed + 1 }), []string{"FailurePolicy"}},
		"dedup":                {edit(func(c *RateLimitPolicyConfig) { c.DedupWindow = time.Second }), []string{"DedupWindow"}},
		"negative dedup":       {edit(func(c *RateLimitPolicyConfig) { c.DedupWindow = -1 }), []string{"DedupWindow"}},
		"no algorithm":         {edit(func(c *RateLimitPolicyConfig) { c.Algorithm = 0 }), []string{"Algorithm"}},
		"mismatched algorithm": {edit(func(c *RateLimitPolicyConfig) { c.Algorithm = AlgorithmTokenBucket }), []string{"Algorithm"}},
		"unknown algorithm":    {edit(func(c *RateLimitPolicyConfig) { c.Algorithm = 200 }), []string{"Algorithm"}},
		"no parameters":        {edit(func(c *RateLimitPolicyConfig) { c.Parameters = nil }), []string{"Parameters"}},
		"cost 0":               {edit(func(c *RateLimitPolicyConfig) { c.MaxCost = 0 }), []string{"MaxCost"}},
		"cost -1":              {edit(func(c *RateLimitPolicyConfig) { c.MaxCost = -1 }), []string{"MaxCost"}},
		"cost is limit":        {edit(func(c *RateLimitPolicyConfig) { c.MaxCost = 10 }), nil},
		"cost above limit":     {edit(func(c *RateLimitPolicyConfig) { c.MaxCost = 11 }), []string{"MaxCost"}},
		"no grace or step":     {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace, c.MaxClockRegression = 0, 0 }), nil},
		"grace is step":        {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace = 2 * time.Second }), nil},
		"grace below step":     {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace = 1999 * time.Millisecond }), []string{"CleanupGrace"}},
		"negative grace":       {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace = -time.Second }), []string{"CleanupGrace"}},
		"longest grace":        {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace = century }), nil},
		"grace above":          {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace = century + time.Millisecond }), []string{"CleanupGrace"}},
		"parted grace":         {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace = time.Minute + 1 }), []string{"CleanupGrace"}},
		"negative step":        {edit(func(c *RateLimitPolicyConfig) { c.MaxClockRegression = -time.Millisecond }), []string{"MaxClockRegression"}},
		"longest step":         {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace, c.MaxClockRegression = 24*time.Hour, 24*time.Hour }), nil},
		"step above":           {edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace, c.MaxClockRegression = 48*time.Hour, 25*time.Hour }), []string{"MaxClockRegression"}},
		"parted step":          {edit(func(c *RateLimitPolicyConfig) { c.MaxClockRegression = time.Second + 1 }), []string{"MaxClockRegression"}},
		"fixed limit 0":        {edit(func(c *RateLimitPolicyConfig) { c.Parameters = FixedWindowParameters{Limit: 0, Window: time.Second} }), []string{"Limit"}},
		"fixed window 0":       {edit(func(c *RateLimitPolicyConfig) { c.Parameters = FixedWindowParameters{Limit: 10} }), []string{"Window"}},
		"fixed both":           {edit(func(c *RateLimitPolicyConfig) { c.Parameters = FixedWindowParameters{Limit: -10, Window: -time.Second} }), []string{"Limit", "Window"}},
		"fixed parted window":  {edit(func(c *RateLimitPolicyConfig) { c.Parameters = FixedWindowParameters{Limit: 10, Window: 1} }), []string{"Window"}},
		"fixed longest": {edit(func(c *RateLimitPolicyConfig) {
			c.Parameters = FixedWindowParameters{Limit: algorithm.MaxExact, Window: century}
		}), nil},
		"fixed above": {edit(func(c *RateLimitPolicyConfig) {
			c.Parameters = FixedWindowParameters{Limit: algorithm.MaxExact + 1, Window: time.Second}
		}), []string{"Limit"}},
		"fixed window above": {edit(func(c *RateLimitPolicyConfig) {
			c.Parameters = FixedWindowParameters{Limit: 10, Window: century + time.Millisecond}
		}), []string{"Window"}},
		"counter edge":       {counterConfig(SlidingWindowCounterParameters{Limit: 9_007_199_254, Window: century}), nil},
		"counter above":      {counterConfig(SlidingWindowCounterParameters{Limit: 9_007_199_255, Window: time.Second}), []string{"Limit"}},
		"counter limit 0":    {counterConfig(SlidingWindowCounterParameters{Limit: 0, Window: time.Second}), []string{"Limit"}},
		"counter window 0":   {counterConfig(SlidingWindowCounterParameters{Limit: 1}), []string{"Window"}},
		"bucket least":       {bucketConfig(TokenBucketParameters{Capacity: 1, RefillTokens: 1, RefillPeriod: time.Millisecond}), nil},
		"bucket nothing":     {bucketConfig(TokenBucketParameters{}), []string{"Capacity", "RefillPeriod", "RefillTokens"}},
		"bucket refill 0":    {bucketConfig(TokenBucketParameters{Capacity: 1, RefillPeriod: time.Second}), []string{"RefillTokens"}},
		"bucket period 0":    {bucketConfig(TokenBucketParameters{Capacity: 1, RefillTokens: 1}), []string{"RefillPeriod"}},
		"bucket fill time":   {bucketConfig(TokenBucketParameters{Capacity: 1, RefillTokens: 1, RefillPeriod: century}), nil},
		"bucket too long":    {bucketConfig(TokenBucketParameters{Capacity: 2, RefillTokens: 1, RefillPeriod: century}), []string{"Capacity"}},
		"bucket sum edge":    {bucketConfig(TokenBucketParameters{Capacity: algorithm.MaxExact - 1 - 1<<40, RefillTokens: 1 << 40, RefillPeriod: time.Millisecond}), nil},
		"bucket sum above":   {bucketConfig(TokenBucketParameters{Capacity: algorithm.MaxExact - 1<<40, RefillTokens: 1 << 40, RefillPeriod: time.Millisecond}), []string{"Capacity"}},
		"bucket product":     {bucketConfig(TokenBucketParameters{Capacity: 1, RefillTokens: 1<<40 - 1, RefillPeriod: (1 << 40) * time.Millisecond}), []string{"Capacity"}},
		"gcra least":         {gcraConfig(GCRAParameters{Limit: 1, Period: time.Millisecond, Burst: 1}), nil},
		"gcra nothing":       {gcraConfig(GCRAParameters{}), []string{"Burst", "Limit", "Period"}},
		"gcra limit 0":       {gcraConfig(GCRAParameters{Period: time.Second, Burst: 1}), []string{"Limit"}},
		"gcra period 0":      {gcraConfig(GCRAParameters{Limit: 1, Burst: 1}), []string{"Period"}},
		"gcra burst 0":       {gcraConfig(GCRAParameters{Limit: 1, Period: time.Second}), []string{"Burst"}},
		"gcra parted period": {gcraConfig(GCRAParameters{Limit: 1, Period: time.Second + 1, Burst: 1}), []string{"Period"}},
		"gcra span edge":     {gcraConfig(GCRAParameters{Limit: 1, Period: century, Burst: 1}), nil},
		"gcra span above":    {gcraConfig(GCRAParameters{Limit: 1, Period: century, Burst: 2}), []string{"Burst"}},
		"gcra product edge":  {gcraConfig(GCRAParameters{Limit: 6361 * 69431, Period: (20394401 - 1) * time.Millisecond, Burst: 1}), nil},
		"gcra product above": {gcraConfig(GCRAParameters{Limit: 6361 * 69431, Period: (20394401 + 2) * time.Millisecond, Burst: 1}), []string{"Burst"}},
		"gcra cost is burst": {edit(func(c *RateLimitPolicyConfig) {
			c.Algorithm, c.Parameters, c.MaxCost = AlgorithmGCRA, GCRAParameters{Limit: 1, Period: time.Second, Burst: 4}, 4
		}), nil},
		// However many units a period brings, no more than the burst can pass at once. Casebook 15.
		"gcra cost above burst": {edit(func(c *RateLimitPolicyConfig) {
			c.Algorithm, c.Parameters, c.MaxCost = AlgorithmGCRA, GCRAParameters{Limit: 100, Period: time.Second, Burst: 4}, 5
		}), []string{"MaxCost"}},
		"gcra pointer":     {edit(func(c *RateLimitPolicyConfig) { c.Algorithm, c.Parameters = AlgorithmGCRA, &GCRAParameters{} }), []string{"Parameters"}},
		"log edge":         {logConfig(SlidingWindowLogParameters{Limit: 10_000, Window: century}), nil},
		"log above":        {logConfig(SlidingWindowLogParameters{Limit: 10_001, Window: time.Second}), []string{"Limit"}},
		"log limit 0":      {logConfig(SlidingWindowLogParameters{Window: time.Second}), []string{"Limit"}},
		"log window 0":     {logConfig(SlidingWindowLogParameters{Limit: 1}), []string{"Window"}},
		"log window above": {logConfig(SlidingWindowLogParameters{Limit: 1, Window: century + time.Millisecond}), []string{"Window"}},
		"log cost above": {edit(func(c *RateLimitPolicyConfig) {
			c.Algorithm, c.Parameters, c.MaxCost = AlgorithmSlidingWindowLog, SlidingWindowLogParameters{Limit: 4, Window: time.Second}, 5
		}), []string{"MaxCost"}},
		"several at once":       {edit(func(c *RateLimitPolicyConfig) { c.ID, c.Revision, c.MaxCost, c.DedupWindow = "", 0, 99, 1 }), []string{"DedupWindow", "ID", "MaxCost", "Revision"}},
		"parameters and clocks": {edit(func(c *RateLimitPolicyConfig) { c.Parameters = FixedWindowParameters{Limit: 10}; c.CleanupGrace = -1 }), []string{"CleanupGrace", "Window"}},
	} {
		p, err := NewRateLimitPolicy(c.config)
		if got := fields(err); !slices.Equal(got, c.want) || (p == nil) != (len(c.want) > 0) {
			t.Errorf("%s: refused for %v, want %v: %v", name, got, c.want, err)
		}
	}
}

// A policy that cannot be exact is refused with the step and its value. Casebook 17.
func TestRefusalNamesTheStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config      RateLimitPolicyConfig
		step, value string
	}{
		{counterConfig(SlidingWindowCounterParameters{Limit: 9_007_199_255, Window: time.Second}), "limit * 1000000", "9007199255000000"},
		{bucketConfig(TokenBucketParameters{Capacity: 2, RefillTokens: 1, RefillPeriod: century}), "fill time ceil(capacity*D/N)", "6311520000000"},
		{gcraConfig(GCRAParameters{Limit: 1, Period: century, Burst: 2}), "span of the burst ceil(burst*P/L)", "6311520000000"},
		{logConfig(SlidingWindowLogParameters{Limit: 10_001, Window: time.Second}), "limit", "10001"},
	} {
		_, err := NewRateLimitPolicy(c.config)
		var out *algorithm.RangeError
		if !errors.As(err, &out) || out.Step != c.step || out.Value != c.value {
			t.Errorf("%v: %+v, want step %q and value %s", err, out, c.step, c.value)
			continue
		}
		if !strings.Contains(err.Error(), c.step) || !strings.Contains(err.Error(), c.value) {
			t.Errorf("%v does not name %q and %s", err, c.step, c.value)
		}
	}
}

func TestPolicyID(t *testing.T) {
	t.Parallel()
	for _, id := range []PolicyID{"a", "Z", "0", "api-default", "a.b_c-d", "9lives", PolicyID(strings.Repeat("x", 64))} {
		if err := id.Validate(); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []PolicyID{
		"", PolicyID(strings.Repeat("x", 65)), ".a", "-a", "_a", "a b", "a:b", "a/b", "a{b}", "a*", "é", "a\x00", "a\n", "a|b", "a=b", "a,b", "a%", "@", "[", "`", "{",
	} {
		if err := id.Validate(); err == nil {
			t.Errorf("%q was accepted", id)
		}
	}
}

// The fingerprint changes with each parameter, and with nothing else.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9a-f]{16}$`)
	seen := map[string]string{}
	note := func(name string, c RateLimitPolicyConfig) {
		t.Helper()
		f := mustPolicy(t, c).Fingerprint()
		if other, twice := seen[f]; twice || !form.MatchString(f) {
			t.Errorf("%s has the fingerprint %q, as %q has", name, f, other)
		}
		seen[f] = name
	}
	edit := func(f func(*RateLimitPolicyConfig)) RateLimitPolicyConfig {
		c := goodConfig()
		f(&c)
		return c
	}
	note("base", goodConfig())
	note("limit", edit(func(c *RateLimitPolicyConfig) { c.Parameters = FixedWindowParameters{Limit: 11, Window: time.Minute} }))
	note("window", edit(func(c *RateLimitPolicyConfig) { c.Parameters = FixedWindowParameters{Limit: 10, Window: time.Hour} }))
	note("cost", edit(func(c *RateLimitPolicyConfig) { c.MaxCost = 6 }))
	note("grace", edit(func(c *RateLimitPolicyConfig) { c.CleanupGrace += time.Millisecond }))
	note("regression", edit(func(c *RateLimitPolicyConfig) { c.MaxClockRegression += time.Millisecond }))
	counter := goodConfig()
	counter.Algorithm, counter.Parameters = AlgorithmSlidingWindowCounter, SlidingWindowCounterParameters{Limit: 10, Window: time.Minute}
	note("algorithm", counter)
	for name, p := range map[string]TokenBucketParameters{
		"bucket": {Capacity: 10, RefillTokens: 2, RefillPeriod: time.Second}, "capacity": {Capacity: 11, RefillTokens: 2, RefillPeriod: time.Second},
		"refill": {Capacity: 10, RefillTokens: 3, RefillPeriod: time.Second}, "period": {Capacity: 10, RefillTokens: 2, RefillPeriod: 2 * time.Second},
		"shifted digits": {Capacity: 102, RefillTokens: 2, RefillPeriod: time.Second},
	} {
		note(name, bucketConfig(p))
	}
	note("log", logConfig(SlidingWindowLogParameters{Limit: 10, Window: time.Minute}))
	note("log limit", logConfig(SlidingWindowLogParameters{Limit: 11, Window: time.Minute}))
	for name, p := range map[string]GCRAParameters{
		"gcra": {Limit: 2, Period: time.Second, Burst: 10}, "gcra burst": {Limit: 2, Period: time.Second, Burst: 11},
		"gcra limit": {Limit: 3, Period: time.Second, Burst: 10}, "gcra period": {Limit: 2, Period: 2 * time.Second, Burst: 10},
		"gcra, burst and limit swapped": {Limit: 10, Period: time.Second, Burst: 2},
	} {
		note(name, gcraConfig(p))
	}
	base := mustPolicy(t, goodConfig()).Fingerprint()
	if f := mustPolicy(t, edit(func(c *RateLimitPolicyConfig) { c.Revision, c.ID = 4, "other" })).Fingerprint(); f != base {
		t.Errorf("ID and revision are stored apart, and change the fingerprint to %q", f)
	}
}
