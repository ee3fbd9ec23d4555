package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const content = "correct-horse-battery-staple-0123456789"
	secret := NewSecret([]byte(content))
	c := RateLimit{Enabled: true, Key: Key{Namespace: "n", Secret: secret}, Redis: Redis{Password: secret}}
	hidden := struct{ inner Secret }{secret} // fmt cannot call methods of an unexported field

	var printed []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s", "%p"} {
		for _, value := range []any{secret, &secret, c, &c, []Secret{secret}, map[string]Secret{"k": secret}, hidden} {
			printed = append(printed, fmt.Sprintf(verb, value))
		}
	}
	for _, value := range []any{secret, &secret, c, map[string]any{"k": secret}} {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		printed = append(printed, string(encoded))
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		logger := slog.New(handler)
		logger.Info("a", "secret", secret, "pointer", &secret, "config", c, slog.Group("g", "secret", secret))
	}
	printed = append(printed, log.String(), secret.String(), secret.GoString(), fmt.Sprint(fmt.Errorf("x %v", secret)))
	hexed := fmt.Sprintf("%x", content)
	decimals := strings.Trim(fmt.Sprintf("%d", []byte(content)), "[]")
	for _, text := range printed {
		for _, leak := range []string{content, "battery", hexed, strings.ToUpper(hexed), decimals} {
			if strings.Contains(text, leak) {
				t.Errorf("leaks: %s", text)
			}
		}
	}
	if got := fmt.Sprintf("%v %+v %#v %s %q", secret, secret, secret, secret, secret); got != strings.TrimSpace(strings.Repeat(redacted+" ", 5)) {
		t.Errorf("printed as %s", got)
	}
	if got := log.String(); strings.Count(got, redacted) < 8 {
		t.Errorf("logged as %s", got)
	}
}

func TestSecretKeepsItsContent(t *testing.T) {
	t.Parallel()
	given := []byte("abc")
	secret := NewSecret(given)
	given[0] = 'x'
	secret.Reveal()[1] = 'x'
	if got := string(secret.Reveal()); got != "abc" {
		t.Errorf("Reveal gives %q", got)
	}
	if !secret.Equal(NewSecret([]byte("abc"))) || secret.Equal(Secret{}) || secret.IsZero() {
		t.Error("Equal or IsZero is wrong")
	}
	if zero := (Secret{}); !zero.IsZero() || zero.Reveal() != nil || zero.String() != redacted {
		t.Error("the zero value is not empty")
	}
}
