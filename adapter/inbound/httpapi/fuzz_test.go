package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// FuzzEvaluateBody holds the request decoder to what encoding/json says of the same bytes: what the
// API takes is a JSON object in UTF-8 with the same values, and whatever it refuses is a problem.
func FuzzEvaluateBody(f *testing.F) {
	for _, seed := range []string{
		`{"policyId":"login","subject":"user:42","cost":1,"deadlineMillis":200}`, `{"subject":"\ud83d\ude00"}`,
		`{"subject":"a","subject":"b"}`, `{"subject":"a","cost":1e3}`, `{"Subject":"a"}`, `{"subject":"a"}{}`, `[]`, `{`, "\xff",
		`{"subjectDigest":"` + strings.Repeat("0", 64) + `"}`, `{"subject":"\ud800"}`, `{"cost":9007199254740993,"subject":"a"}`,
	} {
		f.Add(seed)
	}
	var got *ratelimit.RateLimitRequest
	c := config(f, func(ctx context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		got = &r
		return allowed(ctx, r)
	})
	h := handler(f, c)
	f.Fuzz(func(t *testing.T, body string) {
		got = nil
		w := post(h, body)
		switch w.Code {
		case http.StatusOK:
		case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			if got != nil {
				t.Fatalf("%q was asked and refused", body)
			}
			readProblem(t, w)
			return
		default:
			t.Fatalf("status %d for %q", w.Code, body)
		}
		var same struct {
			PolicyID, Subject, SubjectDigest string
			Cost                             *int64
			DeadlineMillis                   *int64
		}
		if err := json.Unmarshal([]byte(body), &same); err != nil || !utf8.ValidString(body) {
			t.Fatalf("%q was taken, but: %v", body, err)
		}
		if same.Subject != "" {
			want, err := c.Digester.Digest(same.Subject)
			if err != nil || got.Subject != want {
				t.Fatalf("%q: another subject", body)
			}
		} else if got.Subject.String() != same.SubjectDigest {
			t.Fatalf("%q: another digest", body)
		}
		if same.Cost != nil && *same.Cost != got.Cost || same.Cost == nil && got.Cost != 1 {
			t.Fatalf("%q: cost %d", body, got.Cost)
		}
		if same.PolicyID != "" && same.PolicyID != string(got.PolicyID) {
			t.Fatalf("%q: policy %q", body, got.PolicyID)
		}
	})
}
