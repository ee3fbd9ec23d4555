package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestContract(t *testing.T) {
	t.Parallel()
	contracttest.RunEdgeRateLimit(t, func(testing.TB) *contracttest.Backend {
		clock := newManualClock()
		b := &inspected{clock: clock, limiters: map[*ratelimit.RateLimitPolicy]*EdgeRateLimiter{}}
		return &contracttest.Backend{
			New:    b.newLimiter,
			Source: ratelimit.SourceLocalMemory, Now: clock.peek, SetTime: clock.set, Advance: clock.advance,
			TTL: b.ttl, State: b.state,
			Missing: map[contracttest.Capability]string{
				contracttest.CapabilityShare:      "a limiter's state is its own and ends with it, so no other instance or revision meets it",
				contracttest.CapabilityPutForeign: "states are typed values that only the limiter makes",
				contracttest.CapabilityCorrupt:    "states are typed values that only the limiter makes",
			},
		}
	})
}

// inspected finds the stored states of limiters by their policies.
type inspected struct {
	clock    *manualClock
	limiters map[*ratelimit.RateLimitPolicy]*EdgeRateLimiter
}

func (b *inspected) newLimiter(t testing.TB, policies ...*ratelimit.RateLimitPolicy) ratelimit.EdgeRateLimitPort {
	l := newLimiter(t, 1000, b.clock.now, policies...)
	for _, p := range policies {
		b.limiters[p] = l
	}
	return l
}

// find gives the state of a subject, if it has not expired.
func (b *inspected) find(p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (state, bool) {
	l := b.limiters[p]
	k := key{digest: subject.Bytes(), policy: l.compiled[p].index}
	s := &l.shards[l.shardOf(&k)]
	s.mu.Lock()
	defer s.mu.Unlock()
	position, ok := s.index[k]
	if !ok || s.entries[position].state.expiresAt <= b.clock.peek().UnixMilli() {
		return state{}, false
	}
	return s.entries[position].state, true
}

func (b *inspected) ttl(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (time.Duration, bool) {
	s, ok := b.find(p, subject)
	return time.Duration(s.expiresAt-b.clock.peek().UnixMilli()) * time.Millisecond, ok
}

func (b *inspected) state(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) string {
	s, ok := b.find(p, subject)
	if !ok {
		return ""
	}
	l := b.limiters[p]
	if c := l.compiled[p]; c.logged() {
		k := key{digest: subject.Bytes(), policy: c.index}
		shard := &l.shards[l.shardOf(&k)]
		shard.mu.Lock()
		defer shard.mu.Unlock()
		return fmt.Sprintf("%d %+v", s.expiresAt, shard.logs.entries(s.count, true))
	}
	return fmt.Sprintf("%+v", s)
}
