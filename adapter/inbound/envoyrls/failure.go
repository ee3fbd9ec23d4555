package envoyrls

import (
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// ErrorDomain is the domain of google.rpc.ErrorInfo in errors of this service.
const ErrorDomain = "edgelimit"

// The reasons of google.rpc.ErrorInfo: the words of the outcomes.
const (
	ReasonUnavailable   = "UNAVAILABLE"
	ReasonIndeterminate = "INDETERMINATE"
	ReasonIncompatible  = "INCOMPATIBLE"
)

// failure is the error of a question that was not decided. It names the policy, never a descriptor.
func (s *Service) failure(q *question) error {
	info := &errdetails.ErrorInfo{Domain: ErrorDomain, Metadata: map[string]string{}}
	code, message := codes.Internal, ""
	switch o := q.outcome.(type) {
	case ratelimit.Unavailable:
		code, message = codes.Unavailable, "nothing was decided, and nothing was spent"
		info.Reason = ReasonUnavailable
		info.Metadata["policy"], info.Metadata["category"] = string(o.PolicyID), o.Category.String()
	case ratelimit.Indeterminate:
		code, message = codes.Unavailable, "it is not known what was decided, and whether the cost was spent"
		info.Reason = ReasonIndeterminate
		info.Metadata["policy"] = string(o.PolicyID)
	case ratelimit.Incompatible:
		message = "the store and this program do not fit together: somebody has to look"
		info.Reason = ReasonIncompatible
		info.Metadata["policy"], info.Metadata["category"] = string(o.PolicyID), o.Category.String()
	case ratelimit.Evaluated, nil:
		return s.fault(q.err)
	default:
		return s.fault(errNoOutcome)
	}
	details := []protoadapt.MessageV1{info}
	if after := retryAfter(q.outcome); after > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	st := status.New(code, message)
	if detailed, err := st.WithDetails(details...); err == nil {
		st = detailed
	}
	return st.Err()
}

// fault is an error of the port that no request of ours should cause. The log gets the fault's word; the
// text of an error that is not ours could repeat anything.
func (s *Service) fault(err error) error {
	var refused *ratelimit.InvalidRequestError
	if errors.As(err, &refused) {
		s.logger.Error("envoy: the port refuses a request", "fault", refused.Fault.String(), "reason", refused.Reason)
	} else {
		s.logger.Error("envoy: the port gave neither an outcome nor a refusal")
	}
	return status.Error(codes.Internal, "the limiter failed")
}

// retryAfter is an outcome's hint, 0 where it has none.
func retryAfter(outcome ratelimit.Outcome) time.Duration {
	switch o := outcome.(type) {
	case ratelimit.Evaluated:
		return o.Decision.RetryAfter
	case ratelimit.Unavailable:
		return o.RetryAfter
	case ratelimit.Indeterminate:
		return o.RetryAfter
	case ratelimit.Incompatible, nil:
	}
	return 0
}
