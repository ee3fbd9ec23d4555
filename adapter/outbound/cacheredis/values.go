package cacheredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// invalidArgument refuses a call that was never sent.
func invalidArgument(op string, err error) *store.Error {
	return &store.Error{Op: op, Certainty: store.NotSent, Code: store.CodeInvalidArgument, Err: err}
}

// bounded gives a context that ends within the command timeout.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) <= s.commandTimeout {
		return ctx, func() {} // Without a deadline the call is refused.
	}
	return context.WithTimeout(ctx, s.commandTimeout)
}

// value runs one command that answers a scalar, once readiness has passed.
func (s *Store) value(ctx context.Context, op string, args ...any) (store.Value, error) {
	if failure := s.gate(op); failure != nil {
		return store.Value{}, failure
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	reply, multi, failure := s.command(ctx, op, args)
	if failure != nil {
		return store.Value{}, failure
	}
	if multi || reply.Len() != 1 {
		return store.Value{}, unexpectedReply(op)
	}
	return reply.At(0), nil
}

// usable reports whether calls are let through: readiness has passed, and the store is not closed.
func (s *Store) usable() bool { return !s.closed.Load() && s.readiness.passed.Load() }

// gate refuses calls that are not let through.
func (s *Store) gate(op string) *store.Error {
	if s.usable() {
		return nil
	}
	return s.unusable(op)
}

// unusable says why calls are not let through.
func (s *Store) unusable(op string) *store.Error {
	if s.closed.Load() {
		return &store.Error{Op: op, Certainty: store.NotSent, Code: store.CodeClosed}
	}
	return &store.Error{Op: op, Certainty: store.NotSent, Code: store.CodeNotReady, Err: s.Ready()}
}

func unexpectedReply(op string) *store.Error {
	return &store.Error{Op: op, Certainty: store.Mismatched, Code: store.CodeReply, Err: errReply}
}

// Get gives a key's value; see store.Store. One GET.
func (s *Store) Get(ctx context.Context, key string) (string, error) {
	const op = "get"
	if err := store.CheckKey(key); err != nil {
		return "", invalidArgument(op, err)
	}
	value, err := s.value(ctx, op, "GET", s.prefix+key)
	return textOrNotFound(op, value, err)
}

func textOrNotFound(op string, value store.Value, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case value.Kind == store.ValueNil:
		return "", store.ErrNotFound
	case value.Kind == store.ValueText:
		return value.Text, nil
	}
	return "", unexpectedReply(op)
}

// Set stores a value; see store.Store. One SET.
func (s *Store) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	const op = "set"
	if err := store.CheckEntry(key, value, ttl); err != nil {
		return invalidArgument(op, err)
	}
	reply, err := s.value(ctx, op, "SET", s.prefix+key, value, "PX", ttl.Milliseconds())
	if err != nil {
		return err
	}
	if reply != store.Text("OK") {
		return unexpectedReply(op)
	}
	return nil
}

// SetNX stores a value where there is none; see store.Store. One SET NX.
func (s *Store) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	const op = "setnx"
	if err := store.CheckEntry(key, value, ttl); err != nil {
		return false, invalidArgument(op, err)
	}
	reply, err := s.value(ctx, op, "SET", s.prefix+key, value, "NX", "PX", ttl.Milliseconds())
	switch {
	case err != nil:
		return false, err
	case reply.Kind == store.ValueNil:
		return false, nil
	case reply == store.Text("OK"):
		return true, nil
	}
	return false, unexpectedReply(op)
}

// GetSet stores a value and gives the one before; see store.Store. One SET GET.
func (s *Store) GetSet(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	const op = "getset"
	if err := store.CheckEntry(key, value, ttl); err != nil {
		return "", invalidArgument(op, err)
	}
	before, err := s.value(ctx, op, "SET", s.prefix+key, value, "GET", "PX", ttl.Milliseconds())
	return textOrNotFound(op, before, err)
}

// IncrBy adds to an integer; see store.Store. One program.
func (s *Store) IncrBy(ctx context.Context, key string, delta int64, ttl time.Duration) (int64, error) {
	const op = "incrby"
	if err := errors.Join(store.CheckEntry(key, "", ttl), store.CheckDelta(delta)); err != nil {
		return 0, invalidArgument(op, err)
	}
	reply, err := s.Eval(ctx, store.StoreIncrByV1, []string{key}, []any{delta, ttl.Milliseconds()})
	if err != nil {
		return 0, err
	}
	switch sum := reply.At(0); {
	case sum.Kind == store.ValueInteger && store.CheckDelta(sum.Int) == nil:
		return sum.Int, nil
	case sum == store.Text("NOT_INTEGER"):
		return 0, &store.Error{Op: op, Certainty: store.Refused, Code: store.CodeNotInteger}
	case sum == store.Text("OUT_OF_RANGE"):
		return 0, &store.Error{Op: op, Certainty: store.Refused, Code: store.CodeOutOfRange}
	}
	return 0, unexpectedReply(op)
}

// Del removes keys; see store.Store. One DEL for each key, sent together: on a cluster keys of
// different slots cannot share one. Where all of them failed in one way the error says so; where some
// did, it is Uncertain.
func (s *Store) Del(ctx context.Context, keys ...string) (int64, error) {
	const op = "del"
	if err := store.CheckKeys(keys); err != nil {
		return 0, invalidArgument(op, err)
	}
	if failure := s.gate(op); failure != nil {
		return 0, failure
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if failure := s.admit(ctx, op); failure != nil {
		return 0, failure
	}
	epoch := s.dialer.epoch.Load()
	commands := make([]redis.Cmder, len(keys))
	raw := make([]*redis.RawCmd, len(keys))
	for i, key := range keys {
		raw[i] = redis.NewRawCmd(ctx, "DEL", s.prefix+key)
		commands[i] = onceCommand{raw[i]}
	}
	pipe := s.client.Pipeline()
	if err := pipe.BatchProcess(ctx, commands...); err != nil {
		return 0, transportError(op, err)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, transportError(op, err)
	}
	var removed int64
	var first *store.Error
	done, alike := 0, true
	for _, command := range raw {
		n, failure := s.removal(op, epoch, command.Val())
		switch {
		case failure == nil:
			removed += n
			done++
		case first == nil:
			first = failure
		default:
			alike = alike && failure.Certainty == first.Certainty
		}
	}
	if first != nil && (done > 0 || !alike) {
		// Some keys are gone, whatever became of the others.
		return removed, &store.Error{Op: op, Certainty: store.Uncertain, Code: first.Code, Err: first.Err}
	}
	if first != nil {
		return 0, first
	}
	return removed, nil
}

// removal reads the reply to the DEL of one key.
func (s *Store) removal(op string, epoch int64, raw []byte) (int64, *store.Error) {
	reply, _, failure := s.read(op, epoch, raw)
	if failure != nil {
		return 0, failure
	}
	if n := reply.At(0); len(raw) > 0 && raw[0] == ':' && (n == store.Integer(0) || n == store.Integer(1)) {
		return n.Int, nil
	}
	return 0, unexpectedReply(op)
}
