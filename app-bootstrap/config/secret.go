package config

import (
	"bytes"
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret holds bytes that must not be printed: every way of formatting, encoding or logging it
// gives "[redacted]". The zero value holds none.
type Secret struct {
	// A function, since reflection prints the content of unexported slices and strings, and of a
	// function its address only.
	reveal func() []byte
}

// NewSecret keeps a copy of content.
func NewSecret(content []byte) Secret {
	kept := bytes.Clone(content)
	return Secret{reveal: func() []byte { return kept }}
}

// Reveal gives a copy of the content, nil for the zero value.
func (s Secret) Reveal() []byte {
	if s.reveal == nil {
		return nil
	}
	return bytes.Clone(s.reveal())
}

// IsZero reports whether there is no content.
func (s Secret) IsZero() bool { return s.reveal == nil || len(s.reveal()) == 0 }

// Equal reports whether both hold the same content.
func (s Secret) Equal(other Secret) bool { return bytes.Equal(s.Reveal(), other.Reveal()) }

// String gives "[redacted]".
func (Secret) String() string { return redacted }

// GoString gives "[redacted]".
func (Secret) GoString() string { return redacted }

// Format writes "[redacted]" whatever the verb.
func (Secret) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(redacted)) }

// MarshalText gives "[redacted]".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON gives "[redacted]".
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue gives "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
