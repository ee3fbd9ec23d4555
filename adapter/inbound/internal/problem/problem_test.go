package problem_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/edgelimit/edgelimit/adapter/inbound/internal/problem"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	problem.Write(w, problem.Problem{Status: http.StatusTooManyRequests, Code: "rate-limited", Detail: "a < b & c"})
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	want := `{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"a < b & c","code":"rate-limited"}` + "\n"
	if got := w.Body.String(); got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	var back problem.Problem
	if err := json.Unmarshal(problem.Problem{Status: 400, Code: "c", Detail: "d", Field: "f"}.Encode(), &back); err != nil {
		t.Fatal(err)
	}
	if want := (problem.Problem{Type: "about:blank", Title: "Bad Request", Status: 400, Code: "c", Detail: "d", Field: "f"}); back != want {
		t.Errorf("%+v, want %+v", back, want)
	}
}
