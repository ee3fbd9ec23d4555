package memory

import (
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
	var before algorithm.SlidingCounterState
	present, ok, err := c.readState(tx, key, &before.Window, &before.Count, &before.Previous, &before.PreviousCount, &before.LastObserved)
	if err != nil {
		return store.Reply{}, err
	}
	before.Present = present
	if !ok || !p.Valid(before) {
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	}
	d, after := p.Decide(before, c.now, cost)
	if d.Status != algorithm.StatusAllowed {
		return replyOf(d), nil
	}
	err = c.writeState(tx, key, before.Present && before.Window == after.Window, after.ExpiresAt,
		after.Window, after.Count, after.Previous, after.PreviousCount, after.LastObserved)
	return replyOf(d), err
}
