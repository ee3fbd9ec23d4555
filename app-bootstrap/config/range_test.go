package config

import (
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// outOfRange says what is out of range in a configuration that was accepted, "" for nothing.
func outOfRange(c Config) string {
	s := c.Service
	switch {
	case s.DefaultDeadline < time.Millisecond || s.DefaultDeadline > s.MaxDeadline || s.MaxDeadline > 10*time.Minute:
		return fmt.Sprintf("deadlines %v %v", s.DefaultDeadline, s.MaxDeadline)
	case s.MaxBodyBytes < 256 || s.MaxBodyBytes > 1<<20:
		return fmt.Sprintf("max-body-bytes %d", s.MaxBodyBytes)
	case s.LogFormat == LogFormatInvalid:
		return "log-format"
	case s.HTTPAddress == "" || !loopback(s.HTTPAddress) && s.TLS == nil && !s.AllowPlaintext:
		return fmt.Sprintf("http-address %q", s.HTTPAddress)
	}
	r := c.RateLimit
	if !r.Enabled {
		if r.Policies != nil || r.Provider != ProviderInvalid {
			return "a disabled limiter has settings"
		}
		return ""
	}
	switch {
	case r.Provider == ProviderInvalid || r.Role != RoleCoordination || r.FailurePolicy != ratelimit.FailClosed:
		return fmt.Sprintf("words %v %v %v", r.Provider, r.Role, r.FailurePolicy)
	case r.Redis.CommandTimeout < time.Millisecond || r.Redis.CommandTimeout > 10*time.Second:
		return fmt.Sprintf("command-timeout %v", r.Redis.CommandTimeout)
	case r.Redis.PoolSize < 1 || r.Redis.PoolSize > 4096:
		return fmt.Sprintf("pool-size %d", r.Redis.PoolSize)
	case r.Redis.Database < 0 || r.Redis.Database > 65535:
		return fmt.Sprintf("database %d", r.Redis.Database)
	case r.Admission.MaxInFlight < 1 || r.Admission.MaxInFlight > 1<<20:
		return fmt.Sprintf("max-in-flight %d", r.Admission.MaxInFlight)
	case r.Memory.MaxKeys < 1 || r.Memory.MaxKeys > 100_000_000:
		return fmt.Sprintf("max-keys %d", r.Memory.MaxKeys)
	case r.UnavailableRetryAfter < time.Millisecond || r.UnavailableRetryAfter > time.Hour:
		return fmt.Sprintf("unavailable-retry-after %v", r.UnavailableRetryAfter)
	case !namespaceForm.MatchString(r.Key.Namespace):
		return fmt.Sprintf("namespace %q", r.Key.Namespace)
	case r.Policies == nil || r.Policies.Get(r.DefaultPolicy) == nil:
		return fmt.Sprintf("default policy %q", r.DefaultPolicy)
	}
	if r.Provider == ProviderRedis {
		switch {
		case r.Redis.Address == "" || hostPort(r.Redis.Address, 1) != "":
			return fmt.Sprintf("address %q", r.Redis.Address)
		case len(r.Key.Secret.Reveal()) < minSecretBytes:
			return "secret"
		case s.DefaultDeadline <= r.Redis.CommandTimeout:
			return fmt.Sprintf("default-deadline %v", s.DefaultDeadline)
		}
	}
	return ""
}
