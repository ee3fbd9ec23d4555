package memory

import (
	"errors"

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
	fields, err := tx.HashGet(key, "m", "a", "f", "l", "e")
	switch {
	case errors.Is(err, ErrWrongType):
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	case err != nil:
		return store.Reply{}, err
	}
	var before algorithm.GCRAState
	if !allAbsent(fields) {
		arrival, ok1 := fieldUint(fields[1], 0, algorithm.MaxExact)
		fraction, ok2 := fieldUint(fields[2], 0, limit-1)
		last, ok3 := fieldUint(fields[3], 0, algorithm.MaxNowMillis)
		expiresAt, ok4 := fieldUint(fields[4], 0, algorithm.MaxExact)
		before = algorithm.GCRAState{
			Present: true, TAT: algorithm.Span{Millis: arrival, Fraction: fraction}, LastObserved: last, ExpiresAt: expiresAt,
		}
		if fields[0] != store.Text(c.identity) || !ok1 || !ok2 || !ok3 || !ok4 || !p.ValidAt(rate, tolerance, before) {
			return rejected(algorithm.StatusStateIncompatible, c.now), nil
		}
	} else if tx.Exists(key) {
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	}
	d, after := p.DecideAt(rate, tolerance, before, c.now, cost)
	if d.Status != algorithm.StatusAllowed {
		return replyOf(d), nil
	}
	arrival, fraction, last := decimal(after.TAT.Millis), decimal(after.TAT.Fraction), decimal(after.LastObserved)
	if before.Present && before.ExpiresAt == after.ExpiresAt && !c.simulated {
		err = tx.HashSet(key, "a", arrival, "f", fraction, "l", last)
	} else {
		err = c.create(tx, key, after.ExpiresAt, "m", c.identity, "a", arrival, "f", fraction, "l", last,
			"e", decimal(after.ExpiresAt))
	}
	return replyOf(d), err
}
