package httpedge

import (
	"maps"
	"net/http"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// PolicyFunc says under which policy a request counts. An ID that there is no policy of closes the
// door with 500. It runs on the request's goroutine.
type PolicyFunc func(*http.Request) ratelimit.PolicyID

// OnePolicy is the same policy for every request.
func OnePolicy(id ratelimit.PolicyID) PolicyFunc {
	return func(*http.Request) ratelimit.PolicyID { return id }
}

// PolicyByRoute is a policy for each route, and another for all that the table does not name. pattern
// says which route a request takes: see MatchedPattern and MuxPattern.
func PolicyByRoute(pattern func(*http.Request) string, table map[string]ratelimit.PolicyID, otherwise ratelimit.PolicyID) PolicyFunc {
	own := maps.Clone(table)
	return func(r *http.Request) ratelimit.PolicyID {
		if id, there := own[pattern(r)]; there {
			return id
		}
		return otherwise
	}
}
