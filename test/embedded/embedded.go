// Package embedded is a Redis in the test's own process (miniredis) with what the provider needs and
// miniredis lacks: the #!lua line, INFO server, ACL WHOAMI, and one clock for TIME and lifetimes.
package embedded

import (
	"crypto/sha1" //nolint:gosec // G505: EVALSHA names programs by SHA-1.
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Version is what INFO server says.
const Version = "7.4.0"

// Redis is one embedded server, ended at the test's cleanup.
type Redis struct {
	*miniredis.Miniredis

	mu      sync.Mutex
	aliases map[string]string // SHA-1 of a text with #!lua to that of the text without
	now     time.Time
}

// Start begins a server whose clock stands at now and holds it there.
func Start(t testing.TB, now time.Time) *Redis {
	t.Helper()
	r := &Redis{Miniredis: miniredis.NewMiniRedis(), aliases: map[string]string{}, now: now}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.Miniredis.SetTime(now)
	r.Server().SetPreHook(r.hook)
	return r
}

// SetTime sets the clock of TIME, forward or back, and lifetimes follow it, as on a real Redis. They
// are nanoseconds in 64 bits here: one that comes to 292 years overflows.
func (r *Redis) SetTime(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	passed := now.Sub(r.now)
	r.Miniredis.SetTime(now)
	r.now = now
	for _, key := range r.Keys() {
		// A key exists at the very moment of its expiry; miniredis would let it go then.
		if ttl := r.TTL(key); ttl > 0 && ttl == passed {
			r.SetTTL(key, passed+time.Nanosecond)
		}
	}
	r.FastForward(passed)
}

func sha(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // G401: see the import.
	return hex.EncodeToString(sum[:])
}

// hook answers what miniredis cannot, and passes on programs without their first line.
func (r *Redis) hook(peer *server.Peer, command string, args ...string) bool {
	switch strings.ToUpper(command) {
	case "INFO":
		if len(args) == 1 && strings.EqualFold(args[0], "server") {
			peer.WriteBulk("# Server\r\nredis_version:" + Version + "\r\n")
			return true
		}
	case "ACL":
		if len(args) == 1 && strings.EqualFold(args[0], "whoami") {
			peer.WriteBulk("default")
			return true
		}
	case "EVAL":
		if len(args) == 0 {
			return false
		}
		if rest, ok := strings.CutPrefix(args[0], "#!lua\n"); ok {
			r.mu.Lock()
			r.aliases[sha(args[0])] = sha(rest)
			r.mu.Unlock()
			r.Server().Dispatch(peer, append([]string{"EVAL", rest}, args[1:]...))
			return true
		}
	case "EVALSHA":
		if len(args) == 0 {
			return false
		}
		r.mu.Lock()
		alias, ok := r.aliases[args[0]]
		r.mu.Unlock()
		if ok {
			r.Server().Dispatch(peer, append([]string{"EVALSHA", alias}, args[1:]...))
			return true
		}
	}
	return false
}
