package memory

import (
	"errors"

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
	fields, err := tx.HashGet(key, "m", "t", "r", "l", "e")
	switch {
	case errors.Is(err, ErrWrongType):
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	case err != nil:
		return store.Reply{}, err
	}
	var before algorithm.TokenBucketState
	if !allAbsent(fields) {
		tokens, ok1 := fieldUint(fields[1], 0, capacity-1)
		remainder, ok2 := fieldUint(fields[2], 0, denominator-1)
		last, ok3 := fieldUint(fields[3], 0, algorithm.MaxNowMillis)
		expiresAt, ok4 := fieldUint(fields[4], 0, algorithm.MaxExact)
		before = algorithm.TokenBucketState{
			Present: true, Tokens: tokens, Remainder: remainder, LastRefill: last, ExpiresAt: expiresAt,
		}
		if fields[0] != store.Text(c.identity) || !ok1 || !ok2 || !ok3 || !ok4 {
			return rejected(algorithm.StatusStateIncompatible, c.now), nil
		}
	} else if tx.Exists(key) {
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	}
	d, after := p.DecideAt(rate, before, c.now, cost)
	if d.Status != algorithm.StatusAllowed {
		return replyOf(d), nil
	}
	tokens, remainder, last := decimal(after.Tokens), decimal(after.Remainder), decimal(after.LastRefill)
	if before.Present && before.ExpiresAt == after.ExpiresAt && !c.simulated {
		err = tx.HashSet(key, "t", tokens, "r", remainder, "l", last)
	} else {
		err = c.create(tx, key, after.ExpiresAt, "m", c.identity, "t", tokens, "r", remainder, "l", last,
			"e", decimal(after.ExpiresAt))
	}
	return replyOf(d), err
}
