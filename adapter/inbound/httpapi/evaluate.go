package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// evaluate asks the port once.
func (a *api) evaluate(w http.ResponseWriter, r *http.Request) {
	body, bad := readBody(w, r, a.MaxBodyBytes)
	if bad != nil {
		writeProblem(w, *bad)
		return
	}
	request, bad := a.parseRequest(body, time.Now())
	if bad != nil {
		writeProblem(w, *bad)
		return
	}
	outcome, err := a.Limiter.Evaluate(r.Context(), request)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	shape, status, ok := Present(outcome)
	if !ok {
		a.Logger.ErrorContext(r.Context(), "the limiter gave no outcome", slog.String("policy", string(request.PolicyID)))
		writeProblem(w, problem{Status: http.StatusInternalServerError, Code: codeInternal, Detail: "the limiter gave no outcome"})
		return
	}
	if shape.RetryAfterMillis != nil {
		w.Header().Set("Retry-After", strconv.FormatInt(ceilSeconds(*shape.RetryAfterMillis), 10))
	}
	// At the debug level alone: whoever composes the port tells of what came to no decision, and bounds
	// how often.
	a.Logger.DebugContext(r.Context(), "evaluated", slog.String("policy", string(request.PolicyID)),
		slog.String("outcome", shape.Outcome), slog.Bool("allowed", ratelimit.Allows(outcome)))
	writeJSON(w, status, shape)
}

// refuse answers an error of the port. What can be judged before asking has been; what is left here
// is a port that is stricter, or one whose policies differ from those configured here.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var invalid *ratelimit.InvalidRequestError
	if !errors.As(err, &invalid) {
		// The text of an error that the contract does not know could hold anything: it stays unsaid.
		a.Logger.ErrorContext(r.Context(), "the limiter failed outside of its contract")
		writeProblem(w, problem{Status: http.StatusInternalServerError, Code: codeInternal, Detail: "the limiter failed"})
		return
	}
	field := ""
	switch invalid.Fault {
	case ratelimit.FaultUnknownPolicy:
		writeProblem(w, *unknownPolicy())
		return
	case ratelimit.FaultSubject:
		field = fieldSubject
	case ratelimit.FaultCost:
		field = fieldCost
	case ratelimit.FaultEvaluationID:
		field = fieldEvaluationID
	case ratelimit.FaultDeadline:
		field = fieldDeadline
	case ratelimit.FaultInvalid:
	}
	writeProblem(w, problem{
		Status: http.StatusUnprocessableEntity, Code: codeOutOfRange, Field: field, Detail: invalid.Reason,
	})
}
