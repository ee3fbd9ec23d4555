package cli_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/cli"
)

func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..", "..", "..")); err != nil { // the documents' commands run here
		panic(err)
	}
	// os/signal keeps one goroutine of its own once a signal was asked for.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("os/signal.loop"), goleak.IgnoreAnyFunction("os/signal.signal_recv"))
}

const (
	serviceExample = "docs/examples/service/edgelimit.yaml"
	redisExample   = "docs/examples/service/edgelimit-redis.yaml"
	replayExample  = "docs/examples/replay/policies.yaml"
	sampleLog      = "test/testdata/access-combined.log.gz"
	secretVariable = "EDGELIMIT_APP__RATE_LIMIT__KEY__HMAC_SECRET=0123456789abcdef0123456789abcdef"
)

type result struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, stdin string, environ []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Run(args, strings.NewReader(stdin), &stdout, &stderr, environ)
	return result{code, stdout.String(), stderr.String()}
}

func (r result) expect(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Errorf("code %d, want %d with %q and %q\nstdout: %s\nstderr: %s", r.code, code, stdout, stderr, r.stdout, r.stderr)
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsage(t *testing.T) {
	t.Parallel()
	off := write(t, "off.yaml", "app:\n  rate-limit:\n    enabled: false\n")
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"bogus"}, "unknown command"},
		{[]string{"--bogus"}, "unknown flag"},
		{[]string{"serve", "--bogus"}, "unknown flag"},
		{[]string{"serve", "extra"}, "unknown command"},
		{[]string{"serve"}, "--config FILE is required"},
		{[]string{"serve", "--config", "/nonexistent"}, "cannot be read"},
		{[]string{"serve", "--config", off}, "app.rate-limit.enabled: is not true"},
		{[]string{"serve", "--config", serviceExample, "--http-address", "0.0.0.0:0"}, "not loopback"},
		{[]string{"serve", "--config", serviceExample, "--http-address", "nowhere"}, "app.service.http-address"},
		{[]string{"serve", "--config", serviceExample, "--tls-cert", "/nonexistent"}, "app.service.tls-"},
		{[]string{"check", "--config", off, "--subject", "a"}, "app.rate-limit.enabled"},
		{[]string{"check", "--config", serviceExample}, "--subject has 0 bytes"},
		{[]string{"check", "--config", serviceExample, "--subject", "-"}, "--subject has 0 bytes"},
		{[]string{"check", "--config", serviceExample, "--subject", "a", "--cost", "x"}, "invalid argument"},
		{[]string{"check", "--config", serviceExample, "--subject", "a", "--cost", "0"}, "COST"},
		{[]string{"check", "--config", serviceExample, "--subject", "a", "--cost", "11"}, "COST"},
		{[]string{"check", "--config", serviceExample, "--subject", "a", "--policy", "other"}, "UNKNOWN_POLICY"},
		{[]string{"policy"}, "a subcommand is missing"},
		{[]string{"policy", "bogus"}, "unknown command"},
		{[]string{"policy", "validate"}, "accepts 1 arg"},
		{[]string{"policy", "validate", redisExample}, "app.rate-limit.key.hmac-secret"},
		{[]string{"replay", "--config", replayExample}, "requires at least 1 arg"},
		{[]string{"replay", "--config", replayExample, "-", "-"}, "named twice"},
		{[]string{"replay", "--config", replayExample, "--subject-field", "cookie", "-"}, "--subject-field"},
		{[]string{"replay", "--config", replayExample, "--policy", "other", "-"}, `--policy "other"`},
		{[]string{"replay", "--config", replayExample, "--policy", "bursts", "--policy", "bursts", "-"}, "named twice"},
		{[]string{"replay", "--config", replayExample, "--sort-window", "-1s", "-"}, "--sort-window"},
		{[]string{"replay", "--config", replayExample, "--sort-lines", "0", "-"}, "--sort-lines"},
		{[]string{"replay", "--config", replayExample, "--provider", "disk", "-"}, "app.rate-limit.provider"},
		{[]string{"replay", "--config", serviceExample, "--provider", "redis", "-"}, "app.rate-limit.redis.address"},
		{[]string{"replay", "--config", replayExample, "--out", sampleLog, sampleLog}, "is one of the logs"},
		{[]string{"version", "extra"}, "unknown command"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			run(t, "", nil, c.args...).expect(t, cli.ExitUsage, "", c.stderr)
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	run(t, "", nil).expect(t, 0, "Available Commands", "")
	run(t, "", nil, "replay", "--help").expect(t, 0, "--sort-window", "")
	run(t, "", nil, "version").expect(t, 0, "edgelimit ", "")
}

