package memory

import (
	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// rateGCRAV1 is rate-gcra-v1.
func rateGCRAV1(tx *Tx, keys, args []string) (store.Reply, error) {
	if len(keys) != 1 || len(args) != 8 {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	c, ok := readCommon(tx, "1:gc:", args)
	limit, okLimit := parseUint(args[1], 1, algorithm.MaxExact)
	period, okPeriod := parseUint(args[2], 1, algorithm.MaxHorizonMillis)
	burst, okBurst := parseUint(args[3], 1, algorithm.MaxExact)
	cost, okCost := parseUint(args[6], 1, burst)
	if !ok || !okLimit || !okPeriod || !okBurst || !okCost ||
		product(limit, period+1) > algorithm.MaxExact ||
		product(burst/limit, period) > algorithm.MaxHorizonMillis {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	key := keys[0]
	// The wire carries the rate as it is used; it need not be in lowest terms.
	rate := algorithm.Rate{Numerator: limit, Denominator: period}
	tolerance := rate.Span(burst)
	p := algorithm.GCRA{Limit: limit, PeriodMillis: period, Burst: burst, Clock: c.clock}
	var before algorithm.GCRAState
	present, ok, err := c.readState(tx, key, &before.TAT.Millis, &before.TAT.Fraction, &before.LastObserved, &before.ExpiresAt)
	if err != nil {
		return store.Reply{}, err
	}
	before.Present = present
	if !ok || !p.ValidAt(rate, tolerance, before) {
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	}
	d, after := p.DecideAt(rate, tolerance, before, c.now, cost)
	if d.Status != algorithm.StatusAllowed {
		return replyOf(d), nil
	}
	err = c.writeState(tx, key, before.Present && before.ExpiresAt == after.ExpiresAt, after.ExpiresAt,
		after.TAT.Millis, after.TAT.Fraction, after.LastObserved, after.ExpiresAt)
	return replyOf(d), err
}
