package memory

import (
	"errors"
	"math"
	"strconv"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// What store-incrby answers instead of a sum.
const (
	wordNotInteger = "NOT_INTEGER"
	wordOutOfRange = "OUT_OF_RANGE"
)

// storeIncrByV1 is store-incrby-v1.
func storeIncrByV1(tx *Tx, keys, args []string) (store.Reply, error) {
	word := func(w string) (store.Reply, error) { return store.NewReply(store.Text(w)) }
	if len(keys) == 0 || len(args) == 0 {
		return store.Reply{}, errors.New("memory: too few keys or arguments") // What Lua raises for a nil.
	}
	key := keys[0]
	delta, ok := canonicalInteger(args[0], algorithm.MaxExact)
	text, found, err := tx.GetString(key)
	if err != nil {
		return store.Reply{}, err
	}
	var value int64
	if found {
		stored, okStored := canonicalInteger(text, algorithm.MaxExact)
		value, ok = stored, ok && okStored
	}
	if !ok {
		return word(wordNotInteger)
	}
	sum := value + delta
	if sum > algorithm.MaxExact || sum < -algorithm.MaxExact {
		return word(wordOutOfRange)
	}
	if found {
		err = tx.SetStringKeepTTL(key, decimal(sum))
	} else {
		// The program leaves it to SET to judge the lifetime.
		var ttl int64
		valid := len(args) > 1
		if valid {
			ttl, valid = canonicalInteger(args[1], math.MaxInt64)
		}
		if !valid || ttl < 1 || ttl > math.MaxInt64-tx.NowMillis() {
			return store.Reply{}, errors.New("memory: invalid expire time")
		}
		err = tx.SetString(key, decimal(sum), ttl)
	}
	if err != nil {
		return store.Reply{}, err
	}
	return store.NewReply(store.Integer(sum))
}

// canonicalInteger reads the one decimal form of an integer in -most..most: no sign before a positive
// one or zero, no leading zero.
func canonicalInteger(text string, most int64) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return n, n >= -most && n <= most
}
