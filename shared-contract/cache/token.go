package cache

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
)

// Token names one version of an entry. It is opaque: TokenBytes characters of A-Z a-z 0-9 - _, to be
// compared and handed back and nothing else. The zero value names no version.
type Token string

// TokenBytes is the length of a token: 128 bits in unpadded base64url.
const TokenBytes = 22

// NewToken makes a token that nobody else has. It is for implementations.
func NewToken() Token {
	var random [16]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails.
	return Token(base64.RawURLEncoding.EncodeToString(random[:]))
}

// CheckToken holds a token that comes from outside to its form.
func CheckToken(token Token) error {
	if len(token) != TokenBytes {
		return fmt.Errorf("token of %d bytes, want %d", len(token), TokenBytes)
	}
	for i := range len(token) {
		c := token[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return fmt.Errorf("token has the byte %#x, want A-Z a-z 0-9 - _", c)
		}
	}
	return nil
}
