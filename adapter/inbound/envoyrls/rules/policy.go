package rules

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// PolicyPrefix begins the ID of every policy of this package.
const PolicyPrefix = "envoy."

// step is one descriptor on the way to a rule.
type step struct {
	key, value string // value is "" where the descriptor has none
}

const (
	idHashChars = 16
	idNameChars = ratelimit.MaxPolicyIDBytes - len(PolicyPrefix) - 1 - idHashChars
)

// policyID names the place of a rule: the domain and the keys, as far as they fit, and a hash over
// those and the values.
func policyID(domain string, steps []step) ratelimit.PolicyID {
	input := appendText(nil, domain)
	name := make([]byte, 0, idNameChars)
	name = appendName(name, domain)
	for _, s := range steps {
		input = appendText(input, s.key)
		input = appendText(input, s.value)
		name = appendName(append(name, '.'), s.key)
	}
	if len(name) > idNameChars {
		name = name[:idNameChars]
	}
	sum := sha256.Sum256(input)
	return ratelimit.PolicyID(PolicyPrefix + string(name) + "-" + hex.EncodeToString(sum[:idHashChars/2]))
}

// appendText adds a text with its length before it, so that no two lists of texts are the same bytes.
func appendText(to []byte, text string) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(len(text)))
	return append(to, text...)
}

// appendName adds a text with every character that no policy ID has as a hyphen.
func appendName(to []byte, text string) []byte {
	for i := range len(text) {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' {
			c = '-'
		}
		to = append(to, c)
	}
	return to
}

// withRevision makes a policy whose revision is derived from its parameters.
func withRevision(config ratelimit.RateLimitPolicyConfig) (*ratelimit.RateLimitPolicy, error) {
	config.Revision = 1
	first, err := ratelimit.NewRateLimitPolicy(config)
	if err != nil {
		return nil, err
	}
	fingerprint, err := strconv.ParseUint(first.Fingerprint(), 16, 64)
	if err != nil {
		return nil, fmt.Errorf("rules: fingerprint of policy %s: %w", first.ID(), err)
	}
	config.Revision = 1 + int64(fingerprint%ratelimit.MaxPolicyRevision)
	return ratelimit.NewRateLimitPolicy(config)
}
