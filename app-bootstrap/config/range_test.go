package config

import (
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
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
	if problem := cacheOutOfRange(c.Cache); problem != "" {
		return problem
	}
	if problem := breakerOutOfRange(c.CircuitBreaker); problem != "" {
		return problem
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
	case r.Circuit.Failures < 1 || r.Circuit.Failures > 1000 || r.Circuit.OpenTimeout < time.Millisecond || r.Circuit.OpenTimeout > time.Minute:
		return fmt.Sprintf("circuit %+v", r.Circuit)
	case r.DenialCache.MaxEntries < 1 || r.DenialCache.MaxEntries > 1<<20:
		return fmt.Sprintf("denial-cache %+v", r.DenialCache)
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

func cacheOutOfRange(c CacheRedis) string {
	if !c.Enabled {
		if c.Redis.Address != "" || !c.Key.Secret.IsZero() || c.DefaultTTL != 0 || c.FailOpen {
			return "a disabled cache has settings"
		}
		return ""
	}
	limits := cache.Limits{DefaultTTL: c.DefaultTTL, MaxValueBytes: c.MaxValueBytes}
	switch {
	case limits.Check() != nil:
		return limits.Check().Error()
	case c.Redis.Address == "" || hostPort(c.Redis.Address, 1) != "":
		return fmt.Sprintf("address of the cache %q", c.Redis.Address)
	case c.Redis.CommandTimeout < time.Millisecond || c.Redis.CommandTimeout > 10*time.Second:
		return fmt.Sprintf("command-timeout of the cache %v", c.Redis.CommandTimeout)
	case c.Redis.PoolSize < 1 || c.Redis.PoolSize > 4096 || c.Redis.Database < 0 || c.Redis.Database > 65535:
		return fmt.Sprintf("pool-size %d, database %d of the cache", c.Redis.PoolSize, c.Redis.Database)
	case len(c.Key.Secret.Reveal()) < minSecretBytes:
		return "secret of the cache"
	case !namespaceForm.MatchString(c.Key.Namespace) || !namespaceForm.MatchString(c.Name):
		return fmt.Sprintf("names of the cache %q %q", c.Key.Namespace, c.Name)
	}
	return ""
}

func breakerOutOfRange(b CircuitBreaker) string {
	if !b.Enabled {
		if b.Policies != nil || b.Provider != ProviderInvalid || b.Redis.Address != "" || !b.Key.Secret.IsZero() {
			return "a disabled circuit breaker has settings"
		}
		return ""
	}
	switch {
	case b.Provider == ProviderInvalid || b.Policies == nil || len(b.Policies.All()) == 0:
		return fmt.Sprintf("circuit breaker of %v with %v", b.Provider, b.Policies)
	case b.Memory.MaxKeys < 1 || b.Admission.MaxInFlight < 1 || b.Admission.MaxInFlight > 1<<20:
		return fmt.Sprintf("bounds of the circuit breaker %v %v", b.Memory, b.Admission)
	case b.UnavailableRetryAfter < time.Millisecond || b.UnavailableRetryAfter > time.Hour || !namespaceForm.MatchString(b.Key.Namespace):
		return fmt.Sprintf("hint %v, namespace %q of the circuit breaker", b.UnavailableRetryAfter, b.Key.Namespace)
	case b.Provider == ProviderRedis && (hostPort(b.Redis.Address, 1) != "" || len(b.Key.Secret.Reveal()) < minSecretBytes ||
		b.Redis.CommandTimeout < time.Millisecond || b.Redis.PoolSize < 1):
		return "connection of the circuit breaker"
	}
	return ""
}
