package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// encode gives compact JSON with a newline after it, and leaves <, > and & as they are.
func encode(body any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// write sends an encoded body. Nothing that this API says may be kept by a cache.
func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A failure here means that the caller has gone: there is nobody to tell.
	_, _ = w.Write(body)
}

// writeJSON sends a body that is known to encode.
func writeJSON(w http.ResponseWriter, status int, body any) {
	encoded, err := encode(body)
	if err != nil {
		panic(err) // the bodies of this package are plain structs: guard answers 500
	}
	write(w, status, "application/json", encoded)
}
