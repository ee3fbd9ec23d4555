package config

import (
	"crypto/tls"
	"net"
	"strings"
	"time"
)

// connection is where the settings of one connection to a Redis stand: those of the connection itself,
// and those of the digests in its keys. Each user of a Redis has one of its own, and none falls back to
// another's.
type connection struct {
	redis string // the section of address, username and so on
	key   string // the section of namespace and hmac-secret
}

// limiterConnection is the rate limiter's.
var limiterConnection = connection{redis: rateLimitPath + ".redis", key: rateLimitPath + ".key"}

// connections lists all of them.
func connections() []connection {
	return []connection{limiterConnection, breakerConnection, cacheConnection}
}

// fields are the keys of the section redis. required says when the address is.
func (c connection) fields(address, required, commandTimeout string) []*field {
	return []*field{
		{
			path: c.redis + ".address", kind: kindText, low: 1, high: 512, required: required, allowed: "one host:port",
			about: address,
		},
		{
			path: c.redis + ".username", kind: kindText, high: 512, def: "",
			about: "The ACL user. Needs a password.",
		},
		{
			path: c.redis + ".password", kind: kindSecret, high: maxSecretBytes, def: "",
			about: "The password. Not together with password-file.",
		},
		{
			path: c.redis + ".password-file", kind: kindFile, high: maxPathBytes, def: "", allowed: oneNewline,
			about: "The file that holds the password, at most 4096 bytes.",
		},
		{
			path: c.redis + ".database", kind: kindInteger, def: int64(0), low: 0, high: 65535,
			about: "The number of the database.",
		},
		{
			path: c.tls() + ".enabled", kind: kindBoolean, def: false,
			about: "Speaks TLS 1.2 or later to Redis. The other keys of this section are judged only where it is true.",
		},
		{
			path: c.tls() + ".ca-file", kind: kindFile, high: maxPathBytes, def: "",
			about: "PEM certificates that are trusted instead of the system's.",
		},
		{
			path: c.tls() + ".cert-file", kind: kindFile, high: maxPathBytes, def: "",
			about: "PEM certificate of this client. Together with key-file.",
		},
		{
			path: c.tls() + ".key-file", kind: kindFile, high: maxPathBytes, def: "",
			about: "PEM private key of this client. Together with cert-file.",
		},
		{
			path: c.tls() + ".server-name", kind: kindText, high: 253, def: "",
			about: "The name that the server's certificate must carry. Empty means the host of address.",
		},
		{
			path: c.redis + ".command-timeout", kind: kindDuration, def: 50 * time.Millisecond, low: ms, high: int64(maxCommandTime),
			about: commandTimeout,
		},
		{
			path: c.redis + ".pool-size", kind: kindInteger, def: int64(16), low: 1, high: 4096,
			about: "The greatest number of connections.",
		},
	}
}

func (c connection) tls() string { return c.redis + ".tls" }

// isTLS reports whether a path is that of the TLS settings of a connection.
func isTLS(path string) bool {
	for _, c := range connections() {
		if path == c.tls() {
			return true
		}
	}
	return false
}

// redisSection reports whether a path is that of a connection's settings.
func redisSection(path string) bool {
	for _, c := range connections() {
		if path == c.redis {
			return true
		}
	}
	return false
}

// connect gives the settings of a connection that is used: what is missing or wrong is said.
func (d *decoder) connect(c connection) Redis {
	r := d.connectionValues(c)
	d.address(c, true)
	r.Password = d.password(c)
	r.TLS = d.redisTLS(c)
	return r
}

// connectionValues gives the settings that need no judging beside that of their fields.
func (d *decoder) connectionValues(c connection) Redis {
	return Redis{
		Address:        d.values.text(c.redis + ".address"),
		Username:       d.values.text(c.redis + ".username"),
		Database:       d.values.number(c.redis + ".database"),
		CommandTimeout: d.values.duration(c.redis + ".command-timeout"),
		PoolSize:       d.values.number(c.redis + ".pool-size"),
	}
}

func (d *decoder) namespace(c connection) string {
	namespace := d.values.text(c.key + ".namespace")
	if !namespaceForm.MatchString(namespace) {
		d.add(c.key+".namespace", "is %s, want 1..64 characters of a-z A-Z 0-9 . _ -", quote(namespace))
	}
	return namespace
}

// hmacSecret gives the secret of a connection's digests, the zero value where there is none and none is
// required.
func (d *decoder) hmacSecret(c connection, required bool) Secret {
	path, filePath := c.key+".hmac-secret", c.key+".hmac-secret-file"
	inline, file := d.values.given(path), d.values.text(filePath) != ""
	switch {
	case inline && file:
		d.add(path, "is given together with hmac-secret-file, want one of the two")
	case inline:
		return NewSecret([]byte(d.values.text(path)))
	case file:
		return d.secretFile(filePath, minSecretBytes)
	case required && !d.has(path) && !d.has(filePath):
		d.add(path, "is missing, want it or hmac-secret-file: %d bytes or more", minSecretBytes)
	}
	return Secret{}
}

func (d *decoder) password(c connection) Secret {
	path, filePath, username := c.redis+".password", c.redis+".password-file", c.redis+".username"
	inline, file := d.values.text(path), d.values.text(filePath)
	switch {
	case inline != "" && file != "":
		d.add(path, "is given together with password-file, want one of the two")
	case inline != "":
		return NewSecret([]byte(inline))
	case file != "":
		return d.secretFile(filePath, 1)
	case d.values.text(username) != "" && !d.has(path) && !d.has(filePath):
		d.add(username, "is given without password or password-file: the connection would be another user's")
	}
	return Secret{}
}

// address holds the address to one host and port.
func (d *decoder) address(c connection, required bool) {
	path := c.redis + ".address"
	address := d.values.text(path)
	switch {
	case d.has(path):
	case address == "":
		if required {
			d.add(path, "is missing, want one host:port")
		}
	case strings.ContainsAny(address, ",; \t"):
		d.add(path, "is %s, want one host:port: %s", quote(address), oneServer)
	case strings.Contains(address, "://"):
		scheme, _, _ := strings.Cut(address, "://") // what follows may hold a password
		d.add(path, "is a URL (%s), want one host:port; user, database and TLS have their own keys, and %s", quote(scheme+"://"), oneServer)
	default:
		if problem := hostPort(address, 1); problem != "" {
			d.add(path, "is %s, want one host:port: %s", quote(address), problem)
		} else if host, _, _ := net.SplitHostPort(address); host == "" {
			d.add(path, "is %s, want one host:port: the host is empty", quote(address))
		}
	}
}

// redisTLS gives nil where TLS is off.
func (d *decoder) redisTLS(c connection) *tls.Config {
	if !d.values.boolean(c.tls() + ".enabled") {
		return nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: d.values.text(c.tls() + ".server-name")}
	if t.ServerName == "" {
		t.ServerName, _, _ = net.SplitHostPort(d.values.text(c.redis + ".address"))
	}
	if d.values.text(c.tls()+".ca-file") != "" {
		t.RootCAs = d.pool(c.tls() + ".ca-file")
	}
	if pair := d.keyPair(c.tls()+".cert-file", c.tls()+".key-file"); pair != nil {
		t.Certificates = []tls.Certificate{*pair}
	}
	return t
}
