package envoyrls

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func identity(domain string, entries []rules.Entry) string {
	return string(appendIdentity(nil, domain, entries, rules.Match{}))
}

// awkward are texts of everything that a separator, an escape or a length could trip over.
var awkward = []string{
	"", "_", ".", ":", "|", "=", ",", "/", "*", "\x00", "\x00\x00", "a", "b", "ab", "a_b", "a_", "_b", "a=b", "a|b", "a:b",
	"a\x00b", "é", "e\u0301", "ключ", "😀", "\u202e", "\xff", " ", "a ", " a", "%00", "\\", "\"", "1", "01",
	strings.Repeat("x", 10<<10), strings.Repeat("x", 10<<10+1), strings.Repeat("_", 10<<10),
}

// TestNoTwoDescriptorsCollide takes every pair of descriptors of up to two entries of awkward texts.
func TestNoTwoDescriptorsCollide(t *testing.T) {
	t.Parallel()
	short := awkward[:24]
	seen := make(map[string]string)
	note := func(name, form string) {
		if other, twice := seen[form]; twice {
			t.Fatalf("%q and %q count at the same place", name, other)
		}
		seen[form] = name
	}
	for _, domain := range []string{"d", "d_", "d.a"} {
		for _, key := range awkward {
			for _, value := range awkward {
				note(domain+"("+key+","+value+")", identity(domain, []rules.Entry{{Key: key, Value: value}}))
			}
		}
	}
	for _, a := range short {
		for _, b := range short {
			for _, c := range short {
				for _, e := range short[:8] {
					note("d("+a+","+b+")("+c+","+e+")", identity("d", []rules.Entry{{Key: a, Value: b}, {Key: c, Value: e}}))
				}
			}
		}
	}
}

func TestIdentityIsInjective(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom(awkward), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		draw := func(name string) (string, []rules.Entry) {
			entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rules.Entry {
				return rules.Entry{Key: text.Draw(t, "key"), Value: text.Draw(t, "value")}
			}), 1, 4).Draw(t, name)
			return text.Draw(t, name+" domain"), entries
		}
		domainA, a := draw("a")
		domainB, b := draw("b")
		same := domainA == domainB && len(a) == len(b)
		for i := 0; same && i < len(a); i++ {
			same = a[i] == b[i]
		}
		if (identity(domainA, a) == identity(domainB, b)) != same {
			t.Fatalf("%q %q and %q %q", domainA, a, domainB, b)
		}
	})
}

// TestSharedValuesAreApart: the pattern of a threshold that is shared is no value of a descriptor.
func TestSharedValuesAreApart(t *testing.T) {
	t.Parallel()
	loaded, err := rules.Parse([]rules.File{{Name: "r", Content: []byte(`
domain: d
descriptors:
- {key: s, value: a/*, share_threshold: true, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: o, value: a/*, rate_limit: {unit: day, requests_per_unit: 1}}
`)}}, rules.Options{CleanupGrace: 0, MaxClockRegression: 0})
	if err != nil {
		t.Fatal(err)
	}
	of := func(key, value string) string {
		e := []rules.Entry{{Key: key, Value: value}}
		return string(appendIdentity(nil, "d", e, loaded.Find("d", e)))
	}
	if of("s", "a/1") != of("s", "a/2") || of("s", "a/1") != of("s", "a/*") {
		t.Error("values that share count apart")
	}
	if of("s", "a/*") == identity("d", []rules.Entry{{Key: "s", Value: "a/*"}}) {
		t.Error("a pattern counts as a value")
	}
	if of("o", "a/1") == of("o", "a/2") {
		t.Error("values that do not share count together")
	}
}

// TestOverridePolicies: limits that differ, or are kept otherwise, never have one ID and revision.
func TestOverridePolicies(t *testing.T) {
	t.Parallel()
	type place struct {
		id       ratelimit.PolicyID
		revision int64
	}
	seen := make(map[place]bool)
	for _, grace := range []time.Duration{5 * time.Second, time.Minute} {
		for _, regression := range []time.Duration{0, 2 * time.Second} {
			kept := newOverrides(nil, grace, regression)
			for _, requests := range []uint32{1, 2, 1<<31 - 2, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 3, 1<<32 - 2, 1<<32 - 1} {
				for _, unit := range []rules.Unit{rules.UnitSecond, rules.UnitYear} {
					for _, multiplier := range []uint32{1, 2, 100} {
						limit := override{requests: requests, unit: unit, multiplier: multiplier}
						p, err := kept.policy(limit)
						if err != nil {
							t.Fatalf("%+v: %v", limit, err)
						}
						at := place{p.ID(), p.Revision()}
						if seen[at] || p.Limit() != int64(requests) || p.MaxCost() != int64(requests) {
							t.Errorf("%+v: %+v, limit %d", limit, at, p.Limit())
						}
						seen[at] = true
					}
				}
			}
		}
	}
}

type countingPorts struct{ made int }

func (p *countingPorts) WithPolicies(*ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	p.made++
	return nil, nil //nolint:nilnil // nobody asks this port
}

// TestOverridesAreBounded: however many limits requests bring along, a bounded number of ports is kept,
// those used last among them.
func TestOverridesAreBounded(t *testing.T) {
	t.Parallel()
	ports := &countingPorts{}
	kept := newOverrides(ports, time.Second, 0)
	get := func(requests uint32) {
		if _, err := kept.get(override{requests: requests, unit: rules.UnitSecond, multiplier: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint32(10 * maxOverrides) {
		get(7)
		get(1000 + i)
		if held := len(kept.young) + len(kept.old); held > maxOverrides {
			t.Fatalf("%d are kept", held)
		}
	}
	if ports.made != 10*maxOverrides+1 {
		t.Errorf("%d ports were made of %d limits: the one that is always used was given up", ports.made, 10*maxOverrides+1)
	}
}
