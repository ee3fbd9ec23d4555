package memory

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// name tells states apart: a subject digest, each bit of which is turned over or not by the pad of a
// policy. Digests of one policy thereby differ as they did, and those of two policies meet with a
// chance of 2^-256, whoever chose them, since pads are secret.
type name struct{ w0, w1, w2, w3 uint64 } // no array: the compiler keeps those in memory

// naming makes names, from secrets of this limiter.
type naming struct {
	secret [sha256.Size]byte
	keys   [2]uint64
}

func newNaming() naming {
	var n naming
	rand.Read(n.secret[:])
	for i := range n.keys {
		pad := n.derive(fmt.Sprintf("hash key %d", i))
		n.keys[i] = pad.w0
	}
	return n
}

// derive gives 256 bits for a text.
func (n *naming) derive(text string) name {
	mac := hmac.New(sha256.New, n.secret[:])
	mac.Write([]byte(text))
	sum := mac.Sum(nil)
	return name{
		binary.LittleEndian.Uint64(sum[0:]), binary.LittleEndian.Uint64(sum[8:]),
		binary.LittleEndian.Uint64(sum[16:]), binary.LittleEndian.Uint64(sum[24:]),
	}
}

// pad is that of a policy. It is derived from what a state depends on, so that the same policy has the
// same pad in every generation of policies, and nothing has to be remembered of past ones.
func (n *naming) pad(policy *ratelimit.RateLimitPolicy) name {
	return n.derive(fmt.Sprintf("policy|%s|%d|%v|%s", policy.ID(), policy.Revision(), policy.Algorithm(), policy.Fingerprint()))
}

// name is that of a subject under a pad.
func (pad *name) name(subject *ratelimit.SubjectDigest) name {
	w0, w1, w2, w3 := subject.Words()
	return name{w0 ^ pad.w0, w1 ^ pad.w1, w2 ^ pad.w2, w3 ^ pad.w3}
}

// hash depends on every bit of a name. Callers choose digests, but know neither pads nor keys, and so
// cannot choose hashes.
func (n *naming) hash(k name) uint64 {
	return fold(fold(k.w0, k.w1)^n.keys[0], fold(k.w2, k.w3)^n.keys[1])
}

// fold is both halves of a product, one over the other.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
