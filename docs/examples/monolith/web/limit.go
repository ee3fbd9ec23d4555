package web

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// deadline is how long a request waits for a decision. It is above the command timeout.
const deadline = 200 * time.Millisecond

// Limit lets a request through where the limiter allows it: each client address has a quota of its
// own. It answers 429 to a denial and 503 to everything that is no decision. Without a limiter it
// adds nothing.
func Limit(limiter ratelimit.EdgeRateLimitPort, digester *ratelimit.SubjectDigester, policy ratelimit.PolicyID, next http.Handler) http.Handler {
	if limiter == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), deadline)
		defer cancel()
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		subject, err := digester.Digest(host)
		var outcome ratelimit.Outcome
		if err == nil {
			outcome, err = limiter.Evaluate(ctx, ratelimit.RateLimitRequest{PolicyID: policy, Subject: subject, Cost: 1})
		}
		if err == nil && ratelimit.Allows(outcome) {
			next.ServeHTTP(w, r)
			return
		}
		status, wait := http.StatusServiceUnavailable, time.Second
		if denied, ok := outcome.(ratelimit.Evaluated); ok && err == nil {
			status, wait = http.StatusTooManyRequests, denied.Decision.RetryAfter
		}
		seconds := int64((wait + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		http.Error(w, http.StatusText(status), status)
	})
}
