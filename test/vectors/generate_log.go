package vectors

import (
	"fmt"
	"maps"

	"github.com/edgelimit/edgelimit/test/model"
)

// logScenarios are those that only a log tells apart.
func logScenarios() []scenario {
	ten := Policy{Revision: 1, Limit: 10, Window: 1000, Grace: minute, MaxRegression: 2000}
	return []scenario{
		{"uneven costs, each retry has its own entry", ten, base, []call{
			{0, 4}, {100, 3}, {150, 1}, {150, 2}, {200, 1}, {200, 5}, {200, 8}, {200, 10}, {999, 4}, {1000, 4}, {1100, 4}, {1100, 1}, {1149, 3}, {1150, 3},
		}},
		{"many at one moment", ten, base, []call{
			{0, 1}, {0, 1}, {0, 2}, {0, 1}, {0, 3}, {0, 3}, {0, 2}, {0, 1}, {999, 10}, {1000, 10}, {1000, 1},
		}},
		{"dead entries that no denial removes", ten, base, []call{
			{0, 2}, {10, 2}, {20, 2}, {900, 4}, {1010, 7}, {1020, 7}, {1020, 5}, {1500, 6}, {1900, 9}, {1900, 5},
		}},
		{"sums go on while anything is live, and begin anew", ten, base, []call{
			{0, 5}, {900, 5}, {1000, 5}, {1900, 5}, {2000, 5}, {3000, 1}, {3999, 1}, {4999, 1},
		}},
		{"steps back put entries at the last moment", ten, base, []call{
			{0, 1}, {500, 1}, {300, 1}, {-1500, 1}, {-1501, 1}, {400, 7}, {1499, 6}, {1500, 6},
		}},
		{"a window longer than all time", Policy{Revision: 1, Limit: 3, Window: 100 * year, Grace: 0, MaxRegression: 1000}, base, []call{
			{0, 1}, {10, 1}, {5, 1}, {5, 1}, {day, 1},
		}},
	}
}

// logEdits are single calls on a set that was edited: each part of the metadata and of the entry that
// is read takes each malformed value, scores leave their order, and members go missing.
func logEdits(program string, policy Policy) []Vector {
	m := Model(program, policy)
	healthy := m.Call(m.Call(nil, base-10, 2, false).After, base, 1, false).After
	metadata := func(identity, last, total string) string { return identity + " " + last + " " + total }
	const oldest = "0000000000000002:2"
	last, total := fmt.Sprint(base), "3"
	var vectors []Vector
	add := func(name string, before model.Hash) {
		vectors = append(vectors, Vector{Name: name, Policy: policy, Before: before, Now: base + 1, Cost: 1})
	}
	replace := func(name, old, member, score string) {
		edited := maps.Clone(healthy)
		delete(edited, old)
		if member != "" {
			edited[member] = score
		}
		add(name, edited)
	}
	own := metadata(m.Identity, last, total)
	for _, value := range append(malformed, "0", "1", "007", "9007199254740991", "4398046511105") {
		replace(fmt.Sprintf("last observed is %q", value), own, metadata(m.Identity, value, total), "-1")
		replace(fmt.Sprintf("last cumulative cost is %q", value), own, metadata(m.Identity, last, value), "-1")
		replace(fmt.Sprintf("cumulative cost is %q", value), oldest, value+":2", fmt.Sprint(base-10))
		replace(fmt.Sprintf("cost is %q", value), oldest, "0000000000000002:"+value, fmt.Sprint(base-10))
	}
	for _, value := range []string{"0000000000000000", "0000000000000001", "0000000000000004", "9007199254740991", "000000000000000x"} {
		replace("cumulative cost is "+value, oldest, value+":2", fmt.Sprint(base-10))
	}
	for _, value := range []string{"3", "5", "6"} {
		replace("last cumulative cost is "+value, own, metadata(m.Identity, last, value), "-1")
	}
	replace("last cumulative cost is within the limit of 2^53-1", own, metadata(m.Identity, last, "9007199254740987"), "-1")
	for _, score := range []string{"-1", "-2", "0", "1.5", "inf", "-inf", "9007199254740991", fmt.Sprint(base), fmt.Sprint(base + 1), fmt.Sprint(base - minute), fmt.Sprint(base - minute + 1)} {
		replace("the oldest entry has the score "+score, oldest, oldest, score)
	}
	for _, score := range []string{"0", "-2", "1", "-1.5", fmt.Sprint(base)} {
		replace("the metadata has the score "+score, own, own, score)
	}
	replace("no metadata", own, "", "")
	replace("no oldest entry", oldest, "", "")
	replace("no last entry, which is not read", "0000000000000003:1", "", "")
	add("metadata alone", model.Hash{own: "-1"})
	for _, identity := range []string{"", "1:xx:1:golden", m.Identity + ":sim", m.Identity + "x", "2" + m.Identity[1:]} {
		replace(fmt.Sprintf("identity is %q", identity), own, metadata(identity, last, total), "-1")
	}
	add("a set of somebody else", model.Hash{"name": "1", "other": "2"})
	for _, score := range []string{"-5", "-1", "3", fmt.Sprint(base + 5)} {
		extra := maps.Clone(healthy)
		extra["name"] = score
		add("a member of somebody else beside, at "+score, extra)
	}
	return append(vectors, logProbes(m, policy)...)
}

// logProbes are denials that search: the entries that the search meets are read, and checked.
func logProbes(m *model.Model, policy Policy) []Vector {
	var set model.Hash
	for i := range int64(5) {
		set = m.Call(set, base+10*i, 1, false).After
	}
	var vectors []Vector
	add := func(name string, before model.Hash, cost int64) {
		vectors = append(vectors, Vector{Name: name, Policy: policy, Before: before, Now: base + 50, Cost: cost})
	}
	for cost := range int64(5) {
		add(fmt.Sprintf("a full log, cost %d", cost+1), set, cost+1)
	}
	for i := range int64(5) {
		member := fmt.Sprintf("%016d:1", i+1)
		for _, value := range []string{"x", fmt.Sprintf("%016d:x", i+1), fmt.Sprintf("%016d:2", i+1)} {
			edited := maps.Clone(set)
			delete(edited, member)
			edited[value] = set[member]
			add(fmt.Sprintf("a full log, entry %d is %q", i+1, value), edited, 4)
		}
		missing := maps.Clone(set)
		delete(missing, member)
		add(fmt.Sprintf("a full log without entry %d", i+1), missing, 4)
	}
	return vectors
}
