package cacheredis

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// wantFaults holds an error to exactly these faults, one a line.
func wantFaults(t *testing.T, err error, faults ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no fault, want %q", faults)
		return
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(faults) {
		t.Errorf("%d faults, want %d:\n%v", len(lines), len(faults), err)
	}
	for _, fault := range faults {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("no fault %q in:\n%v", fault, err)
		}
	}
}

func TestNewStore(t *testing.T) {
	t.Parallel()
	good := StoreConfig{Address: "127.0.0.1:6379", CommandTimeout: 50 * time.Millisecond, PoolSize: 16, Namespace: "test"}
	for name, row := range map[string]struct {
		change func(c *StoreConfig)
		faults []string
	}{
		"no address":        {func(c *StoreConfig) { c.Address = "" }, []string{`address "" is not host:port`}},
		"no port":           {func(c *StoreConfig) { c.Address = "redis" }, []string{`address "redis" is not host:port`}},
		"no host":           {func(c *StoreConfig) { c.Address = ":6379" }, []string{`address ":6379" is not host:port`}},
		"port 0":            {func(c *StoreConfig) { c.Address = "redis:0" }, []string{"has no port 1..65535"}},
		"port above":        {func(c *StoreConfig) { c.Address = "redis:65536" }, []string{"has no port 1..65535"}},
		"port by name":      {func(c *StoreConfig) { c.Address = "redis:redis" }, []string{"has no port 1..65535"}},
		"timeout below":     {func(c *StoreConfig) { c.CommandTimeout = time.Millisecond - 1 }, []string{"command timeout is 999.999µs, want 1ms..10s"}},
		"timeout above":     {func(c *StoreConfig) { c.CommandTimeout = 10*time.Second + 1 }, []string{"want 1ms..10s"}},
		"pool below":        {func(c *StoreConfig) { c.PoolSize = 0 }, []string{"pool size is 0, want 1..4096"}},
		"pool above":        {func(c *StoreConfig) { c.PoolSize = 4097 }, []string{"pool size is 4097, want 1..4096"}},
		"database below":    {func(c *StoreConfig) { c.Database = -1 }, []string{"database is -1, want 0..65535"}},
		"database above":    {func(c *StoreConfig) { c.Database = 65536 }, []string{"database is 65536, want 0..65535"}},
		"user alone":        {func(c *StoreConfig) { c.Username = "x" }, []string{"a username without a password"}},
		"namespace":         {func(c *StoreConfig) { c.Namespace = "a:b" }, []string{`namespace has the character ':'`}},
		"version":           {func(c *StoreConfig) { c.LowestVersion = "seven" }, []string{`lowest version: version "seven" is not major.minor`}},
		"unknown program":   {func(c *StoreConfig) { c.Programs = []*store.Program{{Name: "x", Version: 9}} }, []string{"no program x-v9 in the manifest"}},
		"copy of a program": {func(c *StoreConfig) { p := *fixedWindow; c.Programs = []*store.Program{&p} }, []string{"no probe for program rate-fixed-window-v1"}},
		"all at once": {func(c *StoreConfig) {
			*c = StoreConfig{Username: "x", Database: -1, LowestVersion: "7", Programs: []*store.Program{{Name: "x", Version: 9}}}
		}, []string{"address", "command timeout", "pool size", "database", "username", "namespace", "lowest version", "no program"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := good
			row.change(&config)
			s, err := NewStore(config)
			if s != nil {
				t.Error("a store all the same")
			}
			wantFaults(t, err, row.faults...)
		})
	}
	for name, change := range map[string]func(c *StoreConfig){
		"good":  func(*StoreConfig) {},
		"least": func(c *StoreConfig) { c.CommandTimeout, c.PoolSize = time.Millisecond, 1 },
		"most":  func(c *StoreConfig) { c.CommandTimeout, c.PoolSize, c.Database = 10*time.Second, 4096, 65535 },
		"IPv6":  func(c *StoreConfig) { c.Address = "[::1]:1" },
		"TLS":   func(c *StoreConfig) { c.TLS = &tls.Config{MinVersion: tls.VersionTLS13} },
		"named": func(c *StoreConfig) { c.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "redis.example"} },
	} {
		config := good
		change(&config)
		s, err := NewStore(config)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if config.TLS != nil {
			want := map[string]string{"TLS": "127.0.0.1", "named": "redis.example"}[name]
			if s.dialer.tls.ServerName != want || name == "TLS" && config.TLS.ServerName != "" {
				t.Errorf("%s: server name %q, the caller's %q", name, s.dialer.tls.ServerName, config.TLS.ServerName)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

func TestNewEdgeRateLimiter(t *testing.T) {
	t.Parallel()
	set, err := ratelimit.NewPolicySet(policy(t))
	if err != nil {
		t.Fatal(err)
	}
	good := LimiterConfig{
		Policies: set, Namespace: "test", Secret: testSecret, MaxInFlight: 1, CommandTimeout: time.Millisecond, UnavailableRetryAfter: time.Millisecond,
	}
	for name, row := range map[string]struct {
		change func(c *LimiterConfig)
		faults []string
	}{
		"no policies":       {func(c *LimiterConfig) { c.Policies = nil }, []string{"no policies"}},
		"no slots":          {func(c *LimiterConfig) { c.MaxInFlight = 0 }, []string{"max in flight is 0, want 1..1048576"}},
		"too many slots":    {func(c *LimiterConfig) { c.MaxInFlight = 1<<20 + 1 }, []string{"max in flight is 1048577, want 1..1048576"}},
		"timeout below":     {func(c *LimiterConfig) { c.CommandTimeout = 0 }, []string{"command timeout is 0s, want 1ms..10s"}},
		"timeout above":     {func(c *LimiterConfig) { c.CommandTimeout = 11 * time.Second }, []string{"command timeout is 11s, want 1ms..10s"}},
		"retry-after below": {func(c *LimiterConfig) { c.UnavailableRetryAfter = 0 }, []string{"unavailable retry-after is 0s, want 1ms..1h0m0s"}},
		"retry-after above": {func(c *LimiterConfig) { c.UnavailableRetryAfter = time.Hour + 1 }, []string{"want 1ms..1h0m0s"}},
		"namespace":         {func(c *LimiterConfig) { c.Namespace = "" }, []string{"namespace of 0 characters"}},
		"secret":            {func(c *LimiterConfig) { c.Secret = nil }, []string{"secret of 0 bytes"}},
		"all at once":       {func(c *LimiterConfig) { *c = LimiterConfig{} }, []string{"no policies", "max in flight", "command timeout", "retry-after", "namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := good
			row.change(&config)
			l, err := NewEdgeRateLimiter(storeAnswers(store.Reply{}, nil), config)
			if l != nil {
				t.Error("a limiter all the same")
			}
			wantFaults(t, err, row.faults...)
		})
	}
	if _, err := NewEdgeRateLimiter(storeAnswers(store.Reply{}, nil), good); err != nil {
		t.Errorf("good: %v", err)
	}
	_, err = NewEdgeRateLimiter(nil, good)
	wantFaults(t, err, "no store")
	_, err = NewEdgeRateLimiter(&fakeStore{}, good)
	wantFaults(t, err, "does not say where its state lives")
}
