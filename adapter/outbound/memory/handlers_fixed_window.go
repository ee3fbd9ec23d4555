package memory

import (
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
	var before algorithm.FixedWindowState
	present, ok, err := c.readState(tx, key, &before.Window, &before.Consumed, &before.LastObserved)
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
		after.Window, after.Consumed, after.LastObserved)
	return replyOf(d), err
}
