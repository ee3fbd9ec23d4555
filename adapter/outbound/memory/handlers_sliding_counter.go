package memory

import (
	"errors"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// rateSlidingCounterV1 is rate-sliding-counter-v1.
func rateSlidingCounterV1(tx *Tx, keys, args []string) (store.Reply, error) {
	if len(keys) != 1 || len(args) != 7 {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	c, ok := readCommon(tx, "1:sc:", args)
	limit, okLimit := parseUint(args[1], 1, algorithm.MaxSlidingCounterLimit)
	window, okWindow := parseUint(args[2], 1, algorithm.MaxHorizonMillis)
	cost, okCost := parseUint(args[5], 1, limit)
	if !ok || !okLimit || !okWindow || !okCost {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	key := keys[0]
	p := algorithm.SlidingCounter{Limit: limit, WindowMillis: window, Clock: c.clock}
	fields, err := tx.HashGet(key, "m", "l", "w", "c", "pw", "pc")
	switch {
	case errors.Is(err, ErrWrongType):
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	case err != nil:
		return store.Reply{}, err
	}
	var before algorithm.SlidingCounterState
	if !allAbsent(fields) {
		last, ok1 := fieldUint(fields[1], 0, algorithm.MaxNowMillis)
		id, ok2 := fieldUint(fields[2], 0, algorithm.MaxNowMillis)
		count, ok3 := fieldUint(fields[3], 1, limit)
		previous, ok4 := fieldUint(fields[4], 0, algorithm.MaxNowMillis)
		previousCount, ok5 := fieldUint(fields[5], 0, limit)
		before = algorithm.SlidingCounterState{
			Present: true, LastObserved: last, Window: id, Count: count, Previous: previous, PreviousCount: previousCount,
		}
		if fields[0] != store.Text(c.identity) || !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !p.Valid(before) {
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
		err = tx.HashSet(key, "l", decimal(after.LastObserved), "c", decimal(after.Count))
	} else {
		err = c.create(tx, key, after.ExpiresAt, "m", c.identity, "l", decimal(after.LastObserved),
			"w", decimal(after.Window), "c", decimal(after.Count),
			"pw", decimal(after.Previous), "pc", decimal(after.PreviousCount))
	}
	return replyOf(d), err
}
