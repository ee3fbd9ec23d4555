package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

// maxPEMBytes bounds files of certificates and keys.
const maxPEMBytes = 1 << 20

// readFile gives the content of a file of at most limit bytes.
func readFile(path string, limit int64) (content []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			content, err = nil, closed
		}
	}()
	content, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("has more than %d bytes", limit)
	}
	return content, nil
}

// secretFile reads a secret of low..maxSecretBytes. One newline at the end is not part of it.
func (d *decoder) secretFile(path string, low int) Secret {
	name := d.values.text(path)
	content, err := d.read(name, maxSecretBytes+2)
	if err != nil {
		d.add(path, "cannot read %s: %s", quote(name), cause(err))
		return Secret{}
	}
	if cut, ok := bytes.CutSuffix(content, []byte("\n")); ok {
		content = bytes.TrimSuffix(cut, []byte("\r"))
	}
	if len(content) < low || len(content) > maxSecretBytes {
		d.add(path, "the file %s holds %d bytes, want %d..%d", quote(name), len(content), low, maxSecretBytes)
		return Secret{}
	}
	return NewSecret(content)
}

// pool reads trusted certificates.
func (d *decoder) pool(path string) *x509.CertPool {
	name := d.values.text(path)
	content, err := d.read(name, maxPEMBytes)
	if err != nil {
		d.add(path, "cannot read %s: %s", quote(name), cause(err))
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		d.add(path, "the file %s holds no PEM certificate", quote(name))
	}
	return pool
}

// keyPair reads a certificate and its private key, of which either both or none are given. It gives
// nil for none and where something is wrong.
func (d *decoder) keyPair(certPath, keyPath string) *tls.Certificate {
	certName, keyName := d.values.text(certPath), d.values.text(keyPath)
	switch {
	case d.has(certPath) || d.has(keyPath):
		return nil // a wrong type or range was said already
	case certName == "" && keyName == "":
		return nil
	case certName == "":
		d.add(certPath, "is missing, want the certificate of %s", leaf(keyPath))
		return nil
	case keyName == "":
		d.add(keyPath, "is missing, want the private key of %s", leaf(certPath))
		return nil
	}
	cert, certErr := d.read(certName, maxPEMBytes)
	if certErr != nil {
		d.add(certPath, "cannot read %s: %s", quote(certName), cause(certErr))
	}
	key, keyErr := d.read(keyName, maxPEMBytes)
	if keyErr != nil {
		d.add(keyPath, "cannot read %s: %s", quote(keyName), cause(keyErr))
	}
	if certErr != nil || keyErr != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		// The messages of crypto/tls name kinds of blocks, never what they hold.
		d.add(certPath, "%s and %s are no pair of certificate and key: %v", quote(certName), quote(keyName), err)
		return nil
	}
	return &pair
}
