package httpapi

import (
	"net/http"

	shared "github.com/edgelimit/edgelimit/adapter/inbound/internal/problem"
)

// The codes of problems. They are stable; details are for people and may change.
const (
	codeUnknownPath   = "unknown-path"
	codeMethod        = "method-not-allowed"
	codeMalformed     = "malformed-body"
	codeUnknownField  = "unknown-field"
	codeRepeatedField = "repeated-field"
	codeWrongType     = "wrong-type"
	codeOutOfRange    = "out-of-range"
	codeMissing       = "missing"
	codeConflict      = "conflicting-fields"
	codeUnsupported   = "unsupported"
	codeUnknownPolicy = "unknown-policy"
	codeBodyTooLarge  = "body-too-large"
	codeBodyTimeout   = "body-timeout"
	codeMediaType     = "unsupported-media-type"
	codeInternal      = "internal"
)

// problem is the shape that every door of HTTP shares. Detail repeats nothing of the body but numbers,
// and Field is the name of a JSON field.
type problem = shared.Problem

func writeProblem(w http.ResponseWriter, p problem) { shared.Write(w, p) }
