package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
)

// guard turns a panic into a 500 problem and a log line. The line has the panic's type, and its text
// only where the runtime wrote it: the text of another could hold what the request held.
func (a *api) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracked := &trackedWriter{ResponseWriter: w}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel is compared by net/http in the same way
				panic(p)
			}
			attributes := []any{slog.String("panic", fmt.Sprintf("%T", p))}
			if fault, ok := p.(runtime.Error); ok {
				attributes = append(attributes, slog.String("error", fault.Error()))
			}
			a.Logger.Error("panic while serving", append(attributes, slog.String("stack", string(debug.Stack())))...)
			if tracked.written {
				panic(http.ErrAbortHandler) // half an answer must not look like a whole one
			}
			writeProblem(w, problem{Status: http.StatusInternalServerError, Code: codeInternal, Detail: "the service failed while it served this request"})
		}()
		next.ServeHTTP(tracked, r)
	})
}

// trackedWriter knows whether an answer has begun.
type trackedWriter struct {
	http.ResponseWriter
	written bool
}

func (w *trackedWriter) WriteHeader(status int) {
	w.written = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *trackedWriter) Write(body []byte) (int, error) {
	w.written = true
	return w.ResponseWriter.Write(body)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
