package service

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// people are subjects as callers send them: what a log or a key must not show.
var people = []string{
	"alice.example@example.net",
	"203.0.113.77",
	"2001:db8::dead:beef:77",
	"api-key-4f9b2c7d1e6a8053",
	"/accounts/zoe-example/statements",
	"bob:{example}*\x00 \U0001F512 with everything",
	strings.Repeat("carol-example ", 700),
}

// traces are the forms in which a subject could still be found.
func traces(subject string) []string {
	sum := sha256.Sum256([]byte(subject))
	quoted, _ := json.Marshal(subject) //nolint:errchkjson // a string always encodes
	return []string{
		subject,
		strings.Trim(string(quoted), `"`),
		strings.Trim(strconv.Quote(subject), `"`),
		strings.Trim(strconv.QuoteToASCII(subject), `"`),
		url.QueryEscape(subject),
		url.PathEscape(subject),
		hex.EncodeToString([]byte(subject)),
		base64.RawURLEncoding.EncodeToString([]byte(subject)),
		base64.RawStdEncoding.EncodeToString([]byte(subject)),
		// A digest without a key can be guessed from a list of names.
		hex.EncodeToString(sum[:]),
		base64.RawURLEncoding.EncodeToString(sum[:]),
	}
}

// TestNoSubjectIsLeftAnywhere sends subjects through a service that logs all it can, while its Redis
// works, refuses and is gone, and looks for them in the log, in the traffic to Redis, and in every key
// and value there.
func TestNoSubjectIsLeftAnywhere(t *testing.T) {
	t.Parallel()
	const password = "a-password-that-nobody-sees"
	server := lanes.StartProcess(t, lanes.Options{})
	client := connect(t, server.Addr)
	do(t, client, "ACL", "SETUSER", "limiter", "reset", "on", ">"+password, "~*", "+@all")
	record := monitor(t, server.Addr)
	s := serveReady(t, settings{
		address: server.Addr, namespace: namespace(), log: "debug", timeout: time.Second,
		redis: ", username: limiter, password: " + password,
		policies: `
window: {revision: 1, algorithm: fixed-window, limit: 1, window: 8760h}
counter: {revision: 1, algorithm: sliding-window-counter, limit: 1, window: 8760h}
bucket: {revision: 1, algorithm: token-bucket, capacity: 1, refill-tokens: 1, refill-period: 8760h}
`,
	}.file(t))

	bodies := func() (all []string) {
		for _, subject := range people {
			for _, policy := range []string{"window", "counter", "bucket"} {
				body, err := json.Marshal(map[string]string{"policyId": policy, "subject": subject})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(body))
			}
		}
		return all
	}()
	for range 2 { // admitted, then denied
		for _, body := range bodies {
			if a := s.one(body); a.word() != "EVALUATED" {
				t.Errorf("%+v", a)
			}
		}
	}
	// What cannot be asked is answered, and perhaps logged, on other ways.
	for _, body := range bodies {
		for _, broken := range []string{body[:len(body)-1], body[:len(body)-1] + `,"cost":0}`, body[:len(body)-1] + `,"color":1}`, body + body} {
			response, err := plain.Post(s.url+evaluatePath, "application/json", strings.NewReader(broken))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode < 400 || response.StatusCode >= 500 {
				t.Errorf("%s: %d", broken, response.StatusCode)
			}
		}
	}
	for _, key := range keysOf(t.Context(), t, client, "*") { // foreign state, one key of each subject
		if strings.Contains(key, ":window:state:") {
			do(t, client, "SET", key, "foreign")
		}
	}
	for _, body := range bodies {
		if strings.Contains(body, `"window"`) {
			if a := s.one(body); a.word() != "INCOMPATIBLE STATE" {
				t.Errorf("%+v", a)
			}
		}
	}
	do(t, client, "CONFIG", "SET", "min-replicas-to-write", "1")
	for _, body := range bodies {
		if a := s.one(body); a.Outcome != "UNAVAILABLE" {
			t.Errorf("%+v", a)
		}
	}
	do(t, client, "CONFIG", "SET", "min-replicas-to-write", "0")
	content := everything(t, client)
	traffic := record()
	server.Kill()
	for _, body := range bodies {
		if a := s.one(body); a.Outcome == "EVALUATED" {
			t.Errorf("%+v", a)
		}
	}
	s.stop()
	log := s.log()

	if n := strings.Count(log, "msg=evaluated"); n < 4*len(bodies) {
		t.Errorf("%d evaluations in the log: it is not at the debug level", n)
	}
	if n := strings.Count(strings.ToLower(traffic), `"evalsha"`); n < 2*len(bodies)+len(people) {
		t.Errorf("%d EVALSHA in the traffic", n)
	}
	if n := strings.Count(content, ":state:"); n < len(bodies) {
		t.Errorf("%d state keys", n)
	}
	digester, err := ratelimit.NewSubjectDigester([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"log": log, "traffic": traffic, "keys and values": content} {
		for _, subject := range people {
			digest, err := digester.Digest(subject)
			if err != nil {
				t.Fatal(err)
			}
			for i, trace := range append(traces(subject), digest.String()) {
				if at := strings.Index(text, trace); at >= 0 {
					t.Errorf("%s: form %d of %.40q at %d", where, i, subject, at)
				}
			}
		}
		if strings.Contains(text, secret) {
			t.Errorf("%s: the secret", where)
		}
		// The traffic has it where a connection is made, and MONITOR shows that as (redacted).
		if strings.Contains(text, password) {
			t.Errorf("%s: the password", where)
		}
	}
}

// everything is each key of a server, and its value in the form of DUMP and in that of its type.
func everything(t *testing.T, client *redis.Client) string {
	t.Helper()
	var all strings.Builder
	for _, key := range keysOf(t.Context(), t, client, "*") {
		fmt.Fprintf(&all, "%s %v\n", key, do(t, client, "DUMP", key))
		switch do(t, client, "TYPE", key) {
		case "hash":
			fmt.Fprintf(&all, "%v\n", do(t, client, "HGETALL", key))
		case "string":
			fmt.Fprintf(&all, "%v\n", do(t, client, "GET", key))
		default:
			t.Errorf("%s has another type", key)
		}
	}
	if n := do(t, client, "DBSIZE"); n != int64(strings.Count(all.String(), "edgelimit:")) {
		t.Errorf("%v keys, not all of them are seen", n)
	}
	return all.String()
}
