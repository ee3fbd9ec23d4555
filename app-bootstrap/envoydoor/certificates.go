package envoydoor

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

const maxPEMBytes = 1 << 20

// certificates are the files of TLS, as they were when they last belonged together.
type certificates struct {
	cert, key, clientCA string
	content             [3][]byte // of the last try, good or bad
	outcome             error     // of that try
	current             atomic.Pointer[tls.Config]
}

// newCertificates gives nil where there is no TLS.
func newCertificates(cfg config.EnvoyRLS) (*certificates, error) {
	if cfg.TLSCert == "" {
		return nil, nil //nolint:nilnil // no TLS is a valid answer
	}
	c := &certificates{cert: cfg.TLSCert, key: cfg.TLSKey, clientCA: cfg.TLSClientCA}
	if _, err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *certificates) files() []string {
	if c == nil {
		return nil
	}
	return []string{c.cert, c.key, c.clientCA}
}

// reload reads the files and reports whether they came into use. Where they are bad, the last good ones
// stay.
func (c *certificates) reload() (replaced bool, err error) {
	var content [3][]byte
	for i, name := range c.files() {
		if name == "" {
			continue
		}
		if content[i], err = readFile(name, maxPEMBytes); err != nil {
			return false, fmt.Errorf("envoydoor: TLS: %w", err)
		}
	}
	if c.content[0] != nil && bytes.Equal(content[0], c.content[0]) && bytes.Equal(content[1], c.content[1]) && bytes.Equal(content[2], c.content[2]) {
		return false, c.outcome
	}
	cfg, err := c.parse(content)
	c.content, c.outcome = content, err
	if err != nil {
		return false, err
	}
	c.current.Store(cfg)
	return true, nil
}

func (c *certificates) parse(content [3][]byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		// The messages of crypto/tls name kinds of blocks, never what they hold.
		return nil, fmt.Errorf("envoydoor: TLS: %s and %s are no pair of certificate and key: %w", c.cert, c.key, err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if c.clientCA != "" {
		cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !cfg.ClientCAs.AppendCertsFromPEM(content[2]) {
			return nil, fmt.Errorf("envoydoor: TLS: %s holds no PEM certificate", c.clientCA)
		}
	}
	return cfg, nil
}

// server is a configuration in which every handshake uses what is current.
func (c *certificates) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if cfg := c.current.Load(); cfg != nil {
				return cfg, nil
			}
			return nil, errors.New("envoydoor: TLS: there is no certificate")
		},
	}
}
