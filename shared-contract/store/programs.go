package store

import "slices"

// Programs lists every program described in this package.
func Programs() []*Program {
	return slices.Concat(RatePrograms(), BreakerPrograms(), ScalarPrograms(), CachePrograms())
}

// RatePrograms lists the programs of the rate limiter.
func RatePrograms() []*Program {
	return []*Program{RateFixedWindowV1, RateSlidingCounterV1, RateTokenBucketV1, RateGCRAV1, RateSlidingLogV1}
}

// ScalarPrograms lists the programs behind the methods of a Store.
func ScalarPrograms() []*Program {
	return []*Program{StoreIncrByV1}
}
