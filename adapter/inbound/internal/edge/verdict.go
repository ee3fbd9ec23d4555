package edge

import (
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Verdict says what one question came to.
type Verdict uint8

// The verdicts. The zero value is invalid. VerdictAllow alone lets a request pass.
const (
	VerdictInvalid Verdict = iota
	// VerdictAllow: evaluated and allowed.
	VerdictAllow
	// VerdictDeny: evaluated and denied.
	VerdictDeny
	// VerdictUnavailable: nothing was decided, and it is known that nothing was spent.
	VerdictUnavailable
	// VerdictIndeterminate: sent, and it is not known whether the cost was spent.
	VerdictIndeterminate
	// VerdictIncompatible: the store and this program do not fit together.
	VerdictIncompatible
	// VerdictRefused: the question could not be asked; the report's Refusal says why.
	VerdictRefused
)

var verdictWords = []string{"INVALID", "allow", "deny", "unavailable", "indeterminate", "incompatible", "refused"}

// String gives the verdict's word, which is a token of structured fields as well.
func (v Verdict) String() string { return wordOf(verdictWords, uint8(v)) }

func wordOf(words []string, i uint8) string {
	if int(i) >= len(words) {
		return words[0]
	}
	return words[i]
}

// Refusal says why a question could not be asked.
type Refusal uint8

// The refusals. The zero value stands for none.
const (
	RefusalNone Refusal = iota
	// RefusalSubjectMissing: the request does not say whom to limit.
	RefusalSubjectMissing
	// RefusalSubjectMalformed: what should say it cannot be taken: too long, there twice, no digest.
	RefusalSubjectMalformed
	// RefusalPolicyUnknown: no policy has the ID that was chosen.
	RefusalPolicyUnknown
	// RefusalCost: the cost is no number, or not in 1..the policy's maximum.
	RefusalCost
	// RefusalInternal: the limiter failed outside of its contract.
	RefusalInternal
)

var refusalWords = []string{"none", "missing-subject", "malformed-subject", "unknown-policy", "cost-out-of-range", "internal"}

// String gives the refusal's word.
func (r Refusal) String() string { return wordOf(refusalWords, uint8(r)) }

// RefusalError is what functions that choose a subject give where they find none. Its texts hold
// nothing of the request.
type RefusalError struct {
	Refusal Refusal
	Reason  string
}

// Error gives the refusal and the reason.
func (e *RefusalError) Error() string { return fmt.Sprintf("edge: %v: %s", e.Refusal, e.Reason) }

// Refuse makes a refusal.
func Refuse(refusal Refusal, reason string) error {
	return &RefusalError{Refusal: refusal, Reason: reason}
}

// Report is what one question came to, for whoever counts or logs it. It holds no subject.
type Report struct {
	Verdict Verdict
	// Policy is what was chosen, which may be unknown to the limiter.
	Policy ratelimit.PolicyID
	// Outcome is what the limiter answered, nil where the verdict is VerdictRefused.
	Outcome ratelimit.Outcome
	// Refusal and Reason are set where the verdict is VerdictRefused.
	Refusal Refusal
	Reason  string
	// RetryAfter is when to ask again: 0 for VerdictAllow, VerdictIncompatible and VerdictRefused.
	RetryAfter time.Duration
	// Shadow says that the request passed whatever the verdict is.
	Shadow bool
}

// Passes reports whether the request went on.
func (r Report) Passes() bool { return r.Shadow || r.Verdict == VerdictAllow }

// refused fills in a refusal. An error that is none of ours may say anything, so its text stays unsaid.
func (r *Report) refused(err error, otherwise Refusal, reason string) {
	r.Verdict, r.Refusal, r.Reason = VerdictRefused, otherwise, reason
	var known *RefusalError
	if errors.As(err, &known) && known.Refusal != RefusalNone {
		r.Refusal, r.Reason = known.Refusal, known.Reason
	}
}

// conclude fills in what an outcome means.
func (r *Report) conclude(outcome ratelimit.Outcome) {
	r.Outcome = outcome
	if ratelimit.Allows(outcome) {
		r.Verdict = VerdictAllow
		return
	}
	switch o := outcome.(type) {
	case ratelimit.Evaluated:
		r.Verdict, r.RetryAfter = VerdictDeny, o.Decision.RetryAfter
	case ratelimit.Unavailable:
		r.Verdict, r.RetryAfter = VerdictUnavailable, o.RetryAfter
	case ratelimit.Indeterminate:
		r.Verdict, r.RetryAfter = VerdictIndeterminate, o.RetryAfter
	case ratelimit.Incompatible:
		r.Verdict = VerdictIncompatible
	default:
		r.Outcome = nil
		r.refused(nil, RefusalInternal, "the limiter gave no outcome")
	}
}
