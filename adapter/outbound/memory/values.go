package memory

import (
	"context"
	"errors"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// oversized is the failure of a read that finds a text longer than a Store may give: a handler of
// somebody's own can have stored it.
func oversized(op string) *store.Error {
	return &store.Error{Op: op, Certainty: store.Mismatched, Code: store.CodeReply, Err: errReply}
}

// Get gives a key's value; see store.Store.
func (s *Store) Get(ctx context.Context, key string) (string, error) {
	const op = "get"
	if err := store.CheckKey(key); err != nil {
		return "", invalidArgument(op, err)
	}
	var value string
	var found bool
	err := s.run(ctx, op, func(tx *Tx) (err error) {
		value, found, err = tx.GetString(s.prefix + key)
		return err
	})
	return textOrNotFound(op, value, found, err)
}

func textOrNotFound(op, value string, found bool, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", store.ErrNotFound
	case len(value) > store.MaxTextBytes:
		return "", oversized(op)
	}
	return value, nil
}

// Set stores a value; see store.Store.
func (s *Store) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	const op = "set"
	if err := store.CheckEntry(key, value, ttl); err != nil {
		return invalidArgument(op, err)
	}
	return s.run(ctx, op, func(tx *Tx) error {
		return tx.SetString(s.prefix+key, value, ttl.Milliseconds())
	})
}

// SetNX stores a value where there is none; see store.Store.
func (s *Store) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	const op = "setnx"
	if err := store.CheckEntry(key, value, ttl); err != nil {
		return false, invalidArgument(op, err)
	}
	stored := false
	err := s.run(ctx, op, func(tx *Tx) error {
		if tx.Exists(s.prefix + key) {
			return nil
		}
		stored = true
		return tx.SetString(s.prefix+key, value, ttl.Milliseconds())
	})
	return stored && err == nil, err
}

// GetSet stores a value and gives the one before; see store.Store.
func (s *Store) GetSet(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	const op = "getset"
	if err := store.CheckEntry(key, value, ttl); err != nil {
		return "", invalidArgument(op, err)
	}
	var before string
	var found bool
	err := s.run(ctx, op, func(tx *Tx) (err error) {
		if before, found, err = tx.GetString(s.prefix + key); err != nil {
			return err
		}
		return tx.SetString(s.prefix+key, value, ttl.Milliseconds())
	})
	return textOrNotFound(op, before, found, err)
}

// IncrBy adds to an integer; see store.Store. It runs the program of that name.
func (s *Store) IncrBy(ctx context.Context, key string, delta int64, ttl time.Duration) (int64, error) {
	const op = "incrby"
	if err := errors.Join(store.CheckEntry(key, "", ttl), store.CheckDelta(delta)); err != nil {
		return 0, invalidArgument(op, err)
	}
	reply, err := s.Eval(ctx, store.StoreIncrByV1, []string{key}, []any{delta, ttl.Milliseconds()})
	if err != nil {
		return 0, err
	}
	switch sum := reply.At(0); sum {
	case store.Text(wordNotInteger):
		return 0, &store.Error{Op: op, Certainty: store.Refused, Code: store.CodeNotInteger}
	case store.Text(wordOutOfRange):
		return 0, &store.Error{Op: op, Certainty: store.Refused, Code: store.CodeOutOfRange}
	default:
		return sum.Int, nil
	}
}

// Del removes keys; see store.Store.
func (s *Store) Del(ctx context.Context, keys ...string) (int64, error) {
	const op = "del"
	if err := store.CheckKeys(keys); err != nil {
		return 0, invalidArgument(op, err)
	}
	var removed int64
	err := s.run(ctx, op, func(tx *Tx) error {
		for _, key := range keys {
			removed += tx.Delete(s.prefix + key)
		}
		return nil
	})
	return removed, err
}
