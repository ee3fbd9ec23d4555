package cacheredis

import (
	"fmt"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// schema is the version of what programs store.
const schema = 1

// prepared is what an evaluation needs of a policy, made once.
type prepared struct {
	keys    policyKeys
	program *store.Program
	fixed   []any // the program's arguments up to the cost
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
	return p
}

// arguments are those of one evaluation: cost, and the clock, which the store fills in.
func (p *prepared) arguments(cost int64) []any {
	args := make([]any, 0, len(p.fixed)+2)
	args = append(args, p.fixed...)
	return append(args, cost, int64(0))
}
