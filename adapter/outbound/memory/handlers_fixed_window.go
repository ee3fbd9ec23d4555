package memory

import (
	"errors"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// rateFixedWindowV1 is rate-fixed-window-v1.
func rateFixedWindowV1(tx *Tx, keys, args []string) (store.Reply, error) {
	if len(keys) != 1 || len(args) != 7 {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	c, ok := readCommon(tx, "1:fw:", args)
	limit, okLimit := parseUint(args[1], 1, algorithm.MaxExact)
	window, okWindow := parseUint(args[2], 1, algorithm.MaxHorizonMillis)
	cost, okCost := parseUint(args[5], 1, limit)
	if !ok || !okLimit || !okWindow || !okCost {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	key := keys[0]
	p := algorithm.FixedWindow{Limit: limit, WindowMillis: window, Clock: c.clock}
	fields, err := tx.HashGet(key, "m", "l", "w", "c")
	switch {
	case errors.Is(err, ErrWrongType):
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	case err != nil:
		return store.Reply{}, err
	}
	var before algorithm.FixedWindowState
	if !allAbsent(fields) {
		last, ok1 := fieldUint(fields[1], 0, algorithm.MaxNowMillis)
		id, ok2 := fieldUint(fields[2], 0, algorithm.MaxNowMillis)
		consumed, ok3 := fieldUint(fields[3], 1, limit)
		before = algorithm.FixedWindowState{Present: true, LastObserved: last, Window: id, Consumed: consumed}
		if fields[0] != store.Text(c.identity) || !ok1 || !ok2 || !ok3 || !p.Valid(before) {
			return rejected(algorithm.StatusStateIncompatible, c.now), nil
		}
	} else if tx.Exists(key) {
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	}
	d, after := p.Decide(before, c.now, cost)
	if d.Status != algorithm.StatusAllowed {
		return replyOf(d), nil
	}
	if before.Present && before.Window == after.Window && !c.simulated {
		err = tx.HashSet(key, "l", decimal(after.LastObserved), "c", decimal(after.Consumed))
	} else {
		err = c.create(tx, key, after.ExpiresAt, "m", c.identity, "l", decimal(after.LastObserved),
			"w", decimal(after.Window), "c", decimal(after.Consumed))
	}
	return replyOf(d), err
}
