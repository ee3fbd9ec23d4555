package httpapi

import "net/http"

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

// problem is an RFC 9457 problem detail. Its type is always about:blank, so its title is the
// status's own phrase; Code tells problems of one status apart.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is for people. It repeats nothing of the body but numbers.
	Detail string `json:"detail"`
	Code   string `json:"code"`
	// Field is the name of the JSON field at fault, absent where no single one is.
	Field string `json:"field,omitempty"`
}

func writeProblem(w http.ResponseWriter, p problem) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	encoded, err := encode(p)
	if err != nil {
		panic(err) // strings and a number always encode
	}
	write(w, p.Status, "application/problem+json", encoded)
}
