package composition

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const memoryText = `
app:
  name: the host's own
  rate-limit:
    enabled: true
    provider: memory
    default-policy: p
    policies:
      p: {revision: 1, algorithm: fixed-window, limit: 2, window: 1h}
`

const redisText = `
app:
  rate-limit:
    enabled: true
    provider: redis
    default-policy: p
    unavailable-retry-after: 3s
    redis: {address: "ADDRESS", command-timeout: 50ms}
    key: {hmac-secret: "0123456789abcdef0123456789abcdef"}
    policies:
      p: {revision: 1, algorithm: fixed-window, limit: 2, window: 1h}
`

func hostKoanf(t *testing.T, text string) *koanf.Koanf {
	t.Helper()
	k := koanf.New(".")
	if err := k.Load(rawbytes.Provider([]byte(text)), yaml.Parser()); err != nil {
		t.Fatal(err)
	}
	return k
}

func configure(t *testing.T, text string) config.RateLimit {
	t.Helper()
	cfg, err := config.RateLimitFromKoanf(hostKoanf(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func redisAt(address string) string { return strings.Replace(redisText, "ADDRESS", address, 1) }

func request(t *testing.T, d *ratelimit.SubjectDigester, policy ratelimit.PolicyID) ratelimit.RateLimitRequest {
	t.Helper()
	subject, err := d.Digest("somebody")
	if err != nil {
		t.Fatal(err)
	}
	return ratelimit.RateLimitRequest{PolicyID: policy, Subject: subject, Cost: 1}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
