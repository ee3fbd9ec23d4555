package contracttest

import (
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func foreignTests() []contractTest {
	return []contractTest{
		{name: "ForeignKeys", needs: needs(CapabilityPutForeign, CapabilityState), runEach: foreignKeys},
	}
}

// foreignKeys: whatever other thing stands where the state should be is Incompatible, and left as it
// is. Casebook 23.
func foreignKeys(h *harness, k kind) {
	p := h.policy(k.config("foreign", 10, year))
	l := h.b.New(h, p)
	for i, foreign := range ForeignKinds() {
		subject := h.subject(i)
		h.b.PutForeign(h, p, subject, foreign)
		if h.state(p, subject) == "" {
			h.Fatalf("%s: the backend placed nothing", foreign)
		}
		h.unchanged(p, subject, "deciding over a foreign "+string(foreign), func() {
			for range 2 {
				h.expect(l, p, subject, 1, ratelimit.Incompatible{PolicyID: p.ID(), Category: ratelimit.IncompatibleState})
			}
		})
	}
	// Another subject is none the worse.
	h.admitted(l, p, h.subject(100), 1, 9)
}
