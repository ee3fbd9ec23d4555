package fallback

import (
	"context"
	"errors"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Reach says what a failure tells about a store.
type Reach uint8

const (
	// ReachInvalid is the invalid zero value.
	ReachInvalid Reach = iota
	// Answered means that the store is there, whatever it said.
	Answered
	// Gone means that it is not, and that the call did not run.
	Gone
	// Lost means that it is not, and that it is not known whether the call ran.
	Lost
	// Ended means that the caller's own time was over or the caller left, which tells nothing.
	Ended
)

// Unreachable judges the outcome of a call that was made with ctx.
func Unreachable(ctx context.Context, err error) Reach {
	var failure *store.Error
	if !errors.As(err, &failure) {
		return Answered
	}
	switch failure.Certainty {
	case store.NotSent, store.Refused:
		if gone(failure.Code) {
			return ended(ctx, failure.Code, Gone)
		}
	case store.Uncertain:
		// A program that failed while it ran was answered.
		if failure.Code == store.CodeDeadline || failure.Code == store.CodeConnectionLost || failure.Code == store.CodeCanceled {
			return ended(ctx, failure.Code, Lost)
		}
	case store.Mismatched, store.CertaintyInvalid:
	}
	return Answered
}

// ended is reach, unless the caller's own end is enough to explain the failure.
func ended(ctx context.Context, code store.Code, reach Reach) Reach {
	if code == store.CodeCanceled || code == store.CodeDeadline && ctx.Err() != nil {
		return Ended
	}
	return reach
}

// gone tells the codes, of calls that did not run, that mean that nobody serves.
func gone(code store.Code) bool {
	switch code {
	case store.CodeConnect, store.CodeTLS, store.CodeHandshake, store.CodeConnectionLost, // Nobody to speak with.
		store.CodePoolExhausted, store.CodeQueueFull, store.CodeDeadline, store.CodeCanceled, // Nobody in time.
		store.CodeNotReady, store.CodeLoading, store.CodeBusy, // Not now.
		store.CodeReadOnly, store.CodeMasterDown, store.CodeClusterDown: // Not the one that serves.
		return true
	case store.CodeInvalidArgument, store.CodeUnknownProgram, store.CodeClosed, // The caller's own doing.
		store.CodeAuthentication, store.CodePermission, store.CodeServerVersion, store.CodeMoved, // Configured wrongly.
		store.CodeCapacity, store.CodeOutOfMemory, store.CodePersistence, store.CodeReplicas, // It guards its data.
		store.CodeNotInteger, store.CodeOutOfRange, store.CodeProgramFailed, store.CodeWrongType, store.CodeReply, // It answered.
		store.CodeInvalid:
	}
	return false
}
