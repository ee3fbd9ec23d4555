package composition

import (
	"crypto/rand"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// secretOf gives the configured secret, or a random one of this process where the memory provider has
// none. Elsewhere none stays none, which whoever takes it refuses.
func secretOf(key config.Key, provider config.Provider) (secret []byte, random bool) {
	if !key.Secret.IsZero() || provider != config.ProviderMemory {
		return key.Secret.Reveal(), false
	}
	secret = make([]byte, ratelimit.MinSecretBytes)
	_, _ = rand.Read(secret) // crypto/rand.Read never fails.
	return secret, true
}
