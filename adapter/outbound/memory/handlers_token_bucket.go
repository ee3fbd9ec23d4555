package memory

import (
	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// rateTokenBucketV1 is rate-token-bucket-v1.
func rateTokenBucketV1(tx *Tx, keys, args []string) (store.Reply, error) {
	if len(keys) != 1 || len(args) != 8 {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	c, ok := readCommon(tx, "1:tb:", args)
	capacity, okCapacity := parseUint(args[1], 1, algorithm.MaxExact)
	numerator, okNumerator := parseUint(args[2], 1, algorithm.MaxExact)
	denominator, okDenominator := parseUint(args[3], 1, algorithm.MaxHorizonMillis)
	cost, okCost := parseUint(args[6], 1, capacity)
	if !ok || !okCapacity || !okNumerator || !okDenominator || !okCost ||
		product(denominator, numerator+1) > algorithm.MaxExact ||
		capacity+numerator > algorithm.MaxExact-1 ||
		product(capacity/numerator, denominator) > algorithm.MaxHorizonMillis {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	key := keys[0]
	// The wire carries the rate as it is used; it need not be in lowest terms.
	rate := algorithm.Rate{Numerator: numerator, Denominator: denominator}
	p := algorithm.TokenBucket{Capacity: capacity, RefillTokens: numerator, RefillPeriodMillis: denominator, Clock: c.clock}
	var before algorithm.TokenBucketState
	present, ok, err := c.readState(tx, key, &before.Tokens, &before.Remainder, &before.LastRefill, &before.ExpiresAt)
	if err != nil {
		return store.Reply{}, err
	}
	before.Present = present
	if !ok || before.Tokens >= capacity || before.Remainder >= denominator || before.LastRefill > algorithm.MaxNowMillis {
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	}
	d, after := p.DecideAt(rate, before, c.now, cost)
	if d.Status != algorithm.StatusAllowed {
		return replyOf(d), nil
	}
	err = c.writeState(tx, key, before.Present && before.ExpiresAt == after.ExpiresAt, after.ExpiresAt,
		after.Tokens, after.Remainder, after.LastRefill, after.ExpiresAt)
	return replyOf(d), err
}
