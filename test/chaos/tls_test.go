package chaos

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// handshake is the row of a TLS handshake that fails.
var handshake = certainty{
	name: "tls", says: "the TLS handshake of a new connection fails", outcome: "Unavailable TLS",
}

// TestCertaintyByTLS cuts the handshakes of new connections, with the library's proxy: what is encrypted
// has no commands for ours to know.
func TestCertaintyByTLS(t *testing.T) {
	t.Parallel()
	files, client := certificate(t)
	b := newBench(t, options{cold: true, timeout: 10 * waits, tls: client, args: []string{
		"--tls-cert-file", files[0], "--tls-key-file", files[1], "--tls-auth-clients", "no",
	}})
	between := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "tls", "127.0.0.1:0", b.server.Addr)
	if err := between.Start(); err != nil {
		t.Fatal(err)
	}
	defer between.Stop()
	b.options.direct = true
	b.options.cold = false
	b.options.store = func(c *cacheredis.StoreConfig) { c.Address, c.TLS = between.Listen, client }
	b.provide()
	r := deepFixed("tls")
	if o := b.evaluate(r); !ratelimit.Allows(o) {
		t.Fatalf("before the fault: %s", word(o))
	}
	// No connection is there when the fault comes.
	between.Stop()
	addToxic(t, between, toxic{kind: "limit_data", attributes: map[string]int{"bytes": 100}})
	if err := between.Start(); err != nil {
		t.Fatal(err)
	}
	if got := word(b.evaluate(r)); got != handshake.outcome {
		t.Errorf("outcome is %s, want %s", got, handshake.outcome)
	}
	b.settle()
	if spent := b.spent(r); spent != 1 {
		t.Errorf("%d spent, want the one before", spent)
	}
}

// certificate makes the files of one for 127.0.0.1, and a client's settings that trust it.
func certificate(t testing.TB) (files [2]string, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: der}, {Type: "PRIVATE KEY", Bytes: private}} {
		files[i] = filepath.Join(dir, []string{"cert.pem", "key.pem"}[i])
		if err := os.WriteFile(files[i], pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return files, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "127.0.0.1"}
}
