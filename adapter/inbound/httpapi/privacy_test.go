package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// logBuffer collects log lines of concurrent handlers.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestNothingRepeatsASubject puts a subject wherever a caller could and looks for it in every
// response and log line.
func TestNothingRepeatsASubject(t *testing.T) {
	t.Parallel()
	const subject = "alice@example"
	logs := &logBuffer{}
	var outcome ratelimit.Outcome
	var fault error
	var panics any
	c := config(t, func(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		if panics != nil {
			panic(panics)
		}
		return outcome, fault
	})
	c.Logger = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := handler(t, c)
	check := func(name string, w *httptest.ResponseRecorder) {
		t.Helper()
		if strings.Contains(w.Body.String(), subject) || strings.Contains(fmt.Sprint(w.Header()), subject) {
			t.Errorf("%s: the response repeats the subject: %s", name, w.Body)
		}
		if strings.Contains(logs.String(), subject) {
			t.Errorf("%s: the log repeats the subject: %s", name, logs)
		}
	}
	for _, body := range []string{
		`{"subject":"` + subject + `","cost":99}`, `{"subject":"` + subject + `","policyId":"` + subject + `"}`,
		`{"` + subject + `":1}`, `{"subject":"` + subject + `","subject":"b"}`, `{"subject":"` + subject + `"`, subject,
		`{"subjectDigest":"` + subject + `"}`, `{"subject":"` + subject + `","evaluationId":"` + subject + `"}`,
		`{"subject":"` + subject + `","cost":"` + subject + `"}`, `{"subject":"` + subject + `\ud800"}`, `{"subject":["` + subject + `"]}`,
	} {
		check(body, post(h, body))
	}
	for _, o := range []ratelimit.Outcome{
		ratelimit.Evaluated{},
		nil,
		ratelimit.Indeterminate{PolicyID: "login"},
		ratelimit.Unavailable{PolicyID: "login"},
		ratelimit.Incompatible{PolicyID: "login"},
	} {
		outcome = o
		check(fmt.Sprintf("%T", o), post(h, `{"subject":"`+subject+`"}`))
	}
	fault = errors.New("no such user: " + subject)
	check("error", post(h, `{"subject":"`+subject+`"}`))
	panics = "cannot serve " + subject
	w := post(h, `{"subject":"`+subject+`"}`)
	check("panic", w)
	if p := readProblem(t, w); w.Code != 500 || p.Code != "internal" {
		t.Errorf("panic: %d %s", w.Code, w.Body)
	}
	if !strings.Contains(logs.String(), "panic=string") || !strings.Contains(logs.String(), "stack=") {
		t.Errorf("the panic is not in the log: %s", logs)
	}
}

func TestAbortedHandlerStaysAborted(t *testing.T) {
	t.Parallel()
	h := handler(t, config(t, func(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		panic(http.ErrAbortHandler)
	}))
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // a panic's value
			t.Errorf("recovered %v", p)
		}
	}()
	post(h, `{"subject":"a"}`)
}
