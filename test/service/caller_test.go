package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// decision and answer are the JSON of docs/http-api.md, written down a second time on purpose: a name
// that changes there must not change here by itself.
type decision struct {
	Allowed          bool   `json:"allowed"`
	Limit            int64  `json:"limit"`
	Remaining        int64  `json:"remaining"`
	RetryAfterMillis int64  `json:"retryAfterMillis"`
	ResetAtMillis    int64  `json:"resetAtMillis"`
	PolicyID         string `json:"policyId"`
	PolicyRevision   int64  `json:"policyRevision"`
	Source           string `json:"source"`
	Certainty        string `json:"certainty"`
}

type answer struct {
	Outcome          string    `json:"outcome"`
	Decision         *decision `json:"decision"`
	PolicyID         string    `json:"policyId"`
	Category         string    `json:"category"`
	RetryAfterMillis *int64    `json:"retryAfterMillis"`
}

// word is outcome and category, as tests name what they expect.
func (a answer) word() string { return strings.TrimSpace(a.Outcome + " " + a.Category) }

const evaluatePath = "/v1/rate-limit/evaluate"

// newClient makes a client for many callers at once, whose connections end with the test.
func newClient(t testing.TB) *http.Client {
	t.Helper()
	// A connection that was opened and not used is closed by the server after the time that it gives to a
	// request's header, 5 s: the client lets go of it before.
	transport := &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 2 * time.Second, ExpectContinueTimeout: patience}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// plain keeps no connections.
var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func (s *instance) get(path string) (int, string) {
	s.t.Helper()
	response, err := plain.Get(s.url + path)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.log())
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// evaluate asks once, and holds the answer to what the documents say of every answer. It may be called
// from any goroutine.
func (s *instance) evaluate(client *http.Client, body string) (answer, error) {
	response, err := client.Post(s.url+evaluatePath, "application/json", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return judge(response, text)
}

func judge(response *http.Response, text []byte) (a answer, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return a, fmt.Errorf("%d %s: %w", response.StatusCode, text, err)
	}
	fault := func(format string, args ...any) (answer, error) {
		return a, fmt.Errorf("%d %v %s: %s", response.StatusCode, response.Header, text, fmt.Sprintf(format, args...))
	}
	want, seconds := 0, ""
	switch a.Outcome {
	case "EVALUATED":
		want = http.StatusOK
		d := a.Decision
		switch {
		case d == nil || a.Category != "" || a.RetryAfterMillis != nil:
			return fault("the fields are not those of a decision")
		case d.Remaining < 0 || d.Remaining > d.Limit || d.ResetAtMillis <= 0 || d.PolicyID == "" || d.PolicyRevision < 1:
			return fault("out of range")
		case d.Allowed != (d.RetryAfterMillis == 0):
			return fault("allowed does not go with retryAfterMillis")
		}
	case "UNAVAILABLE", "INDETERMINATE":
		want = http.StatusServiceUnavailable
		if a.RetryAfterMillis == nil || *a.RetryAfterMillis < 1 || (a.Category == "") != (a.Outcome == "INDETERMINATE") {
			return fault("the fields are not those of %s", a.Outcome)
		}
		seconds = fmt.Sprint((*a.RetryAfterMillis + 999) / 1000)
	case "INCOMPATIBLE":
		want = http.StatusInternalServerError
		if a.Category == "" || a.RetryAfterMillis != nil {
			return fault("the fields are not those of INCOMPATIBLE")
		}
	}
	if response.StatusCode != want || response.Header.Get("Retry-After") != seconds {
		return fault("want %d with Retry-After %q", want, seconds)
	}
	if a.Outcome != "EVALUATED" && (a.Decision != nil || a.PolicyID == "") {
		return fault("no decision has a decision, or names no policy")
	}
	return a, nil
}

// one asks once.
func (s *instance) one(body string) answer {
	s.t.Helper()
	a, err := s.evaluate(plain, body)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.log())
	}
	return a
}

// becomes asks until the answer is the one that is wanted.
func (s *instance) becomes(body, word string) answer {
	s.t.Helper()
	var a answer
	eventually(s.t, word, func() error {
		a = s.one(body)
		if a.word() != word {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	return a
}

// burst asks one body from many callers at once, in turn over the instances. Every answer is counted
// and judged; an error is the test's.
func burst(t testing.TB, instances []*instance, callers, requests int, body string) []answer {
	t.Helper()
	client := newClient(t)
	answers := make([]answer, requests)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= requests {
					return
				}
				a, err := instances[i%len(instances)].evaluate(client, body)
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
				answers[i] = a
			}
		})
	}
	wait.Wait()
	return answers
}

// background asks from many callers until the returned function is called, which gives each caller's
// answers in the order in which it got them.
func background(t testing.TB, s *instance, callers int, body string) (stop func() [][]answer) {
	t.Helper()
	client := newClient(t)
	all := make([][]answer, callers)
	done := make(chan struct{})
	var wait sync.WaitGroup
	for i := range all {
		wait.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				a, err := s.evaluate(client, body)
				if err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				all[i] = append(all[i], a)
			}
		})
	}
	return sync.OnceValue(func() [][]answer {
		close(done)
		wait.Wait()
		return all
	})
}
