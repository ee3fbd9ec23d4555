package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// The fields of an evaluation request.
const (
	fieldPolicyID      = "policyId"
	fieldSubject       = "subject"
	fieldSubjectDigest = "subjectDigest"
	fieldCost          = "cost"
	fieldDeadline      = "deadlineMillis"
	fieldEvaluationID  = "evaluationId"
)

// defaultCost is the cost of a request that names none.
const defaultCost = 1

var requestMembers = map[string]kind{
	fieldPolicyID:      kindString,
	fieldSubject:       kindString,
	fieldSubjectDigest: kindString,
	fieldCost:          kindInteger,
	fieldDeadline:      kindInteger,
	fieldEvaluationID:  kindString,
}

// parseRequest reads the body of an evaluation. It gives a request whose deadline counts from now, or
// what is wrong with it.
func (a *api) parseRequest(body []byte, now time.Time) (ratelimit.RateLimitRequest, *problem) {
	object, fault := parseObject(body, requestMembers)
	if fault != nil {
		return ratelimit.RateLimitRequest{}, fault.problem()
	}
	request := ratelimit.RateLimitRequest{PolicyID: a.DefaultPolicy, Cost: defaultCost}
	if id := ratelimit.PolicyID(object[fieldPolicyID].text); id != "" {
		if id.Validate() != nil {
			return request, outOfRange(fieldPolicyID, fmt.Sprintf(
				"must be empty or 1..%d characters of A-Z a-z 0-9 . _ - beginning with a letter or a digit", ratelimit.MaxPolicyIDBytes)).problem()
		}
		request.PolicyID = id
	}
	policy := a.Policies.Get(request.PolicyID)
	if policy == nil {
		return request, unknownPolicy()
	}
	if _, given := object[fieldEvaluationID]; given {
		return request, (&bodyError{
			code: codeUnsupported, field: fieldEvaluationID, detail: "must be absent: evaluations are not deduplicated in this revision",
		}).problem()
	}
	subject, fault := a.subjectOf(object)
	if fault != nil {
		return request, fault.problem()
	}
	request.Subject = subject
	if cost, given := object[fieldCost]; given {
		request.Cost = cost.number
	}
	if request.Cost < 1 || request.Cost > policy.MaxCost() {
		return request, outOfRange(fieldCost, fmt.Sprintf("is %d, this policy takes 1..%d", request.Cost, policy.MaxCost())).problem()
	}
	wait := a.DefaultDeadline
	if given, ok := object[fieldDeadline]; ok {
		most := a.MaxDeadline.Milliseconds()
		if given.number < 1 || given.number > most {
			return request, outOfRange(fieldDeadline, fmt.Sprintf("is %d, want 1..%d", given.number, most)).problem()
		}
		wait = time.Duration(given.number) * time.Millisecond
	}
	request.Deadline = now.Add(wait)
	return request, nil
}

// subjectOf takes exactly one of subject and subjectDigest.
func (a *api) subjectOf(object map[string]value) (ratelimit.SubjectDigest, *bodyError) {
	raw, haveRaw := object[fieldSubject]
	digest, haveDigest := object[fieldSubjectDigest]
	switch {
	case haveRaw && haveDigest:
		return ratelimit.SubjectDigest{}, &bodyError{
			code: codeConflict, field: fieldSubjectDigest, detail: "must be absent where subject is there: give one of both",
		}
	case haveDigest:
		d, err := ratelimit.ParseSubjectDigest(digest.text)
		if err != nil {
			return d, outOfRange(fieldSubjectDigest, "must be 64 characters of 0-9 and a-f")
		}
		return d, nil
	case haveRaw:
		d, err := a.Digester.Digest(raw.text)
		if err != nil {
			return d, outOfRange(fieldSubject, fmt.Sprintf("has %d bytes, want 1..%d", len(raw.text), ratelimit.MaxIdentityBytes))
		}
		return d, nil
	default:
		return ratelimit.SubjectDigest{}, &bodyError{
			code: codeMissing, field: fieldSubject, detail: "is missing: give subject or subjectDigest",
		}
	}
}

func outOfRange(field, detail string) *bodyError {
	return &bodyError{code: codeOutOfRange, field: field, detail: detail}
}

func unknownPolicy() *problem {
	return &problem{
		Status: http.StatusNotFound, Code: codeUnknownPolicy, Field: fieldPolicyID, Detail: "no policy has this ID; GET " + PathPolicies + " lists them",
	}
}

// problem gives 400 for what has not the shape of a request and 422 for what has it, but cannot be
// asked.
func (e *bodyError) problem() *problem {
	p := &problem{Status: http.StatusUnprocessableEntity, Code: e.code, Field: e.field, Detail: e.detail}
	switch e.code {
	case codeMalformed, codeUnknownField, codeRepeatedField, codeWrongType:
		p.Status = http.StatusBadRequest
	}
	if e.field != "" {
		p.Detail = e.field + " " + e.detail
		if e.code == codeUnknownField {
			p.Detail = e.field + ": " + e.detail
		}
	}
	return p
}
