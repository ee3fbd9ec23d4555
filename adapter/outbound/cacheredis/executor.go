package cacheredis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// disabledNotifications turns off the maintenance notifications of go-redis: they would send a
// command of their own on each new connection and move connections by themselves.
func disabledNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// onceCommand is a raw command that go-redis never sends again.
type onceCommand struct{ *redis.RawCmd }

// NoRetry tells go-redis not to send the command a second time.
func (onceCommand) NoRetry() bool { return true }

func operation(program *store.Program) string {
	if program == nil {
		return "eval"
	}
	return "eval " + program.ID()
}

// admit refuses what must not be sent: after Close, after the deadline, or without one.
func (s *Store) admit(ctx context.Context, op string) *store.Error {
	if s.closed.Load() {
		return &store.Error{Op: op, Certainty: store.NotSent, Code: store.CodeClosed}
	}
	if err := ctx.Err(); err != nil {
		code := store.CodeDeadline
		if errors.Is(err, context.Canceled) {
			code = store.CodeCanceled
		}
		return &store.Error{Op: op, Certainty: store.NotSent, Code: code, Err: err}
	}
	if _, ok := ctx.Deadline(); !ok {
		return invalidArgument(op, errors.New("no deadline"))
	}
	return nil
}

// command sends one command and reads its reply. multi tells whether the reply was an array.
func (s *Store) command(ctx context.Context, op string, args []any) (reply store.Reply, multi bool, failure *store.Error) {
	if failure := s.admit(ctx, op); failure != nil {
		return reply, false, failure
	}
	raw := redis.NewRawCmd(ctx, args...)
	if err := s.client.Process(ctx, onceCommand{raw}); err != nil {
		return reply, false, transportError(op, err)
	}
	multi = len(raw.Val()) > 0 && raw.Val()[0] == '*'
	reply, failure = s.read(op, raw.Val())
	return reply, multi, failure
}

// read parses the reply to a command and classifies an error reply.
func (s *Store) read(op string, raw []byte) (store.Reply, *store.Error) {
	reply, _, err := parseReply(raw)
	if err == nil {
		return reply, nil
	}
	var se *serverError
	if errors.As(err, &se) {
		failure := replyError(op, se)
		if failure.Code == store.CodeReadOnly {
			// The server was demoted. Connections made before this moment lead to it and not to its
			// successor.
			s.dialer.epoch.Add(1)
		}
		return reply, failure
	}
	return reply, &store.Error{Op: op, Certainty: store.Mismatched, Code: store.CodeReply, Err: err}
}

// eval runs a program whether or not readiness has passed.
func (s *Store) eval(ctx context.Context, descriptor *store.Program, keys []string, args []any) (store.Reply, error) {
	program, ok := s.programs[descriptor]
	if !ok {
		return store.Reply{}, &store.Error{Op: operation(descriptor), Certainty: store.NotSent, Code: store.CodeUnknownProgram}
	}
	refuse := func(format string, args ...any) (store.Reply, error) {
		return store.Reply{}, &store.Error{
			Op: operation(descriptor), Certainty: store.NotSent, Code: store.CodeInvalidArgument, Err: fmt.Errorf(format, args...),
		}
	}
	if len(keys) != descriptor.Keys || len(args) != len(descriptor.Args) {
		return refuse("%d keys and %d arguments, want %d and %d", len(keys), len(args), descriptor.Keys, len(descriptor.Args))
	}
	command := make([]any, 0, 3+len(keys)+len(args))
	command = append(command, "EVALSHA", program.SHA1, len(keys))
	for _, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return refuse("%w", err)
		}
		command = append(command, s.prefix+key)
	}
	clock := descriptor.ClockIndex()
	for i, arg := range args {
		if i == clock {
			now, ok := s.clockArgument()
			if !ok {
				return refuse("the caller's clock is %d, out of range", now)
			}
			command = append(command, now)
			continue
		}
		switch arg.(type) {
		case string, int64:
			command = append(command, arg)
		default:
			return refuse("argument %d is a %T, want string or int64", i+1, arg)
		}
	}
	if len(descriptor.Reply) == 1 {
		return s.scalar(ctx, program, command)
	}
	return s.structured(ctx, program, command)
}

// scalar runs a program that answers one value.
func (s *Store) scalar(ctx context.Context, program lua.Program, command []any) (store.Reply, error) {
	reply, multi, failure := s.run(ctx, program, command)
	if failure != nil {
		return store.Reply{}, failure
	}
	if multi {
		return store.Reply{}, mismatchedReply(program)
	}
	return reply, nil
}

// structured runs a program that answers several values: a bounded multi reply.
func (s *Store) structured(ctx context.Context, program lua.Program, command []any) (store.Reply, error) {
	reply, multi, failure := s.run(ctx, program, command)
	if failure != nil {
		return store.Reply{}, failure
	}
	if !multi || reply.Len() != len(program.Descriptor.Reply) {
		return store.Reply{}, mismatchedReply(program)
	}
	return reply, nil
}

func mismatchedReply(program lua.Program) *store.Error {
	return &store.Error{
		Op: operation(program.Descriptor), Certainty: store.Mismatched, Code: store.CodeReply, Err: errReply,
	}
}

// run sends EVALSHA and, where the server answers NOSCRIPT and so has run nothing, EVAL with the
// exact source, once.
func (s *Store) run(ctx context.Context, program lua.Program, command []any) (store.Reply, bool, *store.Error) {
	op := operation(program.Descriptor)
	reply, multi, failure := s.command(ctx, op, command)
	if failure == nil || !isNoScript(failure) {
		return reply, multi, failure
	}
	s.readiness.noScript.Add(1)
	withSource := append([]any(nil), command...)
	withSource[0], withSource[1] = "EVAL", program.Source
	reply, multi, failure = s.command(ctx, op, withSource)
	return reply, multi, failure
}

func isNoScript(failure *store.Error) bool {
	var se *serverError
	return errors.As(failure.Err, &se) && se.word == wordNoScript
}
