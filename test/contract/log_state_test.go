package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// logPart is one part of a member of a sliding log's sorted set.
type logPart struct {
	field     contracttest.StateField
	rank      int64  // of the member: 0 is the metadata, 1 the oldest admission
	separator string // between the member's parts
	place     int    // among them
}

// logParts are those that every decision reads. Scores are numbers whatever one does, so they are no
// text to corrupt: the golden vectors and the random edits of test/differential move them.
func logParts(p ratelimit.SlidingWindowLogParameters) []logPart {
	return []logPart{
		{contracttest.StateField{Name: "identity", Text: true}, 0, " ", 0},
		{contracttest.StateField{Name: "last observed", Max: algorithm.MaxNowMillis}, 0, " ", 1},
		{contracttest.StateField{Name: "last cumulative cost", Max: algorithm.MaxExact - p.Limit}, 0, " ", 2},
		{contracttest.StateField{Name: "cumulative cost", Max: algorithm.MaxExact - p.Limit}, 1, ":", 0},
		{contracttest.StateField{Name: "cost", Max: p.Limit}, 1, ":", 1},
	}
}

// findLogPart gives the part of a field, where the policy keeps a log.
func findLogPart(policy *ratelimit.RateLimitPolicy, field string) (logPart, bool) {
	parameters, ok := policy.Parameters().(ratelimit.SlidingWindowLogParameters)
	if !ok {
		return logPart{}, false
	}
	for _, part := range logParts(parameters) {
		if part.field.Name == field {
			return part, true
		}
	}
	panic(fmt.Sprintf("contract: a log has no %s", field))
}

// replaced is the member with the part's value changed.
func (l logPart) replaced(member, value string) string {
	parts := strings.Split(member, l.separator)
	parts[l.place] = value
	return strings.Join(parts, l.separator)
}

// dropped is the member without the part.
func (l logPart) dropped(member string) string {
	parts := strings.Split(member, l.separator)
	return strings.Join(slices.Delete(parts, l.place, l.place+1), l.separator)
}
