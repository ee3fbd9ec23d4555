package rules_test

import (
	"slices"
	"testing"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

func entries(pairs ...string) []rules.Entry {
	var all []rules.Entry
	for pair := range slices.Chunk(pairs, 2) {
		all = append(all, rules.Entry{Key: pair[0], Value: pair[1]})
	}
	return all
}

// TestFind names each rule by its limit.
func TestFind(t *testing.T) {
	t.Parallel()
	loaded := parse(t, inline(`
domain: d
descriptors:
- {key: a, value: x, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: a, value: x*, rate_limit: {unit: day, requests_per_unit: 2}}
- {key: a, value: xy*, rate_limit: {unit: day, requests_per_unit: 3}}
- {key: a, rate_limit: {unit: day, requests_per_unit: 4}}
- {key: a, value: let-through}
- key: b
  value: exact
  descriptors: [{key: c, value: one, rate_limit: {unit: day, requests_per_unit: 5}}]
- key: b
  rate_limit: {unit: day, requests_per_unit: 6}
  descriptors: [{key: c, rate_limit: {unit: day, requests_per_unit: 7}}]
- {key: any, value: "*", rate_limit: {unit: day, requests_per_unit: 8}}
- {key: any, rate_limit: {unit: day, requests_per_unit: 9}}
- {key: mid, value: b*d, rate_limit: {unit: day, requests_per_unit: 10}}
- key: s
  value: top/*
  share_threshold: true
  descriptors:
  - key: s
    value: in/*
    descriptors: [{key: leaf, rate_limit: {unit: day, requests_per_unit: 11}}]
- {key: a_b, value: c, rate_limit: {unit: day, requests_per_unit: 12}}
`))
	for _, c := range []struct {
		name    string
		entries []rules.Entry
		want    uint32 // 0 is no rule
		shared  []int
	}{
		{"its very value", entries("a", "x"), 1, nil},
		{"the first wildcard of the file, not the longest", entries("a", "xyz"), 2, nil},
		{"a value that is a pattern's text is that pattern's", entries("a", "xy*"), 3, nil},
		{"the key alone", entries("a", "other"), 4, nil},
		{"an empty value is the key alone", entries("a", ""), 4, nil},
		{"a descriptor without a limit lets through", entries("a", "let-through"), 0, nil},
		{"case counts", entries("A", "x"), 0, nil},
		{"deeper than the rules", entries("a", "x", "c", "one"), 0, nil},
		{"less deep than the rules", entries("b", "exact"), 0, nil},
		{"both levels", entries("b", "exact", "c", "one"), 5, nil},
		{"there is no way back from the most specific", entries("b", "exact", "c", "two"), 0, nil},
		{"a limit with descriptors below it", entries("b", "other"), 6, nil},
		{"below it", entries("b", "other", "c", "any"), 7, nil},
		{"the star alone has every value", entries("any", "thing"), 8, nil},
		{"and the empty one", entries("any", ""), 8, nil},
		{"a star in the middle is a character", entries("mid", "bcd"), 0, nil},
		{"and matches itself", entries("mid", "b*d"), 10, nil},
		{"only what shares is marked", entries("s", "top/1", "s", "in/2", "leaf", "v"), 11, []int{0}},
		{"keys and values are whole", entries("a", "b_c"), 4, nil},
		{"whatever they hold", entries("a_b", "c"), 12, nil},
		{"no entry", nil, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			match := loaded.Find("d", c.entries)
			got := uint32(0)
			if match.Rule != nil {
				got = match.Rule.RequestsPerUnit
			}
			if got != c.want || !match.KnownDomain {
				t.Fatalf("rule %d of %+v, want %d", got, match, c.want)
			}
			marked := make(map[int]bool)
			for _, i := range c.shared {
				marked[i] = true
			}
			for i, e := range c.entries {
				value, shared := match.Value(i, e.Value)
				if shared != marked[i] || !shared && value != e.Value || shared && value != "top/*" {
					t.Errorf("entry %d counts as %q, shared %t", i, value, shared)
				}
			}
		})
	}
	if match := loaded.Find("other", entries("a", "x")); match.KnownDomain || match.Rule != nil {
		t.Errorf("another domain: %+v", match)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for u, want := range map[rules.Unit]string{
		rules.UnitInvalid: "INVALID 0s", rules.UnitSecond: "second 1s", rules.UnitMinute: "minute 1m0s", rules.UnitHour: "hour 1h0m0s",
		rules.UnitDay: "day 24h0m0s", rules.UnitWeek: "week 168h0m0s", rules.UnitMonth: "month 720h0m0s", rules.UnitYear: "year 8760h0m0s",
		rules.Unit(99): "INVALID 0s",
	} {
		if got := u.String() + " " + u.Duration().String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for got, want := range map[string]string{
		rules.EffectDeny.String(): "deny", rules.Effect(9).String(): "INVALID", rules.ModeQuota.String(): "quota", rules.Mode(9).String(): "INVALID",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
