package envoyrls

import (
	"math"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// verdict is what one question came to.
type verdict struct {
	status *ratelimitv3.RateLimitResponse_DescriptorStatus
	// denied: the rule denies, whatever its mode makes of that.
	denied bool
	// enforced: the denial counts for the overall code.
	enforced bool
	// failed: nothing was decided.
	failed     bool
	retryAfter time.Duration // of a denial, 0 where asking again does not help
}

// answer turns what the questions came to into a response, or into an error where something was not
// decided and nothing else denies.
func (s *Service) answer(request *ratelimitv3.RateLimitRequest, questions []question) (*ratelimitv3.RateLimitResponse, error) {
	now := s.clock()
	verdicts := make([]verdict, len(questions))
	response := &ratelimitv3.RateLimitResponse{
		OverallCode: ratelimitv3.RateLimitResponse_OK,
		Statuses:    make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(questions)),
	}
	over, failed := false, -1 // whether a denial counts, and the first question that was not decided
	for i := range questions {
		v := s.judge(&questions[i], now)
		verdicts[i], response.Statuses[i] = v, v.status
		over = over || v.enforced
		if v.failed && failed < 0 {
			failed = i
		}
	}
	if failed >= 0 && !over {
		return nil, s.failure(&questions[failed])
	}
	if over {
		response.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	response.ResponseHeadersToAdd = s.headers(verdicts, over)
	if s.config.DynamicMetadata {
		metadata, err := dynamicMetadata(request, questions, verdicts)
		if err != nil {
			s.logger.Error("envoy: the dynamic metadata cannot be written", "error", err)
			return nil, status.Error(codes.Internal, "the dynamic metadata could not be written")
		}
		response.DynamicMetadata = metadata
	}
	return response, nil
}

// judge turns what one question came to into a status.
func (s *Service) judge(q *question, now time.Time) verdict {
	switch q.plan {
	case planNone, planInvalid:
		return verdict{status: &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ratelimitv3.RateLimitResponse_OK}}
	case planUnlimited:
		return verdict{status: &ratelimitv3.RateLimitResponse_DescriptorStatus{
			Code: ratelimitv3.RateLimitResponse_OK, LimitRemaining: mostRemaining,
		}}
	case planDeny, planBeyond:
		// Nobody was asked, so the window's end is this machine's.
		window := q.window()
		return s.verdict(q, false, 0, 0, time.Duration(window-now.UnixMilli()%window)*time.Millisecond)
	case planAsk:
	}
	if evaluated, ok := q.outcome.(ratelimit.Evaluated); ok && q.err == nil {
		d := evaluated.Decision
		reset := max(0, d.ResetAt.Sub(now))
		if !d.Allowed {
			// Counted from the store's clock; what is full again cannot deny.
			reset = max(reset, d.RetryAfter)
		}
		return s.verdict(q, ratelimit.Allows(evaluated), d.Remaining, d.RetryAfter, reset)
	}
	v := verdict{failed: true, denied: true, status: &ratelimitv3.RateLimitResponse_DescriptorStatus{
		Code: ratelimitv3.RateLimitResponse_UNKNOWN, CurrentLimit: q.limit,
	}}
	if s.config.Failure == FailureDeny {
		v.failed, v.enforced, v.status.Code = false, true, ratelimitv3.RateLimitResponse_OVER_LIMIT
		if v.retryAfter = retryAfter(q.outcome); v.retryAfter > 0 {
			v.status.DurationUntilReset = wholeSeconds(v.retryAfter)
		}
	}
	return v
}

// verdict is that of a decision.
func (s *Service) verdict(q *question, allowed bool, remaining int64, retryAfter, reset time.Duration) verdict {
	v := verdict{denied: !allowed, retryAfter: retryAfter, status: &ratelimitv3.RateLimitResponse_DescriptorStatus{
		Code:               ratelimitv3.RateLimitResponse_OK,
		CurrentLimit:       q.limit,
		LimitRemaining:     uint32(min(max(remaining, 0), mostRemaining)),
		DurationUntilReset: wholeSeconds(reset),
	}}
	if v.denied && q.mode == rules.ModeEnforce {
		v.enforced, v.status.Code = s.config.Enforce == Enforce, ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	return v
}

// wholeSeconds rounds up: Envoy cuts to seconds, and nobody is to come back too early.
func wholeSeconds(d time.Duration) *durationpb.Duration {
	return &durationpb.Duration{Seconds: ceilSeconds(d)}
}

func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// headers are of the descriptor that is nearest to its limit: of those that deny the one that does so
// for longest, otherwise the one with the least left.
func (s *Service) headers(verdicts []verdict, over bool) []*corev3.HeaderValue {
	if s.config.Headers == (Headers{}) {
		return nil
	}
	nearest, least := -1, int64(math.MaxInt64)
	for i, v := range verdicts {
		if v.status.GetCurrentLimit() == nil || over && !v.enforced {
			continue
		}
		key := int64(v.status.GetLimitRemaining())
		if over {
			key = -max(ceilSeconds(v.retryAfter), v.status.GetDurationUntilReset().GetSeconds())
		}
		if key < least {
			nearest, least = i, key
		}
	}
	if nearest < 0 {
		return nil
	}
	v := verdicts[nearest]
	headers := make([]*corev3.HeaderValue, 0, 4)
	add := func(name string, value int64) {
		if name != "" {
			headers = append(headers, &corev3.HeaderValue{Key: name, Value: strconv.FormatInt(value, 10)})
		}
	}
	add(s.config.Headers.Limit, int64(v.status.GetCurrentLimit().GetRequestsPerUnit()))
	add(s.config.Headers.Remaining, int64(v.status.GetLimitRemaining()))
	add(s.config.Headers.Reset, v.status.GetDurationUntilReset().GetSeconds())
	if over && v.retryAfter > 0 {
		add(s.config.Headers.RetryAfter, ceilSeconds(v.retryAfter))
	}
	return headers
}
