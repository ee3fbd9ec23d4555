package memory

import (
	"errors"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// readState reads the state of a rate program over a hash: one field, whose name is the identity and
// whose value is as many integers as into has room for, with one space between. It reports whether a
// state is there, and whether what stands at the key may be decided over: a state in its form, or no
// key at all.
func (c *common) readState(tx *Tx, key string, into ...*int64) (present, ok bool, err error) {
	fields, err := tx.HashGet(key, c.identity)
	switch {
	case errors.Is(err, ErrWrongType):
		return false, false, nil
	case err != nil:
		return false, false, err
	case fields[0].Kind != store.ValueText:
		return false, !tx.Exists(key), nil
	}
	rest := fields[0].Text
	for i, n := range into {
		text, after, more := strings.Cut(rest, " ")
		if more == (i == len(into)-1) {
			return true, false, nil
		}
		if *n, ok = parseUint(text, 0, algorithm.MaxExact); !ok {
			return true, false, nil
		}
		rest = after
	}
	return true, true, nil
}

// writeState stores a state, which goes on where its lifetime need not move.
func (c *common) writeState(tx *Tx, key string, goesOn bool, expiresAt int64, numbers ...int64) error {
	var value strings.Builder
	for i, n := range numbers {
		if i > 0 {
			value.WriteByte(' ')
		}
		value.WriteString(decimal(n))
	}
	if goesOn && !c.simulated {
		return tx.HashSet(key, c.identity, value.String())
	}
	return c.create(tx, key, expiresAt, c.identity, value.String())
}
