package ratelimit

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// MinSecretBytes is the least length of the secret from which digest keys are derived.
const MinSecretBytes = 32

// MaxIdentityBytes bounds a raw identity that is turned into a digest.
const MaxIdentityBytes = 64 << 10

// SubjectDigest is the pseudonym of a subject: 256 bits, written as 64 lower-case hexadecimal
// characters. The zero value stands for none and is refused by providers.
type SubjectDigest struct {
	words [sha256.Size / 8]uint64 // little endian
	set   bool
}

// digestOf is the digest with these bits.
func digestOf(b *[sha256.Size]byte) SubjectDigest {
	d := SubjectDigest{set: true}
	for i := range d.words {
		d.words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return d
}

// ParseSubjectDigest reads 64 lower-case hexadecimal characters. Its error does not repeat the text.
func ParseSubjectDigest(text string) (SubjectDigest, error) {
	if len(text) != 2*sha256.Size {
		return SubjectDigest{}, fmt.Errorf("ratelimit: subject digest has %d characters, want %d", len(text), 2*sha256.Size)
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return SubjectDigest{}, errors.New("ratelimit: subject digest has a character that is not 0-9 or a-f")
		}
	}
	var b [sha256.Size]byte
	if _, err := hex.Decode(b[:], []byte(text)); err != nil {
		return SubjectDigest{}, fmt.Errorf("ratelimit: subject digest: %w", err)
	}
	return digestOf(&b), nil
}

// IsZero reports whether there is no digest.
func (d SubjectDigest) IsZero() bool { return !d.set }

// Bytes gives the 256 bits.
func (d SubjectDigest) Bytes() [sha256.Size]byte {
	var b [sha256.Size]byte
	for i, word := range d.words {
		binary.LittleEndian.PutUint64(b[8*i:], word)
	}
	return b
}

// Words gives the 256 bits as the digest holds them, for what compares or mixes them: Bytes in words of
// eight, the first byte of each the lowest.
func (d *SubjectDigest) Words() (w0, w1, w2, w3 uint64) {
	return d.words[0], d.words[1], d.words[2], d.words[3]
}

// String gives 64 lower-case hexadecimal characters, or "" for the zero value.
func (d SubjectDigest) String() string {
	if !d.set {
		return ""
	}
	b := d.Bytes()
	return hex.EncodeToString(b[:])
}

// SubjectDigester turns raw identities (an address, a user, an API key) into digests, under a key
// derived from the deployment's secret for this one purpose. Raw identities go no further than here.
type SubjectDigester struct {
	key []byte
}

// NewSubjectDigester derives the digester's key from a secret of at least MinSecretBytes. Instances
// with the same secret give the same digests; a new secret gives every subject a fresh quota.
func NewSubjectDigester(secret []byte) (*SubjectDigester, error) {
	key, err := DeriveKey(secret, "edgelimit subject digest v1")
	if err != nil {
		return nil, err
	}
	return &SubjectDigester{key: key}, nil
}

// Digest gives the HMAC-SHA256 of identity, which is 1..MaxIdentityBytes of any bytes.
func (d *SubjectDigester) Digest(identity string) (SubjectDigest, error) {
	if identity == "" {
		return SubjectDigest{}, errors.New("ratelimit: empty identity")
	}
	if len(identity) > MaxIdentityBytes {
		return SubjectDigest{}, fmt.Errorf("ratelimit: identity of %d bytes, at most %d", len(identity), MaxIdentityBytes)
	}
	mac := hmac.New(sha256.New, d.key)
	mac.Write([]byte(identity))
	var b [sha256.Size]byte
	mac.Sum(b[:0])
	return digestOf(&b), nil
}

// DeriveKey derives a 256-bit key for one labelled purpose from a secret of at least MinSecretBytes
// (HKDF-SHA256, RFC 5869). Keys of different labels reveal nothing about each other.
func DeriveKey(secret []byte, label string) ([]byte, error) {
	if len(secret) < MinSecretBytes {
		return nil, fmt.Errorf("ratelimit: secret of %d bytes, at least %d", len(secret), MinSecretBytes)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, label, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: derive %s: %w", label, err)
	}
	return key, nil
}
