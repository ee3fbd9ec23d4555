package cacheredis

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"sync"

	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MaxNamespaceBytes bounds a namespace.
const MaxNamespaceBytes = 64

// Capabilities, kinds and the prefix of every physical key.
const (
	keyPrefix         = "edgelimit"
	capabilityRate    = "rate"
	capabilityCache   = "cache"
	capabilityStore   = "store"
	capabilityBreaker = "breaker"
	kindState         = "state"
	kindSimulation    = "sim"
	kindEntry         = "entry"
	kindProbe         = "probe"
)

// KeyBuilder makes physical keys: prefix, namespace, capability, region, kind and digest, joined by
// colons, of which only the digest depends on a subject:
//
//	edgelimit:production:rate:login:state:Zm9v…
//
// The digest is the unpadded base64url form of an HMAC-SHA256, under a key derived from the
// deployment's secret for this one purpose, over fields that are each preceded by their length.
// Two different lists of fields therefore never share an input.
type KeyBuilder struct {
	namespace string
	macs      sync.Pool
}

// digester is an HMAC state with room for its input and output, reused between keys.
type digester struct {
	mac    hash.Hash
	buffer []byte
}

// NewKeyBuilder derives the key of digests from a secret of at least ratelimit.MinSecretBytes. A
// namespace is 1..64 characters of A-Z a-z 0-9 . _ -.
func NewKeyBuilder(namespace string, secret []byte) (*KeyBuilder, error) {
	if err := checkNamespace(namespace); err != nil {
		return nil, err
	}
	key, err := ratelimit.DeriveKey(secret, "edgelimit key digest v1")
	if err != nil {
		return nil, fmt.Errorf("cacheredis: %w", err)
	}
	b := &KeyBuilder{namespace: namespace}
	b.macs.New = func() any {
		return &digester{mac: hmac.New(sha256.New, key), buffer: make([]byte, 0, 256)}
	}
	return b, nil
}

func checkNamespace(namespace string) error { return checkWord("namespace", namespace) }

// checkWord holds a part of a physical key that people choose to its form, in which no colon is.
func checkWord(what, word string) error {
	if word == "" || len(word) > MaxNamespaceBytes {
		return fmt.Errorf("cacheredis: %s of %d characters, want 1..%d", what, len(word), MaxNamespaceBytes)
	}
	for i := range len(word) {
		c := word[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '.' && c != '_' && c != '-' {
			return fmt.Errorf("cacheredis: %s has the character %q, want A-Z a-z 0-9 . _ -", what, c)
		}
	}
	return nil
}

// prefix is the part of a key before its digest.
func (b *KeyBuilder) prefix(capability, region, kind string) string {
	return keyPrefix + ":" + b.namespace + ":" + capability + ":" + region + ":" + kind + ":"
}

// appendField adds a field with its length before it.
func appendField[T ~string | ~[]byte](to []byte, field T) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(len(field))) //nolint:gosec // G115: fields are at most a few hundred bytes.
	return append(to, field...)
}

// key joins a prefix and the digest of input, then tail, as one more field.
func (b *KeyBuilder) key(prefix string, input, tail []byte) string {
	d := b.macs.Get().(*digester) //nolint:forcetypeassert // New makes nothing else.
	defer b.macs.Put(d)
	d.mac.Reset()
	d.buffer = append(d.buffer[:0], input...)
	d.buffer = appendField(d.buffer, tail)
	_, _ = d.mac.Write(d.buffer) // A hash never fails.
	var sum [sha256.Size]byte
	digest := d.mac.Sum(sum[:0])
	d.buffer = append(d.buffer[:0], prefix...)
	d.buffer = base64.RawURLEncoding.AppendEncode(d.buffer, digest)
	return string(d.buffer)
}

// policyKeys makes the keys of one policy; what depends on the policy alone is made once.
type policyKeys struct {
	builder *KeyBuilder
	prefix  string
	input   []byte
}

// rateKeys makes keys for digest(policyId, policyRevision, algorithm, subjectDigest).
func (b *KeyBuilder) rateKeys(policy *ratelimit.RateLimitPolicy, kind string) policyKeys {
	input := appendField(nil, policy.ID())
	input = appendField(input, fmt.Sprint(policy.Revision()))
	input = appendField(input, policy.Algorithm().String())
	return policyKeys{
		builder: b, prefix: b.prefix(capabilityRate, string(policy.ID()), kind), input: input,
	}
}

// breakerKeys makes keys for digest(policyId, policyRevision, "circuit-breaker", resourceDigest).
func (b *KeyBuilder) breakerKeys(policy *breaker.Policy, kind string) policyKeys {
	input := appendField(nil, policy.ID())
	input = appendField(input, fmt.Sprint(policy.Revision()))
	input = appendField(input, "circuit-breaker")
	return policyKeys{
		builder: b, prefix: b.prefix(capabilityBreaker, string(policy.ID()), kind), input: input,
	}
}

func (k policyKeys) of(subject ratelimit.SubjectDigest) string {
	bytes := subject.Bytes()
	return k.builder.key(k.prefix, k.input, bytes[:])
}
