package envoyrls

import (
	"fmt"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// generation is a set of rules and the port that decides by its policies. It does not change.
type generation struct {
	rules *rules.Rules
	port  ratelimit.EdgeRateLimitPort // nil where no rule limits
}

func newGeneration(loaded *rules.Rules, ports Ports) (*generation, error) {
	g := &generation{rules: loaded}
	if set := loaded.Policies(); set != nil {
		port, err := ports.WithPolicies(set)
		if err != nil {
			return nil, fmt.Errorf("envoyrls: the policies of the rules: %w", err)
		}
		g.port = port
	}
	return g, nil
}
