package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// pair writes a self-signed certificate and its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return write(t, "cert.pem", encode("CERTIFICATE", der)), write(t, "key.pem", encode("EC PRIVATE KEY", keyDER))
}

func TestTLSOfRedisAndService(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	c, err := Load(Source{File: "testdata/ok_minimal_redis.yaml", Flags: map[string]any{
		pathTLS + ".enabled": true, pathTLS + ".ca-file": cert, pathTLS + ".cert-file": cert, pathTLS + ".key-file": key,
		pathHTTPAddress: "0.0.0.0:8443", pathTLSCert: cert, pathTLSKey: key,
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := c.RateLimit.Redis.TLS
	if r == nil || r.MinVersion != tls.VersionTLS12 || r.RootCAs == nil || len(r.Certificates) != 1 || r.ServerName != "redis.internal" {
		t.Errorf("TLS of Redis is %+v", r)
	}
	if s := c.Service.TLS; s == nil || s.MinVersion != tls.VersionTLS12 || len(s.Certificates) != 1 {
		t.Errorf("TLS of the service is %+v", s)
	}
	c, err = Load(Source{File: "testdata/ok_minimal_redis.yaml", Flags: map[string]any{
		pathTLS + ".enabled": true, pathTLS + ".server-name": "other.name",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.RateLimit.Redis.TLS; r.ServerName != "other.name" || r.RootCAs != nil || r.Certificates != nil {
		t.Errorf("TLS of Redis is %+v", r)
	}
}

func TestSecretFiles(t *testing.T) {
	t.Parallel()
	const base = `app: {rate-limit: {enabled: true, provider: redis, default-policy: p, redis: {address: "a:1"}, policies: {p: {revision: 1, algorithm: fixed-window, limit: 1, window: 1s}}}}`
	for name, test := range map[string]struct{ content, want, fault string }{
		"plain":            {strings.Repeat("s", 32), strings.Repeat("s", 32), ""},
		"newline":          {strings.Repeat("s", 32) + "\n", strings.Repeat("s", 32), ""},
		"windows newline":  {strings.Repeat("s", 32) + "\r\n", strings.Repeat("s", 32), ""},
		"only one newline": {strings.Repeat("s", 32) + "\n\n", strings.Repeat("s", 32) + "\n", ""},
		"space is content": {strings.Repeat("s", 31) + " \n", strings.Repeat("s", 31) + " ", ""},
		"binary":           {strings.Repeat("\x00\xff", 16), strings.Repeat("\x00\xff", 16), ""},
		"longest":          {strings.Repeat("s", 4096) + "\r\n", strings.Repeat("s", 4096), ""},
		"too short":        {strings.Repeat("s", 31) + "\n", "", "holds 31 bytes, want 32..4096"},
		"too long":         {strings.Repeat("s", 4097), "", "holds 4097 bytes, want 32..4096"},
		"far too long":     {strings.Repeat("s", 100_000), "", "has more than 4098 bytes"},
		"empty":            {"", "", "holds 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, "secret", test.content)
			c, err := Load(Source{File: write(t, "c.yaml", base), Flags: map[string]any{pathHMACSecretFile: file}})
			if test.fault == "" {
				if err != nil || string(c.RateLimit.Key.Secret.Reveal()) != test.want {
					t.Errorf("got %q, %v", c.RateLimit.Key.Secret.Reveal(), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.fault) || !strings.Contains(err.Error(), pathHMACSecretFile) || !strings.Contains(err.Error(), file) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "ssss") {
				t.Errorf("repeats the content: %v", err)
			}
		})
	}
	if _, err := Load(Source{File: write(t, "c.yaml", base), Flags: map[string]any{pathHMACSecretFile: t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
}
