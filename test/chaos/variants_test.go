package chaos

import (
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
)

// variant is a way to set up the provider. Whatever holds must hold in each of them.
type variant struct {
	name string
	// coalesce sends concurrent evaluations together.
	coalesce bool
	// circuit stops asking a store that fails.
	circuit bool
}

var (
	// plain is the provider without its options.
	plain = variant{name: "plain"}
	// coalesced is the provider that sends concurrent evaluations together.
	coalesced = variant{name: "coalesced", coalesce: true}
	// guarded is the provider with a circuit.
	guarded = variant{name: "circuit", circuit: true}
)

// variants lists all of them.
func variants() []variant {
	return []variant{
		plain,
		coalesced,
		guarded,
		{name: "both", coalesce: true, circuit: true},
	}
}

// The circuit of the variants: it opens soon and probes often, so that a short fault meets it in every
// state.
const (
	circuitFailures = 5
	circuitOpen     = 100 * time.Millisecond
)

// apply sets the options.
func (v variant) apply(s *cacheredis.StoreConfig, l *cacheredis.LimiterConfig) {
	s.Coalesce = v.coalesce
	if v.circuit {
		l.Circuit = &cacheredis.CircuitConfig{Failures: circuitFailures, OpenTimeout: circuitOpen}
	}
}
