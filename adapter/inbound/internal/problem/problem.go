package problem

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// MediaType is the Content-Type of a problem.
const MediaType = "application/problem+json"

// Problem is an RFC 9457 problem detail. Its type is always about:blank, so its title is the status's
// own phrase; Code tells problems of one status apart.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is for people. It repeats nothing that a caller sent but numbers.
	Detail string `json:"detail"`
	// Code is stable.
	Code string `json:"code"`
	// Field is the name of what is at fault, absent where no single thing is.
	Field string `json:"field,omitempty"`
}

// Encode gives the problem as compact JSON with a newline after it. Type and Title are filled in.
func (p Problem) Encode() []byte {
	whole := p
	whole.Type, whole.Title = "about:blank", http.StatusText(p.Status)
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(whole); err != nil {
		panic(err) // strings and a number always encode
	}
	return buffer.Bytes()
}

// Write answers with the problem.
func Write(w http.ResponseWriter, p Problem) { WriteEncoded(w, p.Status, p.Encode()) }

// WriteEncoded answers with a problem that Encode gave. No cache may keep it.
func WriteEncoded(w http.ResponseWriter, status int, encoded []byte) {
	h := w.Header()
	h.Set("Content-Type", MediaType)
	h.Set("Content-Length", strconv.Itoa(len(encoded)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A failure here means that the caller has gone: there is nobody to tell.
	_, _ = w.Write(encoded)
}
