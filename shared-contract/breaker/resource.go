package breaker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MaxResourceBytes bounds the name of a resource.
const MaxResourceBytes = 1024

// ResourceDigest is the pseudonym of what a breaker protects, in the form of a rate limit's subject.
// The zero value stands for none and is refused by providers.
type ResourceDigest = ratelimit.SubjectDigest

// ResourceDigester turns the names of resources (a host, a tenant's shard, a queue) into digests,
// under a key derived from the deployment's secret for this one purpose.
type ResourceDigester struct {
	key []byte
}

// NewResourceDigester derives the digester's key from a secret of at least ratelimit.MinSecretBytes.
// Instances with the same secret give the same digests, and so share breakers.
func NewResourceDigester(secret []byte) (*ResourceDigester, error) {
	key, err := ratelimit.DeriveKey(secret, "edgelimit resource digest v1")
	if err != nil {
		return nil, err
	}
	return &ResourceDigester{key: key}, nil
}

// Digest gives the HMAC-SHA256 of a name, which is 1..MaxResourceBytes of any bytes.
func (d *ResourceDigester) Digest(name string) (ResourceDigest, error) {
	if name == "" {
		return ResourceDigest{}, errors.New("breaker: empty resource name")
	}
	if len(name) > MaxResourceBytes {
		return ResourceDigest{}, fmt.Errorf("breaker: resource name of %d bytes, at most %d", len(name), MaxResourceBytes)
	}
	mac := hmac.New(sha256.New, d.key)
	mac.Write([]byte(name))
	return ratelimit.ParseSubjectDigest(hex.EncodeToString(mac.Sum(nil)))
}
