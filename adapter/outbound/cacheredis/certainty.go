package cacheredis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// refusals are the first words of error replies by which a server says that it did not run the
// command. Every other word leaves it open.
var refusals = map[string]store.Code{
	"LOADING":     store.CodeLoading,
	"READONLY":    store.CodeReadOnly,
	"MASTERDOWN":  store.CodeMasterDown,
	"CLUSTERDOWN": store.CodeClusterDown,
	"TRYAGAIN":    store.CodeClusterDown,
	"NOAUTH":      store.CodeAuthentication,
	"WRONGPASS":   store.CodeAuthentication,
	"NOPERM":      store.CodePermission,
	"OOM":         store.CodeOutOfMemory,
	"MISCONF":     store.CodePersistence,
	"NOREPLICAS":  store.CodeReplicas,
	"BUSY":        store.CodeBusy,
	"MOVED":       store.CodeMoved,
	"ASK":         store.CodeMoved,
	"CROSSSLOT":   store.CodeMoved,
}

const (
	wordNoScript  = "NOSCRIPT"
	wordWrongType = "WRONGTYPE"
)

// replyError classifies an error reply to a command.
func replyError(op string, e *serverError) *store.Error {
	if code, ok := refusals[e.word]; ok {
		return &store.Error{Op: op, Certainty: store.Refused, Code: code, Err: e}
	}
	if e.word == wordWrongType {
		// Raised by the read, before anything was written: a program touches one key of one type.
		return &store.Error{Op: op, Certainty: store.Mismatched, Code: store.CodeWrongType, Err: e}
	}
	return &store.Error{Op: op, Certainty: store.Uncertain, Code: store.CodeProgramFailed, Err: e}
}

// greetingError is a new connection that was refused by the checks of this package. It has no
// Unwrap, for the same reason as connError.
type greetingError struct {
	code  store.Code
	cause error
}

func (e *greetingError) Error() string { return "greeting: " + e.cause.Error() }

// transportError classifies what go-redis gives instead of a reply. Commands are sent as raw ones,
// so that an error reply to them is a value; an error reply here is one to a greeting.
func transportError(op string, err error) *store.Error {
	result := &store.Error{Op: op, Certainty: store.NotSent, Err: err}
	var ce *connError
	var ge *greetingError
	var re redis.Error
	switch {
	case errors.As(err, &ce):
		result.Code = ce.code()
		switch {
		case ce.notSent():
		case ce.Is(errReply):
			result.Certainty, result.Code = store.Mismatched, store.CodeReply
		default:
			result.Certainty = store.Uncertain
		}
	case errors.As(err, &ge):
		result.Code = ge.code
	case errors.As(err, &re):
		result.Code = store.CodeHandshake
		word := firstWord([]byte(re.Error()))
		if code, ok := refusals[word]; ok {
			result.Code = code
		}
		result.Err = &serverError{word: word}
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		result.Code = store.CodePoolExhausted
	case errors.Is(err, errQueueFull):
		result.Code = store.CodeQueueFull
	case errors.Is(err, errQueueTimeout):
		result.Code = store.CodeDeadline
	case errors.Is(err, redis.ErrClosed):
		result.Code = store.CodeClosed
	// A context ends a call only while it waits to be sent: once a connection is there, the
	// connection's own deadline rules, and its failure is a connError.
	case errors.Is(err, context.DeadlineExceeded):
		result.Code = store.CodeDeadline
	case errors.Is(err, context.Canceled):
		result.Code = store.CodeCanceled
	default:
		result.Certainty, result.Code = store.Uncertain, store.CodeConnectionLost
	}
	return result
}
