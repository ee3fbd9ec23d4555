package cacheredis

import (
	"fmt"
	"sync"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// schema is the version of what programs store.
const schema = 1

// prepared is what an evaluation needs of a policy, made once.
type prepared struct {
	keys      policyKeys
	program   *store.Program
	fixed     []any // the program's arguments up to the cost
	questions sync.Pool
}

// question is what one evaluation hands to the store, which keeps none of it. It is used again.
type question struct {
	keys [1]string
	args []any // fixed, then cost and clock
}

func prepare(builder *KeyBuilder, policy *ratelimit.RateLimitPolicy, kind string) *prepared {
	p := &prepared{keys: builder.rateKeys(policy, kind)}
	clock := policy.Clock()
	tail := []any{encodeInteger(clock.GraceMillis), encodeInteger(clock.MaxRegressionMillis)}
	identity := func(tag string) string {
		return fmt.Sprintf("%d:%s:%d:%s", schema, tag, policy.Revision(), policy.Fingerprint())
	}
	switch parameters := policy.Parameters().(type) {
	case ratelimit.FixedWindowParameters:
		p.program = store.RateFixedWindowV1
		p.fixed = []any{identity("fw"), encodeInteger(parameters.Limit), encodeInteger(parameters.Window.Milliseconds())}
	case ratelimit.SlidingWindowCounterParameters:
		p.program = store.RateSlidingCounterV1
		p.fixed = []any{identity("sc"), encodeInteger(parameters.Limit), encodeInteger(parameters.Window.Milliseconds())}
	case ratelimit.TokenBucketParameters:
		rate := parameters.Arithmetic(clock).Rate()
		p.program = store.RateTokenBucketV1
		p.fixed = []any{
			identity("tb"), encodeInteger(parameters.Capacity), encodeInteger(rate.Numerator), encodeInteger(rate.Denominator),
		}
	case ratelimit.GCRAParameters:
		rate := parameters.Arithmetic(clock).Rate()
		p.program = store.RateGCRAV1
		p.fixed = []any{
			identity("gc"), encodeInteger(rate.Numerator), encodeInteger(rate.Denominator), encodeInteger(parameters.Burst),
		}
	case ratelimit.SlidingWindowLogParameters:
		p.program = store.RateSlidingLogV1
		p.fixed = []any{identity("sl"), encodeInteger(parameters.Limit), encodeInteger(parameters.Window.Milliseconds())}
	}
	p.fixed = append(p.fixed, tail...)
	p.questions.New = func() any {
		return &question{args: append(append([]any(nil), p.fixed...), int64(0), int64(0))}
	}
	return p
}

// question is that of one evaluation: the key, the cost, and the clock, which the store fills in.
func (p *prepared) question(subject ratelimit.SubjectDigest, cost int64) *question {
	q := p.questions.Get().(*question) //nolint:forcetypeassert // New makes nothing else.
	q.keys[0] = p.keys.of(subject)
	q.args[len(p.fixed)] = cost
	return q
}

func (p *prepared) release(q *question) {
	q.keys[0] = ""
	p.questions.Put(q)
}
