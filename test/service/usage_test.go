package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// result is what a command that ended by itself gave.
type result struct {
	code           int
	stdout, stderr string
}

// run runs a command of the program in the repository's root.
func run(t testing.TB, variables []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), program(t), args...)
	command.Dir, command.Env = root, environ(variables...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

const badConfiguration = `app:
  rate-limit:
    enabled: true
    provider: redis
    role: cache
    failure-policy: fail-open
    default-policy: none
    redis: {address: "one:6379,two:6379", command-timeout: 50, pool-size: 0}
    key: {hmac-secret: short}
    admision: {max-in-flight: 1}
    policies:
      never: {revision: 1, algorithm: fixed-window, limit: 5, window: 0s}
      beyond: {revision: 1, algorithm: fixed-window, limit: 5, window: 1m, max-cost: 6}
      inexact: {revision: 1, algorithm: token-bucket, capacity: 9007199254740991, refill-tokens: 7, refill-period: 1s}
      mixed: {revision: 1, algorithm: fixed-window, capacity: 5, window: 1m}
  service:
    http-address: 0.0.0.0:8080
`

// TestBadConfiguration holds every command that reads a configuration to tell all of its faults at
// once, each by its path, to start nothing and to end with 2.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(path, []byte(badConfiguration), 0o600); err != nil {
		t.Fatal(err)
	}
	var first string
	for _, args := range [][]string{
		{"serve", "--config", path},
		{"check", "--config", path, "--subject", "one"},
		{"replay", "--config", path, "test/testdata/access-combined.log.gz"},
		{"policy", "validate", path},
	} {
		r := run(t, nil, args...)
		if r.code != 2 || r.stdout != "" {
			t.Errorf("%v: code %d, printed %q", args, r.code, r.stdout)
		}
		if first == "" {
			first = r.stderr
		}
		if r.stderr != first {
			t.Errorf("%v tells\n%s\nand %v\n%s", args, r.stderr, "serve", first)
		}
	}
	for _, key := range []string{
		"role", "failure-policy", "default-policy", "redis.address", "redis.command-timeout", "redis.pool-size",
		"key.hmac-secret", "admision", "policies.never.window", "policies.beyond.max-cost", "policies.inexact.capacity",
		"policies.mixed.capacity", "policies.mixed.limit",
	} {
		if !strings.Contains(first, "\n  app.rate-limit."+key+": ") {
			t.Errorf("app.rate-limit.%s is not told", key)
		}
	}
	if !strings.Contains(first, "\n  app.service.http-address: ") {
		t.Error("app.service.http-address is not told")
	}
	if strings.Contains(first, "short") {
		t.Error("a secret is printed")
	}
	t.Log(first)
}

// problemRow is a row of the table of problems in docs/http-api.md.
var problemRow = regexp.MustCompile("(?m)^\\| (\\d{3}) \\| `([a-z-]+)` \\|")

// TestBadRequests makes a service answer each problem of docs/http-api.md that a caller can bring
// about at once. What stays is a caller who sends half a body and waits, which takes as long as it
// takes, and a failure of the service itself.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	server := lanes.Default(t)
	space := namespace()
	removeAfter(t, server.Addr, space)
	s := serveReady(t, settings{address: server.Addr, namespace: space, policies: deep}.file(t))
	type request struct{ method, path, contentType, body string }
	post := func(body string) request {
		return request{http.MethodPost, evaluatePath, "application/json", body}
	}
	asked := map[string]request{
		"malformed-body":         post(`{"subject":"secret-person"`),
		"unknown-field":          post(`{"subject":"secret-person","color":1}`),
		"repeated-field":         post(`{"subject":"secret-person","subject":"secret-person"}`),
		"wrong-type":             post(`{"subject":"secret-person","cost":1.0}`),
		"unknown-policy":         post(`{"subject":"secret-person","policyId":"none"}`),
		"unknown-path":           {http.MethodPost, "/v1/evaluate", "application/json", `{"subject":"secret-person"}`},
		"method-not-allowed":     {http.MethodGet, evaluatePath, "", ""},
		"body-too-large":         post(`{"subject":"` + strings.Repeat("secret-person", 2000) + `"}`),
		"unsupported-media-type": {http.MethodPost, evaluatePath, "text/plain", `{"subject":"secret-person"}`},
		"out-of-range":           post(`{"subject":"secret-person","cost":0}`),
		"missing":                post(`{"cost":1}`),
		"conflicting-fields":     post(`{"subject":"secret-person","subjectDigest":"` + strings.Repeat("a", 64) + `"}`),
		"unsupported":            post(`{"subject":"secret-person","evaluationId":"once"}`),
	}
	document, err := os.ReadFile(filepath.Join(root, "docs", "http-api.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := problemRow.FindAllStringSubmatch(string(document), -1)
	for _, row := range rows {
		status, code := row[1], row[2]
		ask, ok := asked[code]
		delete(asked, code)
		if code == "internal" || code == "body-timeout" {
			continue
		}
		if !ok {
			t.Errorf("%s is documented and not asked for here", code)
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), ask.method, s.url+ask.path, strings.NewReader(ask.body))
		if err != nil {
			t.Fatal(err)
		}
		if ask.contentType != "" {
			r.Header.Set("Content-Type", ask.contentType)
		}
		response, err := plain.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		var problem struct{ Code, Detail string }
		if err != nil || json.Unmarshal(text, &problem) != nil {
			t.Fatalf("%s: %v %s", code, err, text)
		}
		if !strings.HasPrefix(response.Status, status) || problem.Code != code || problem.Detail == "" ||
			response.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s %v %s", code, response.Status, response.Header, text)
		}
		if strings.Contains(string(text), "secret-person") {
			t.Errorf("%s repeats the subject: %s", code, text)
		}
	}
	for code := range asked {
		t.Errorf("%s is not documented", code)
	}
	if len(rows) != len(asked)+15 {
		t.Errorf("%d rows of problems", len(rows))
	}
	// None of them was an evaluation.
	if keys := keysOf(t.Context(), t, connect(t, server.Addr), space); len(keys) > 0 {
		t.Errorf("keys: %v", keys)
	}
	if strings.Contains(s.log(), "secret-person") {
		t.Error("the log has the subject")
	}
}
