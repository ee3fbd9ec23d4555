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
				contracttest.CapabilityShare:      "a limiter's state ends with it; only what WithPolicies makes shares it, and there a policy that was edited without a new revision starts fresh",
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

// find gives the state of a subject, if it has not expired, with its entries where it is a log's.
func (b *inspected) find(p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (state, string, bool) {
	l := b.limiters[p]
	a := l.ask(p, subject)
	s := &l.states.shards[l.states.shardOf(a.hash)]
	s.mu.Lock()
	defer s.mu.Unlock()
	position, ok := s.table.seek(a.hash, &a.name)
	if !ok || s.table.entries[position].state.expiresAt <= b.clock.peek().UnixMilli() {
		return state{}, "", false
	}
	found := s.table.entries[position].state
	if found.logged() {
		return found, fmt.Sprintf("%d %+v", found.expiresAt, s.logs.entries(&found)), true
	}
	return found, fmt.Sprintf("%+v", found), true
}

func (b *inspected) ttl(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) (time.Duration, bool) {
	s, _, ok := b.find(p, subject)
	return time.Duration(s.expiresAt-b.clock.peek().UnixMilli()) * time.Millisecond, ok
}

func (b *inspected) state(_ testing.TB, p *ratelimit.RateLimitPolicy, subject ratelimit.SubjectDigest) string {
	_, text, _ := b.find(p, subject)
	return text
}
