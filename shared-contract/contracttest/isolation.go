package contracttest

import (
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func isolationTests() []contractTest {
	return []contractTest{
		{name: "SubjectsAreApart", runEach: subjectsAreApart},
		{name: "PoliciesAreApart", runEach: policiesAreApart},
		{name: "PolicyAfterPolicy", runEach: policyAfterPolicy},
	}
}

// subjectsAreApart: one policy, two subjects; also where their digests differ in one bit, at either
// end, or are all zeros. Casebook 22, 27.
func subjectsAreApart(h *harness, k kind) {
	p := h.policy(k.config("one", 3, year))
	l := h.b.New(h, p)
	zeros := strings.Repeat("0", 64)
	for _, text := range []string{
		zeros, zeros[:63] + "1", "1" + zeros[:63], strings.Repeat("f", 64), zeros[:32] + "1" + zeros[:31],
		"8" + zeros[:63], strings.Repeat("01", 32), strings.Repeat("10", 32),
	} {
		subject := h.parse(text)
		h.admitted(l, p, subject, 3, 0)
		h.denied(l, p, subject, 1, 0)
	}
}

// policiesAreApart: one subject, several policies, of one algorithm and of others, with IDs that a
// careless join would confuse. Casebook 27.
func policiesAreApart(h *harness, k kind) {
	var policies []*ratelimit.RateLimitPolicy
	for i, id := range []string{"a", "A", "a1", "a-1", "a.1", "a_1", "1a", "1"} {
		policies = append(policies, h.policy(k.config(id, int64(i+1), year)))
	}
	for _, other := range kinds() {
		policies = append(policies, h.policy(other.config("of-"+other.name, 4, year-time.Hour)))
	}
	l := h.b.New(h, policies...)
	subject := h.subject(0)
	for _, p := range policies {
		h.admitted(l, p, subject, p.Limit(), 0)
	}
	for _, p := range policies {
		h.denied(l, p, subject, 1, 0)
	}
}

// policyAfterPolicy: a denial by the second policy leaves what the first one spent. Casebook 28: this
// port has no all-or-nothing evaluation, and must not pretend to.
func policyAfterPolicy(h *harness, k kind) {
	wide, narrow := h.policy(k.config("wide", 10, year)), h.policy(k.config("narrow", 1, year))
	l := h.b.New(h, wide, narrow)
	subject := h.subject(0)
	h.admitted(l, wide, subject, 1, 9)
	h.admitted(l, narrow, subject, 1, 0)
	for left := int64(8); left >= 0; left-- {
		h.admitted(l, wide, subject, 1, left)
		h.denied(l, narrow, subject, 1, 0)
	}
	h.denied(l, wide, subject, 1, 0)
}
