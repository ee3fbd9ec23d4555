package contracttest

import (
	"strconv"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func corruptionTests() []contractTest {
	return []contractTest{
		{name: "CorruptNumbers", needs: needs(CapabilityCorrupt, CapabilityState), runEach: corruptNumbers},
		{name: "CorruptIdentity", needs: needs(CapabilityCorrupt, CapabilityState), runEach: corruptIdentity},
		{name: "MissingFields", needs: needs(CapabilityCorrupt, CapabilityState), runEach: missingFields},
	}
}

// notNumbers are texts that some reader of numbers takes for one, or that are none. 2^53-1 is added
// where it is too large for the field.
var notNumbers = []string{
	"nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e3", "1E3", "", " ", "-1", "-0", "+1", "0x1", "0X1F",
	"1.0", "1.5", ".5", "5.", " 1", "1 ", "1\n", "1\x00", "1,000", "1_000", "one", "\u0661",
	"9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616",
	"00000000000000001", "99999999999999999999999999999999", "nil", "true", "{}",
}

// damage stores a state, damages it, and requires Incompatible with the damage left as it is.
func (h *harness) damage(p *ratelimit.RateLimitPolicy, l ratelimit.EdgeRateLimitPort, subject ratelimit.SubjectDigest, what string, run func()) {
	h.Helper()
	if d := h.decide(l, p, subject, 2); !d.Allowed {
		h.Fatalf("%s: %+v before any damage", what, d)
	}
	before := h.state(p, subject)
	run()
	damaged := h.state(p, subject)
	if damaged == before {
		h.Fatalf("%s: the backend damaged nothing in %q", what, before)
	}
	outcome := h.evaluate(l, p, subject, 1)
	if want := (ratelimit.Incompatible{PolicyID: p.ID(), Category: ratelimit.IncompatibleState}); outcome != want {
		h.Errorf("%s: %+v, want %+v", what, outcome, want)
	}
	if after := h.state(p, subject); after != damaged {
		h.Errorf("%s: deciding changed the state\nbefore %q\n after %q", what, damaged, after)
	}
}

// corruptNumbers: a stored number that is none, or out of its range, is Incompatible and never an
// admission. Casebook 13.
func corruptNumbers(h *harness, k kind) {
	p := h.policy(k.config("corrupt", 10, time.Hour))
	l := h.b.New(h, p)
	n, numbers := 0, 0
	for _, field := range h.b.Fields(p) {
		if field.Text {
			continue
		}
		numbers++
		values := notNumbers
		if field.Max < algorithm.MaxExact {
			values = append(values[:len(values):len(values)],
				strconv.FormatInt(field.Max+1, 10), strconv.FormatInt(algorithm.MaxExact, 10))
		}
		for _, value := range values {
			n++
			h.damage(p, l, h.subject(n), "field "+field.Name+" is "+strconv.Quote(value), func() {
				h.b.Corrupt(h, p, h.subject(n), field.Name, value)
			})
		}
	}
	if numbers < 3 {
		h.Errorf("the backend names %d numbers in a state, want 3 or more", numbers)
	}
}

// corruptIdentity: a state that does not say that it is this policy's is not.
func corruptIdentity(h *harness, k kind) {
	p := h.policy(k.config("identity", 10, time.Hour))
	l := h.b.New(h, p)
	n := 0
	for _, field := range h.b.Fields(p) {
		if !field.Text {
			continue
		}
		for _, value := range []string{"", " ", "x", "1", p.Fingerprint(), "2:fw:1:" + p.Fingerprint()} {
			n++
			h.damage(p, l, h.subject(n), "field "+field.Name+" is "+strconv.Quote(value), func() {
				h.b.Corrupt(h, p, h.subject(n), field.Name, value)
			})
		}
	}
	if n == 0 {
		h.Error("the backend names no field that says whose the state is")
	}
}

// missingFields: a state without one of its fields is Incompatible. Casebook 13.
func missingFields(h *harness, k kind) {
	p := h.policy(k.config("partial", 10, time.Hour))
	l := h.b.New(h, p)
	for i, field := range h.b.Fields(p) {
		h.damage(p, l, h.subject(i), "without field "+field.Name, func() {
			h.b.Drop(h, p, h.subject(i), field.Name)
		})
	}
}
