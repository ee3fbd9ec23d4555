package store

import (
	"errors"
	"fmt"
)

// ErrNotFound means that a key does not exist. It comes bare, never inside an *Error: the store did
// answer.
var ErrNotFound = errors.New("store: not found")

// Certainty says what is known about the effect of a failed operation.
type Certainty uint8

const (
	// CertaintyInvalid is the invalid zero value.
	CertaintyInvalid Certainty = iota
	// NotSent means that no byte of the command left this process: nothing was changed.
	NotSent
	// Refused means that the server answered that it did not run the command: nothing was changed.
	Refused
	// Uncertain means that something was sent and it is not known what became of it, or that the
	// program failed while it ran: state may or may not have been changed.
	Uncertain
	// Mismatched means that the server answered with what the program cannot say, or that the state
	// is of another type. The store and this program do not fit together.
	Mismatched
)

// Code is the closed set of reasons why an operation failed. Callers act on it, never on text.
type Code uint8

const (
	// CodeInvalid is the invalid zero value.
	CodeInvalid Code = iota

	// CodeInvalidArgument (NotSent): the call itself was malformed.
	CodeInvalidArgument
	// CodeUnknownProgram (NotSent): the store does not know the program.
	CodeUnknownProgram
	// CodeNotReady (NotSent): the store has not yet been found usable.
	CodeNotReady
	// CodeClosed (NotSent): the store was closed.
	CodeClosed
	// CodeCanceled (NotSent or Uncertain): the caller went away.
	CodeCanceled
	// CodeDeadline (NotSent or Uncertain): the time was over.
	CodeDeadline
	// CodePoolExhausted (NotSent): no connection came free in time.
	CodePoolExhausted
	// CodeQueueFull (NotSent): too many commands wait.
	CodeQueueFull
	// CodeConnect (NotSent): no connection could be made.
	CodeConnect
	// CodeTLS (NotSent): the TLS handshake failed.
	CodeTLS
	// CodeHandshake (NotSent): the server did not complete the greeting of a new connection.
	CodeHandshake
	// CodeAuthentication (NotSent or Refused): NOAUTH, WRONGPASS, or another user than configured.
	CodeAuthentication
	// CodeServerVersion (NotSent): the server of a new connection is older than the programs need.
	CodeServerVersion
	// CodeConnectionLost (NotSent or Uncertain): the connection broke.
	CodeConnectionLost
	// CodeCapacity (Refused): a bound on the number of keys was reached.
	CodeCapacity

	// CodeNotInteger (Refused): the value to increment is not an integer.
	CodeNotInteger
	// CodeOutOfRange (Refused): the incremented value would leave -(2^53-1)..2^53-1.
	CodeOutOfRange

	// CodeLoading (Refused): LOADING.
	CodeLoading
	// CodeReadOnly (Refused): READONLY.
	CodeReadOnly
	// CodeMasterDown (Refused): MASTERDOWN.
	CodeMasterDown
	// CodeClusterDown (Refused): CLUSTERDOWN or TRYAGAIN.
	CodeClusterDown
	// CodeMoved (Refused): MOVED, ASK or CROSSSLOT.
	CodeMoved
	// CodePermission (Refused): NOPERM.
	CodePermission
	// CodeOutOfMemory (Refused): OOM.
	CodeOutOfMemory
	// CodePersistence (Refused): MISCONF.
	CodePersistence
	// CodeReplicas (Refused): NOREPLICAS.
	CodeReplicas
	// CodeBusy (Refused): BUSY.
	CodeBusy

	// CodeProgramFailed (Uncertain): any other error reply.
	CodeProgramFailed

	// CodeWrongType (Mismatched): WRONGTYPE, or a value of a form that is not this program's; nothing was
	// changed.
	CodeWrongType
	// CodeReply (Mismatched): the reply is not what the protocol or the program allows.
	CodeReply
)

var codeWords = [...]string{
	CodeInvalid: "invalid", CodeInvalidArgument: "invalid-argument", CodeUnknownProgram: "unknown-program",
	CodeNotReady: "not-ready", CodeClosed: "closed", CodeCanceled: "canceled", CodeDeadline: "deadline", CodePoolExhausted: "pool-exhausted",
	CodeQueueFull: "queue-full", CodeConnect: "connect", CodeTLS: "tls", CodeHandshake: "handshake",
	CodeAuthentication: "authentication", CodeServerVersion: "server-version", CodeConnectionLost: "connection-lost",
	CodeCapacity: "capacity", CodeNotInteger: "not-integer", CodeOutOfRange: "out-of-range", CodeLoading: "loading", CodeReadOnly: "read-only", CodeMasterDown: "master-down",
	CodeClusterDown: "cluster-down", CodeMoved: "moved", CodePermission: "permission", CodeOutOfMemory: "out-of-memory",
	CodePersistence: "persistence", CodeReplicas: "replicas", CodeBusy: "busy", CodeProgramFailed: "program-failed",
	CodeWrongType: "wrong-type", CodeReply: "reply",
}

// String gives the code's word.
func (c Code) String() string {
	if int(c) >= len(codeWords) {
		return codeWords[CodeInvalid]
	}
	return codeWords[c]
}

var certaintyWords = [...]string{
	CertaintyInvalid: "invalid", NotSent: "not-sent", Refused: "refused", Uncertain: "uncertain", Mismatched: "mismatched",
}

// String gives the certainty's word.
func (c Certainty) String() string {
	if int(c) >= len(certaintyWords) {
		return certaintyWords[CertaintyInvalid]
	}
	return certaintyWords[c]
}

// Error is the failure of one operation. Its text holds no key and no argument.
type Error struct {
	Op        string // such as "eval rate-fixed-window-v1"
	Certainty Certainty
	Code      Code
	Err       error // the cause; may be nil
}

// Error gives operation, certainty, code and cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("store: %s: %s (%s)", e.Op, e.Code, e.Certainty)
	}
	return fmt.Sprintf("store: %s: %s (%s): %v", e.Op, e.Code, e.Certainty, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
