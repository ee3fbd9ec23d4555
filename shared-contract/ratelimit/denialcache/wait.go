package denialcache

import (
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// wait bounds the retry-after of a cost above the one that was denied, from above: at that moment it
// passes, if no other traffic comes.
//
//   - Fixed window: all costs wait for the end of the window, so the bound is the denial's retry-after.
//   - Token bucket and GCRA: the exact wait grows by the time that the additional units take at the rate.
//     Each is rounded up, so the bound is exact or 1 ms above.
//   - Sliding window log and counter: how the spent units are spread is not in a decision. What is known is
//     the span after which all of them are gone: a window after the last entry, two windows after the begin
//     of the current one. That last entry, or begin, lies ahead of the store's clock by the tolerated
//     regression at most, so no cost waits for more than span + regression; and the denied cost waits for
//     a moment after it, so no cost waits for longer than that one by more than span - 1 ms.
type wait struct {
	rate       algorithm.Rate // of a token bucket or a GCRA
	span       time.Duration  // of a log or a counter
	regression time.Duration  // beside span
}

func waitOf(policy *ratelimit.RateLimitPolicy) (wait, error) {
	switch parameters := policy.Parameters().(type) {
	case ratelimit.FixedWindowParameters:
		return wait{}, nil
	case ratelimit.SlidingWindowCounterParameters:
		return wait{span: 2 * parameters.Window, regression: policy.MaxClockRegression()}, nil
	case ratelimit.TokenBucketParameters:
		return wait{rate: parameters.Arithmetic(policy.Clock()).Rate()}, nil
	case ratelimit.GCRAParameters:
		return wait{rate: parameters.Arithmetic(policy.Clock()).Rate()}, nil
	case ratelimit.SlidingWindowLogParameters:
		return wait{span: parameters.Window, regression: policy.MaxClockRegression()}, nil
	default:
		return wait{}, fmt.Errorf("denialcache: policy %s: algorithm %v is not supported", policy.ID(), policy.Algorithm())
	}
}

// above gives the bound for more units than were denied with retryAfter.
func (w wait) above(retryAfter time.Duration, more int64) time.Duration {
	switch {
	case w.rate.Numerator > 0:
		span := w.rate.Span(more)
		if span.Fraction > 0 {
			span.Millis++
		}
		return retryAfter + time.Duration(span.Millis)*time.Millisecond
	case w.span > 0:
		return max(retryAfter, min(w.span+w.regression, retryAfter-time.Millisecond+w.span))
	default:
		return retryAfter
	}
}
