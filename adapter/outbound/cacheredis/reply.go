package cacheredis

import (
	"fmt"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// The fields of a rate program's reply, in order.
const (
	fieldStatus = iota
	fieldServerNow
	fieldEffectiveNow
	fieldLimit
	fieldRemaining
	fieldRetryAfter
	fieldResetAt
	fieldCount
)

// parseDecision reads the seven fields of a rate program. It accepts exactly what the program can
// say under the policy to a request of that cost, and refuses every other arity, type, word and range.
func parseDecision(reply store.Reply, policy *ratelimit.RateLimitPolicy, cost int64) (algorithm.Decision, error) {
	if reply.Len() != fieldCount {
		return algorithm.Decision{}, fmt.Errorf("%w: %d fields, want %d", errReply, reply.Len(), fieldCount)
	}
	word := reply.At(fieldStatus)
	if word.Kind != store.ValueText {
		return algorithm.Decision{}, fmt.Errorf("%w: the status is not a text", errReply)
	}
	status, ok := algorithm.ParseStatus(word.Text)
	if !ok {
		return algorithm.Decision{}, fmt.Errorf("%w: unknown status", errReply)
	}
	var n [fieldCount]int64
	for i := fieldServerNow; i < fieldCount; i++ {
		v := reply.At(i)
		if v.Kind != store.ValueInteger || v.Int < 0 || v.Int > algorithm.MaxExact {
			return algorithm.Decision{}, fmt.Errorf("%w: field %d is not an integer in 0..2^53-1", errReply, i+1)
		}
		n[i] = v.Int
	}
	d := algorithm.Decision{
		Status:             status,
		ServerNowMillis:    n[fieldServerNow],
		EffectiveNowMillis: n[fieldEffectiveNow],
		Limit:              n[fieldLimit],
		Remaining:          n[fieldRemaining],
		RetryAfterMillis:   n[fieldRetryAfter],
		ResetAtMillis:      n[fieldResetAt],
	}
	if !plausible(d, policy, cost) {
		return algorithm.Decision{}, fmt.Errorf("%w: %v with fields that contradict each other or the policy", errReply, status)
	}
	return d, nil
}

// plausible holds the fields of a reply to each other, to the policy and to the cost.
func plausible(d algorithm.Decision, policy *ratelimit.RateLimitPolicy, cost int64) bool {
	ahead := d.EffectiveNowMillis - d.ServerNowMillis
	// How far ahead of the server's clock any moment of a reply can be: two windows or one fill time,
	// and a tolerated step back.
	const farthest = 2*algorithm.MaxHorizonMillis + algorithm.MaxRegressionMillis + 1
	if ahead < 0 || d.RetryAfterMillis > farthest || d.ResetAtMillis-d.ServerNowMillis > farthest {
		return false
	}
	decided := d.Limit == policy.Limit() && ahead <= policy.MaxClockRegression().Milliseconds() &&
		d.ResetAtMillis > d.EffectiveNowMillis
	switch d.Status {
	case algorithm.StatusAllowed:
		return decided && d.Remaining <= d.Limit-cost && d.RetryAfterMillis == 0
	case algorithm.StatusDenied:
		return decided && d.Remaining < cost && d.RetryAfterMillis > ahead
	case algorithm.StatusClockUnsafe:
		return d.Limit == policy.Limit() && ahead == 0 && d.Remaining == 0 && d.RetryAfterMillis > 0 &&
			d.ResetAtMillis == d.ServerNowMillis+d.RetryAfterMillis
	case algorithm.StatusStateIncompatible, algorithm.StatusInvalid:
		return ahead == 0 && d.Limit == 0 && d.Remaining == 0 && d.RetryAfterMillis == 0 && d.ResetAtMillis == 0
	case algorithm.StatusUnspecified:
	}
	return false
}
