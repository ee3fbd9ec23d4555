package cacheredis

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func keyOf(t testing.TB, namespace, secret, kind string, p *ratelimit.RateLimitPolicy, who ratelimit.SubjectDigest) string {
	t.Helper()
	b, err := NewKeyBuilder(namespace, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return b.rateKeys(p, kind).of(who)
}

// TestGoldenKey pins the physical key: another one would reset every limit of a running deployment.
func TestGoldenKey(t *testing.T) {
	t.Parallel()
	const want = "edgelimit:production:rate:login:state:W1ES6FpcUzj6016mEX59t36OAuinLQhRT0xKhPXnFBs"
	p, who := policy(t), subject(t, "alice@example.com")
	for range 2 { // Two instances of one deployment.
		if got := keyOf(t, "production", string(testSecret), kindState, p, who); got != want {
			t.Errorf("key is %s, want %s", got, want)
		}
	}
}

// TestKeysDiffer: each thing that state depends on makes a key of its own.
func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	who := subject(t, "alice")
	secret := string(testSecret)
	other := strings.ToUpper(secret)
	bucket := policy(t, func(c *ratelimit.RateLimitPolicyConfig) {
		c.Algorithm = ratelimit.AlgorithmTokenBucket
		c.Parameters = ratelimit.TokenBucketParameters{Capacity: 10, RefillTokens: 10, RefillPeriod: time.Second}
	})
	sliding := policy(t, func(c *ratelimit.RateLimitPolicyConfig) {
		c.Algorithm = ratelimit.AlgorithmSlidingWindowCounter
		c.Parameters = ratelimit.SlidingWindowCounterParameters{Limit: 10, Window: time.Second}
	})
	revised := policy(t, func(c *ratelimit.RateLimitPolicyConfig) { c.Revision = 11 })
	renamed := policy(t, func(c *ratelimit.RateLimitPolicyConfig) { c.ID = "login1" })
	keys := map[string]string{
		"base":      keyOf(t, "a", secret, kindState, policy(t), who),
		"namespace": keyOf(t, "b", secret, kindState, policy(t), who),
		"secret":    keyOf(t, "a", other, kindState, policy(t), who),
		"kind":      keyOf(t, "a", secret, kindSimulation, policy(t), who),
		"subject":   keyOf(t, "a", secret, kindState, policy(t), subject(t, "bob")),
		"revision":  keyOf(t, "a", secret, kindState, revised, who),
		"policy":    keyOf(t, "a", secret, kindState, renamed, who),
		"bucket":    keyOf(t, "a", secret, kindState, bucket, who),
		"sliding":   keyOf(t, "a", secret, kindState, sliding, who),
	}
	seen := map[string]string{}
	digests := map[string]string{}
	for name, key := range keys {
		if before, twice := seen[key]; twice {
			t.Errorf("%s and %s share the key %s", name, before, key)
		}
		seen[key] = name
		digest := key[strings.LastIndexByte(key, ':')+1:]
		if before, twice := digests[digest]; twice && name != "namespace" && name != "kind" && before != "namespace" && before != "kind" {
			t.Errorf("%s and %s share the digest %s", name, before, digest)
		}
		if name != "namespace" && name != "kind" {
			digests[digest] = name
		}
		// One slot in a cluster, and nothing that a pattern or a hash tag could catch.
		if !regexp.MustCompile(`^edgelimit:[A-Za-z0-9._-]+:rate:[A-Za-z0-9._-]+:(state|sim):[A-Za-z0-9_-]{43}$`).MatchString(key) {
			t.Errorf("%s: key %q", name, key)
		}
	}
	// The same parameters under another maximum cost are another policy, but the same key: the stored
	// fingerprint tells them apart.
	cheaper := policy(t, func(c *ratelimit.RateLimitPolicyConfig) { c.MaxCost = 1 })
	if keyOf(t, "a", secret, kindState, cheaper, who) != keys["base"] {
		t.Error("the key depends on more than ID, revision and algorithm")
	}
}

// TestLengthPrefix: fields cannot flow into each other.
func TestLengthPrefix(t *testing.T) {
	t.Parallel()
	b, err := NewKeyBuilder("a", testSecret)
	if err != nil {
		t.Fatal(err)
	}
	key := func(fields ...string) string {
		var input []byte
		for _, f := range fields[:len(fields)-1] {
			input = appendField(input, f)
		}
		return b.key("", input, []byte(fields[len(fields)-1]))
	}
	seen := map[string][]string{}
	for _, fields := range [][]string{
		{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"}, {"abc"}, {"a", "b", "c"}, {"a", "", "bc"}, {"a:bc", ""}, {"a\x00\x00\x00\x02bc", ""},
	} {
		k := key(fields...)
		if before, twice := seen[k]; twice {
			t.Errorf("%q and %q share a key", fields, before)
		}
		seen[k] = fields
	}
}

// TestKeyPrivacy: whatever an identity holds, nothing of it is in a key, and two identities never
// share one.
func TestKeyPrivacy(t *testing.T) {
	t.Parallel()
	identities := []string{
		"alice@example.com", "192.0.2.1", "api-key-0123456789", "/v1/login?token=abcdefgh", "a:b", "a:", ":b", "a", "a\x00b", "a\x00", "{slot}", "}{", "*", "user with spaces",
		"\U0001F600\U0001F600", "é", "e\u0301", "line\r\nbreak", strings.Repeat("x", 10_000), strings.Repeat("x", 10_001), "$-1\r\n", "\xff\xfe",
	}
	seen := map[string]string{}
	p := policy(t)
	for _, identity := range identities {
		who := subject(t, identity)
		key := keyOf(t, "production", string(testSecret), kindState, p, who)
		if before, twice := seen[key]; twice {
			t.Errorf("%.20q and %.20q share a key", identity, before)
		}
		seen[key] = identity
		if len(identity) > 3 && strings.Contains(key, identity) || strings.Contains(key, who.String()) || len(key) > 120 {
			t.Errorf("%.20q: key %q", identity, key)
		}
	}
}

// TestKeysTogether: the builder's buffers are not shared between calls.
func TestKeysTogether(t *testing.T) {
	t.Parallel()
	b, err := NewKeyBuilder("a", testSecret)
	if err != nil {
		t.Fatal(err)
	}
	keys := b.rateKeys(policy(t), kindState)
	subjects := make([]ratelimit.SubjectDigest, 8)
	want := make([]string, len(subjects))
	for i := range subjects {
		subjects[i] = subject(t, strings.Repeat("x", i+1))
		want[i] = keys.of(subjects[i])
	}
	for i := range subjects {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 200 {
				if got := keys.of(subjects[i]); got != want[i] {
					t.Fatalf("key is %s, want %s", got, want[i])
				}
			}
		})
	}
}

func TestNewKeyBuilder(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", MaxNamespaceBytes)
	for _, namespace := range []string{"a", "A.b_c-9", long} {
		if _, err := NewKeyBuilder(namespace, testSecret); err != nil {
			t.Errorf("%q: %v", namespace, err)
		}
	}
	for namespace, want := range map[string]string{
		"": "namespace of 0 characters", long + "n": "namespace of 65 characters", "a:b": "':'", "a{b": "'{'", "a b": "' '", "é": "want A-Z", "a\x00": `'\x00'`, "a*": "'*'",
	} {
		if _, err := NewKeyBuilder(namespace, testSecret); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", namespace, err)
		}
	}
	if _, err := NewKeyBuilder("a", testSecret[:31]); err == nil || !strings.Contains(err.Error(), "secret of 31 bytes, at least 32") {
		t.Errorf("a short secret: %v", err)
	}
}
