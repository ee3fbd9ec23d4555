package composition

import (
	"sync"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// mostLabels is how many policies telemetry tells apart over the life of a limiter: as many as one
// configuration can have.
const mostLabels = 10_000

// otherPolicy is the label of policies beyond mostLabels. It is no policy's ID: those begin with a letter
// or a digit.
const otherPolicy = "_other"

// labels gives policies their names in telemetry. What a metric has counted under one label it keeps, so
// a process whose policies are changed again and again must not have ever more of them.
type labels struct {
	most int

	mu    sync.Mutex
	given map[ratelimit.PolicyID]struct{}
}

// of gives each policy of a set its label, the same as before where it had one.
func (l *labels) of(policies *ratelimit.PolicySet) map[ratelimit.PolicyID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given == nil {
		l.given = make(map[ratelimit.PolicyID]struct{})
	}
	all := policies.All()
	named := make(map[ratelimit.PolicyID]string, len(all))
	for _, policy := range all {
		id := policy.ID()
		if _, before := l.given[id]; !before && len(l.given) >= l.most {
			named[id] = otherPolicy
			continue
		}
		l.given[id] = struct{}{}
		named[id] = string(id)
	}
	return named
}
