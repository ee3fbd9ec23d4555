package httpedge

import (
	"errors"
	"net/http"

	"github.com/edgelimit/edgelimit/adapter/inbound/internal/edge"
	"github.com/edgelimit/edgelimit/adapter/inbound/internal/problem"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func digested(digest ratelimit.SubjectDigest) Subject { return edge.DigestedSubject(digest) }

// isMissing reports whether an error says that a request names nobody.
func isMissing(err error) bool {
	var refusal *edge.RefusalError
	return errors.As(err, &refusal) && refusal.Refusal == RefusalSubjectMissing
}

// The codes of problems are the verdicts and refusals; these are the ones with words of their own.
const (
	codeLimited       = "rate-limited"
	codeUnavailable   = "limiter-unavailable"
	codeIndeterminate = "limiter-indeterminate"
	codeIncompatible  = "limiter-incompatible"
)

// answers writes what a door says of a report that does not pass.
type answers struct {
	denyStatus int
	fixed      map[Verdict]encoded
}

type encoded struct {
	status int
	body   []byte
}

func newAnswers(denyStatus int) answers {
	a := answers{denyStatus: denyStatus, fixed: make(map[Verdict]encoded)}
	for verdict, p := range map[Verdict]problem.Problem{
		VerdictDeny:          {Status: denyStatus, Code: codeLimited, Detail: "the limit is reached; Retry-After says when to ask again"},
		VerdictUnavailable:   {Status: http.StatusServiceUnavailable, Code: codeUnavailable, Detail: "the limiter cannot decide, so the request stays outside"},
		VerdictIndeterminate: {Status: http.StatusServiceUnavailable, Code: codeIndeterminate, Detail: "the limiter did not hear what was decided, so the request stays outside"},
		VerdictIncompatible:  {Status: http.StatusInternalServerError, Code: codeIncompatible, Detail: "the limiter and its store do not fit together"},
	} {
		a.fixed[verdict] = encoded{status: p.Status, body: p.Encode()}
	}
	return a
}

// status is what a report that does not pass is answered with.
func (a answers) status(report Report) int {
	if fixed, ok := a.fixed[report.Verdict]; ok {
		return fixed.status
	}
	switch report.Refusal {
	case RefusalSubjectMissing, RefusalSubjectMalformed, RefusalCost:
		return http.StatusBadRequest
	case RefusalNone, RefusalPolicyUnknown, RefusalInternal:
	}
	return http.StatusInternalServerError
}

// write answers with a problem.
func (a answers) write(w http.ResponseWriter, report Report) {
	if fixed, ok := a.fixed[report.Verdict]; ok {
		problem.WriteEncoded(w, fixed.status, fixed.body)
		return
	}
	problem.Write(w, problem.Problem{Status: a.status(report), Code: report.Refusal.String(), Detail: report.Reason})
}

// setFields puts fields into a header. Those of lists are added, so that two limits in a row both
// show.
func setFields(header http.Header, fields []edge.Field) {
	values := make([]string, len(fields))
	for i, f := range fields {
		values[i] = f.Value
		if there := header[f.Name]; there != nil && f.IsList() {
			header[f.Name] = append(there, f.Value)
			continue
		}
		header[f.Name] = values[i : i+1 : i+1]
	}
}

// checkDenyStatus holds the status of a denial to those that a proxy can pass on.
func checkDenyStatus(status int) error {
	if status != http.StatusTooManyRequests && status != http.StatusForbidden {
		return errors.New("field DenyStatus is not 429 or 403")
	}
	return nil
}