func TestCheckOnMemory(t *testing.T) {
	t.Parallel()
	run(t, "", nil, "check", "--config", serviceExample, "--policy", "login", "--subject", "user:42").
		expect(t, 0, "allowed: 4 of 5 left under policy login (revision 3); full again at 2", "starts afresh")
	r := run(t, "user:42\n", nil, "check", "--config", serviceExample, "--subject", "-", "--cost", "10", "--json")
	r.expect(t, 0, `{"outcome":"EVALUATED","decision":{"allowed":true,"limit":100,"remaining":90,"retryAfterMillis":0,"resetAtMillis":`, "")
	if strings.Contains(r.stdout+r.stderr, "user:42") {
		t.Errorf("the subject is repeated: %+v", r)
	}
}

func TestCheckWithoutRedis(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	environ := []string{secretVariable, "EDGELIMIT_APP__RATE_LIMIT__REDIS__ADDRESS=" + address}
	args := []string{"check", "--config", redisExample, "--subject", "a", "--ready-timeout", "50ms"}
	run(t, "", environ, args...).expect(t, cli.ExitNotEvaluated, "unavailable (NOT_READY): nothing was decided or spent under policy api-default", "note: not ready after 50ms")
	run(t, "", environ, append(args, "--json")...).expect(t, cli.ExitNotEvaluated, `{"outcome":"UNAVAILABLE","policyId":"api-default","category":"NOT_READY","retryAfterMillis":1000}`, "")
	run(t, "", environ, "policy", "validate", redisExample).expect(t, 0, "api-default *", "")
}

func TestPolicyValidate(t *testing.T) {
	t.Parallel()
	r := run(t, "", nil, "policy", "validate", serviceExample)
	want := `policy         revision  algorithm               limit  steady rate  burst  max cost        worst case
api-default *         1  token-bucket              100         50/s    100        10     150 in any 1s
login                 3  fixed-window                5        5/60s      5         1      10 in any 1m
search                1  sliding-window-counter     30       30/10s     30         3     59 in any 10s
* the default policy
`
	if r.code != 0 || strings.Join(strings.Fields(r.stdout), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%d\n%swant\n%s", r.code, r.stdout, want)
	}
	five := run(t, "", nil, "policy", "validate", replayExample)
	for _, row := range []string{
		"bursts 1 token-bucket 30 1/2s 30 1 31 in any 2s", "bursts-gcra 1 gcra 30 1/2s 30 1 31 in any 2s",
		"per-hour 1 sliding-window-counter 60 60/3600s 60 1 119 in any 1h", "per-hour-exact 1 sliding-window-log 60 60/3600s 60 1 60 in any 1h",
		"per-minute * 1 fixed-window 20 20/60s 20 1 40 in any 1m",
	} {
		if text := strings.Join(strings.Fields(five.stdout), " "); !strings.Contains(text, row) {
			t.Errorf("no %q in\n%s", row, five.stdout)
		}
	}
	bad := write(t, "bad.yaml", `
app:
  rate-limit:
    enabled: true
    provider: redis
    default-policy: none
    redis: {address: "h:1", password-file: /nonexistent/password}
    key: {hmac-secret-file: /nonexistent/secret}
    policies:
      p: {revision: 0, algorithm: fixed-window, limit: 5, window: 5}
`)
	r = run(t, "", nil, "policy", "validate", bad)
	for _, path := range []string{"default-policy", "redis.password-file", "key.hmac-secret-file", "policies.p.revision", "policies.p.window"} {
		r.expect(t, cli.ExitUsage, "", "app.rate-limit."+path+": ")
	}
	off := write(t, "off.yaml", "app:\n  rate-limit:\n    enabled: false\n")
	run(t, "", nil, "policy", "validate", off).expect(t, 0, "app.rate-limit is off", "")
}
