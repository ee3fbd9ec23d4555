package cacheredis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

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
	epoch := s.dialer.epoch.Load()
	raw := redis.NewRawCmd(ctx, args...)
	if err := s.client.Process(ctx, onceCommand{raw}); err != nil {
		return reply, false, transportError(op, err)
	}
	return s.read(op, epoch, raw.Val())
}

// read parses the reply to a command that was sent in an epoch, and classifies an error reply.
func (s *Store) read(op string, epoch int64, raw []byte) (store.Reply, bool, *store.Error) {
	reply, multi, err := parseReply(raw)
	if err == nil {
		return reply, multi, nil
	}
	var se *serverError
	if errors.As(err, &se) {
		failure := replyError(op, se)
		if failure.Code == store.CodeReadOnly {
			// The server was demoted. Connections made before this moment lead to it and not to its
			// successor. Whoever hears it first says so for all that were sent before.
			s.dialer.epoch.CompareAndSwap(epoch, epoch+1)
		}
		return reply, multi, failure
	}
	return reply, multi, &store.Error{Op: op, Certainty: store.Mismatched, Code: store.CodeReply, Err: err}
}

// eval runs a program whether or not readiness has passed.
func (s *Store) eval(ctx context.Context, descriptor *store.Program, keys []string, args []any) (store.Reply, error) {
	p, ok := s.programs[descriptor]
	if !ok {
		return store.Reply{}, &store.Error{Op: operation(descriptor), Certainty: store.NotSent, Code: store.CodeUnknownProgram}
	}
	f, failure := s.prepare(p, keys, args)
	if failure != nil {
		return store.Reply{}, failure
	}
	defer p.release(f)
	reply, multi, failure := s.send(ctx, p, f)
	if failure != nil && isNoScript(failure) {
		reply, multi, failure = s.sendSource(ctx, p, f)
	}
	switch want := len(p.Descriptor.Reply); {
	case failure != nil:
		return store.Reply{}, failure
	// A program that answers one value answers a scalar, any other a multi reply of as many.
	case multi != (want > 1), multi && reply.Len() != want:
		return store.Reply{}, unexpectedReply(p.op)
	}
	return reply, nil
}

// send sends EVALSHA, alone or with others.
func (s *Store) send(ctx context.Context, p *program, f *flight) (store.Reply, bool, *store.Error) {
	if failure := s.admit(ctx, p.op); failure != nil {
		return store.Reply{}, false, failure
	}
	epoch := s.dialer.epoch.Load()
	var err error
	if s.coalescer != nil {
		deadline, _ := ctx.Deadline() // admit has seen it.
		err = s.coalescer.send(ctx, f, deadline, gone(ctx))
	} else {
		err = s.client.Process(ctx, f)
	}
	if err == nil {
		return s.read(p.op, epoch, f.reply.Bytes())
	}
	if f.state.Load() == flightTaken {
		// The batch broke, and every command of it has the error. Where a reply had come in whole
		// before, it stands.
		if _, _, incomplete := parseReply(f.reply.Bytes()); !errors.Is(incomplete, errReply) {
			return s.read(p.op, epoch, f.reply.Bytes())
		}
	}
	return store.Reply{}, false, transportError(p.op, err)
}

// sendSource sends EVAL with the exact source, once: the server has answered NOSCRIPT to EVALSHA, and
// so has run nothing.
func (s *Store) sendSource(ctx context.Context, p *program, f *flight) (store.Reply, bool, *store.Error) {
	s.readiness.noScript.Add(1)
	command := append([]any(nil), f.args...)
	command[0], command[1] = "EVAL", p.Source
	return s.command(ctx, p.op, command)
}

func isNoScript(failure *store.Error) bool {
	var se *serverError
	return errors.As(failure.Err, &se) && se.word == wordNoScript
}
