package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func faultsOf(t *testing.T, err error) []string {
	t.Helper()
	var report *Error
	if !errors.As(err, &report) {
		t.Fatalf("error is %T: %v", err, err)
	}
	lines := make([]string, 0, len(report.Faults))
	for _, f := range report.Faults {
		lines = append(lines, f.String())
	}
	if !slices.IsSortedFunc(report.Faults, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("faults are not sorted: %v", lines)
	}
	return lines
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	environ := []string{
		"EDGELIMIT_APP__RATE_LIMIT__REDIS__COMMAND_TIMEOUT=80ms",
		"EDGELIMIT_APP__RATE_LIMIT__REDIS__POOL_SIZE=3",
		"EDGELIMIT_APP__RATE_LIMIT__KEY__NAMESPACE=staging",
		"EDGELIMIT_APP__RATE_LIMIT__POLICIES__LOGIN__LIMIT=7",
		"EDGELIMIT_APP__RATE_LIMIT__REDIS__PASSWORD=a=b=c",
		"EDGELIMIT_APP__SERVICE__ALLOW_PLAINTEXT=true",
		"EDGELIMIT_OTHER=x", "PATH=/bin", "EDGELIMIT_APPLE__X=1",
	}
	c, err := Load(Source{
		File: filepath.Join("testdata", "ok_full.yaml"), Environ: environ,
		Flags: map[string]any{
			"app.rate-limit.redis.pool-size":         9,
			"app.rate-limit.admission.max-in-flight": "10",
			"app.service.default-deadline":           300 * time.Millisecond,
			"app.rate-limit.policies.search.limit":   int64(8),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := c.RateLimit
	for what, same := range map[string]bool{
		"environment over file":        r.Redis.CommandTimeout == 80*time.Millisecond,
		"flag over environment":        r.Redis.PoolSize == 9,
		"flag over file":               r.Admission.MaxInFlight == 10,
		"file":                         r.Redis.Username == "edgelimit",
		"text of the environment":      r.Key.Namespace == "staging",
		"policy from the environment":  r.Policies.Get("login").Limit() == 7,
		"policy from a flag":           r.Policies.Get("search").Limit() == 8,
		"policy from the file":         r.Policies.Get("api-default").Limit() == 100,
		"secret with an equals sign":   string(r.Redis.Password.Reveal()) == "a=b=c",
		"truth from the environment":   c.Service.AllowPlaintext,
		"duration from a flag":         c.Service.DefaultDeadline == 300*time.Millisecond,
		"default policy from the file": r.DefaultPolicy == "api-default",
	} {
		if !same {
			t.Errorf("%s does not hold: %+v", what, c)
		}
	}
}

func TestEnvironmentAlone(t *testing.T) {
	t.Parallel()
	c, err := Load(Source{Environ: []string{
		"EDGELIMIT_APP__RATE_LIMIT__ENABLED=true",
		"EDGELIMIT_APP__RATE_LIMIT__PROVIDER=memory",
		"EDGELIMIT_APP__RATE_LIMIT__DEFAULT_POLICY=api-default",
		"EDGELIMIT_APP__RATE_LIMIT__POLICIES__API_DEFAULT__REVISION=1",
		"EDGELIMIT_APP__RATE_LIMIT__POLICIES__API_DEFAULT__ALGORITHM=fixed-window",
		"EDGELIMIT_APP__RATE_LIMIT__POLICIES__API_DEFAULT__LIMIT=5",
		"EDGELIMIT_APP__RATE_LIMIT__POLICIES__API_DEFAULT__WINDOW=1s",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if c.RateLimit.Policies.Get("api-default") == nil {
		t.Error("no policy")
	}
}

func TestFaultsOfEnvironmentAndFlags(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{
		Environ: []string{
			"EDGELIMIT_APP__RATE_LIMIT__REDIS__COMAND_TIMEOUT=80ms",
			"EDGELIMIT_APP__RATE_LIMIT__REDIS__DATABASE=one",
			"EDGELIMIT_APP__RATE_LIMIT__REDIS=x",
			"EDGELIMIT_APP__RATE_LIMIT__UNAVAILABLE_RETRY_AFTER=5",
			"EDGELIMIT_APP__RATE_LIMIT__POLICIES__LOGIN__LIMITS=5",
			"EDGELIMIT_APP__=5",
		},
		Flags: map[string]any{"app.rate-limit.policies.api.v1.limt": 5, "app.service.max-body-bytes": "many", "service": 1},
	})
	want := []string{
		`app."": is no known key; the nearest is app (given by the environment variable EDGELIMIT_APP__)`,
		`app.rate-limit.policies.api.v1.limt: is no known key; the nearest is app.rate-limit.policies.api.v1.limit (given by a flag)`,
		`app.rate-limit.policies.login.limits: is no known key; the nearest is app.rate-limit.policies.login.limit (given by the environment variable EDGELIMIT_APP__RATE_LIMIT__POLICIES__LOGIN__LIMITS)`,
		`app.rate-limit.redis: is no known key; the nearest is app.rate-limit.redis (given by the environment variable EDGELIMIT_APP__RATE_LIMIT__REDIS)`,
		`app.rate-limit.redis.comand-timeout: is no known key; the nearest is app.rate-limit.redis.command-timeout (given by the environment variable EDGELIMIT_APP__RATE_LIMIT__REDIS__COMAND_TIMEOUT)`,
		`app.rate-limit.redis.database: is "one", want an integer 0..65535 (given by the environment variable EDGELIMIT_APP__RATE_LIMIT__REDIS__DATABASE)`,
		`app.rate-limit.unavailable-retry-after: is "5", want a duration with its unit, 1ms..1h (given by the environment variable EDGELIMIT_APP__RATE_LIMIT__UNAVAILABLE_RETRY_AFTER)`,
		`app.service.max-body-bytes: is "many", want an integer 256..1048576 (given by a flag)`,
		`service: is no known key; the nearest is app.service (given by a flag)`,
	}
	compareLines(t, want, faultsOf(t, err))
}

func TestRangeFaultNamesItsOrigin(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{
		File:    filepath.Join("testdata", "ok_full.yaml"),
		Environ: []string{"EDGELIMIT_APP__RATE_LIMIT__REDIS__POOL_SIZE=0", "EDGELIMIT_APP__RATE_LIMIT__POLICIES__LOGIN__LIMIT=0"},
	})
	compareLines(t, []string{
		"app.rate-limit.policies.login.limit: is 0, want 1 or more (given by the environment variable EDGELIMIT_APP__RATE_LIMIT__POLICIES__LOGIN__LIMIT)",
		"app.rate-limit.redis.pool-size: is 0, want an integer 1..4096 (given by the environment variable EDGELIMIT_APP__RATE_LIMIT__REDIS__POOL_SIZE)",
	}, faultsOf(t, err))
}

func TestFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{File: "testdata/none.yaml"})
	compareLines(t, []string{"testdata/none.yaml: cannot be read: no such file or directory"}, faultsOf(t, err))
	_, err = Load(Source{File: write(t, "big.yaml", strings.Repeat("# filler\n", maxFileBytes/9+1))})
	if err == nil || !strings.Contains(err.Error(), "has more than 4194304 bytes") {
		t.Errorf("a file above the bound: %v", err)
	}
}

func TestNothingAtAllIsDisabled(t *testing.T) {
	t.Parallel()
	c, err := Load(Source{})
	if err != nil {
		t.Fatal(err)
	}
	if c.RateLimit.Enabled || c.Service.HTTPAddress != "127.0.0.1:8080" || c.Service.LogFormat != LogFormatText {
		t.Errorf("got %+v", c)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := Load(Source{File: filepath.Join("testdata", "ok_minimal_redis.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	r, p := c.RateLimit, c.RateLimit.Policies.Get("v1.only")
	for what, same := range map[string]bool{
		"role": r.Role == RoleCoordination, "failure-policy": r.FailurePolicy == ratelimit.FailClosed,
		"namespace": r.Key.Namespace == "default", "command-timeout": r.Redis.CommandTimeout == 50*time.Millisecond,
		"pool-size": r.Redis.PoolSize == 16, "database": r.Redis.Database == 0, "tls": r.Redis.TLS == nil,
		"max-in-flight": r.Admission.MaxInFlight == 512, "max-keys": r.Memory.MaxKeys == 1_000_000,
		"retry-after": r.UnavailableRetryAfter == time.Second,
		"max-cost":    p.MaxCost() == 1, "cleanup-grace": p.CleanupGrace() == time.Minute,
		"max-clock-regression": p.MaxClockRegression() == 2*time.Second,
	} {
		if !same {
			t.Errorf("default of %s is wrong", what)
		}
	}
}

func compareLines(t *testing.T, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		w, g := "(none)", "(none)"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			t.Errorf("fault %d\nwant %s\ngot  %s", i, w, g)
		}
	}
}
