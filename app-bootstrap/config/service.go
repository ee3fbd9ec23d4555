package config

import (
	"crypto/tls"
	"net"
)

// service judges app.service and builds its settings.
func (d *decoder) service(limiter RateLimit) Service {
	d.judge(serviceFields)
	v := d.values
	s := Service{
		HTTPAddress:     v.text(pathHTTPAddress),
		TLSCert:         v.text(pathTLSCert),
		TLSKey:          v.text(pathTLSKey),
		AllowPlaintext:  v.boolean(pathAllowPlaintext),
		DefaultDeadline: v.duration(pathDefaultDeadline),
		MaxDeadline:     v.duration(pathMaxDeadline),
		MaxBodyBytes:    v.integer(servicePath + ".max-body-bytes"),
		ShutdownTimeout: v.duration(servicePath + ".shutdown-timeout"),
		LogFormat:       LogFormat(indexOf(logFormatWords, v.text(servicePath+".log-format"))),
		LogLevel:        logLevels[indexOf(logLevelWords, v.text(servicePath+".log-level"))],
		ForwardAuth:     d.forwardAuth(limiter),
	}
	if pair := d.keyPair(pathTLSCert, pathTLSKey); pair != nil {
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*pair}}
	}
	d.listener(s)
	if d.has(pathDefaultDeadline) || d.has(pathMaxDeadline) {
		return s
	}
	if s.DefaultDeadline > s.MaxDeadline {
		d.add(pathDefaultDeadline, "is %s, want at most max-deadline, which is %s",
			durationText(s.DefaultDeadline), durationText(s.MaxDeadline))
	}
	if limiter.Enabled && limiter.Provider == ProviderRedis && s.DefaultDeadline <= limiter.Redis.CommandTimeout {
		d.add(pathDefaultDeadline, "is %s, want more than %s, which is %s: every evaluation would be refused",
			durationText(s.DefaultDeadline), pathCommandTimeout, durationText(limiter.Redis.CommandTimeout))
	}
	return s
}

// listener holds an address beyond this machine to TLS, or to the word that something provides it.
func (d *decoder) listener(s Service) {
	if d.has(pathHTTPAddress) {
		return
	}
	if problem := hostPort(s.HTTPAddress, 0); problem != "" {
		d.add(pathHTTPAddress, "is %s, want host:port: %s", quote(s.HTTPAddress), problem)
		return
	}
	protected := s.TLSCert != "" || s.TLSKey != "" || s.AllowPlaintext
	if !protected && !loopback(s.HTTPAddress) {
		d.add(pathHTTPAddress, "is %s, which is not loopback: want tls-cert and tls-key, or allow-plaintext: true where something in front provides TLS",
			quote(s.HTTPAddress))
	}
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
