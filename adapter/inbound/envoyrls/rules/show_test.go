package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

// show writes everything that rules hold.
func show(r *rules.Rules) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d domains\n", r.Domains())
	for _, rule := range r.All() {
		fmt.Fprintf(&b, "%s:%d %s: %s: %s: %v %v", rule.File, rule.Line, rule.Path, rule.Domain, rule.Descriptor, rule.Effect, rule.Mode)
		if rule.Effect != rules.EffectUnlimited {
			fmt.Fprintf(&b, " %d/%v", rule.RequestsPerUnit, rule.Unit)
		}
		if rule.Name != "" {
			fmt.Fprintf(&b, " name %s", rule.Name)
		}
		if len(rule.Replaces) > 0 {
			fmt.Fprintf(&b, " replaces %s", strings.Join(rule.Replaces, ", "))
		}
		if rule.Metadata != nil {
			encoded, err := json.Marshal(rule.Metadata)
			fmt.Fprintf(&b, " metadata %s %v", encoded, err)
		}
		b.WriteByte('\n')
		if p := rule.Policy; p != nil {
			fmt.Fprintf(&b, "    %s revision %d: %v %+v, cost 1..%d\n", p.ID(), p.Revision(), p.Algorithm(), p.Parameters(), p.MaxCost())
		}
	}
	for _, n := range r.Notes() {
		fmt.Fprintf(&b, "%v\n", n)
	}
	return b.String()
}
