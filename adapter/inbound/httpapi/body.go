package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
)

// readBody gives the whole body, or the problem with it. It reads at most limit bytes, whatever
// Content-Length claims.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *problem) {
	if p := checkMediaType(r.Header); p != nil {
		return nil, p
	}
	tooLarge := &problem{
		Status: http.StatusRequestEntityTooLarge, Code: codeBodyTooLarge,
		Detail: fmt.Sprintf("the body is larger than %d bytes", limit),
	}
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooMuch *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &tooMuch):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &problem{Status: http.StatusRequestTimeout, Code: codeBodyTimeout, Detail: "the body did not arrive in time"}
	default:
		return nil, &problem{Status: http.StatusBadRequest, Code: codeMalformed, Detail: "the body ended before its end"}
	}
}

// checkMediaType takes application/json alone, in UTF-8 and not compressed.
func checkMediaType(header http.Header) *problem {
	refuse := func(detail string) *problem {
		return &problem{Status: http.StatusUnsupportedMediaType, Code: codeMediaType, Detail: detail}
	}
	types := header.Values("Content-Type")
	if len(types) != 1 {
		return refuse("want one Content-Type header: application/json")
	}
	mediaType, parameters, err := mime.ParseMediaType(types[0])
	if err != nil || mediaType != "application/json" {
		return refuse("want Content-Type: application/json")
	}
	for name, value := range parameters {
		if name == "charset" && !strings.EqualFold(value, "utf-8") {
			return refuse("want the charset utf-8")
		}
	}
	for _, encoding := range header.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(encoding), "identity") {
			return refuse("want a body without Content-Encoding")
		}
	}
	return nil
}
