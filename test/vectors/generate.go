package vectors

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/test/model"
)

// call is one step of a scenario, at an offset in ms from its start.
type call struct {
	at   int64
	cost int64
}

// scenario is a policy, a start and calls from absent state; each call becomes a vector.
type scenario struct {
	name   string
	policy Policy
	start  int64
	calls  []call
}

// base is 2026-01-02T03:04:00Z, aligned to a minute.
const base int64 = 1_767_323_040_000

const (
	minute = int64(60_000)
	day    = int64(86_400_000)
	year   = int64(31_557_600_000)
)

func windowScenarios(limitEdge int64) []scenario {
	small := Policy{Revision: 3, Limit: 5, Window: minute, Grace: minute, MaxRegression: 2000}
	long := Policy{Revision: 1, Limit: 3, Window: 100 * year, Grace: 0, MaxRegression: 0}
	return []scenario{
		{"use up, deny, next window", small, base, []call{
			{0, 1}, {1, 2}, {10, 2}, {11, 1}, {59_999, 1}, {60_000, 1}, {60_001, 5}, {60_002, 4},
		}},
		{"boundary after a denied, non-consuming request", small, base + 30_000, []call{{0, 4}, {1, 2}, {2, 1}, {3, 1}}},
		{"idle over two windows", small, base + 59_999, []call{{0, 5}, {60_001, 5}, {180_001, 5}, {180_002, 1}}},
		{"the window before weighs in", small, base, []call{
			{0, 5}, {60_000, 1}, {72_000, 1}, {72_001, 1}, {90_000, 1}, {90_001, 3}, {119_999, 1}, {120_000, 1}, {150_000, 2},
		}},
		{"small step back clamps, also over a window's start", small, base + 60_000, []call{
			{0, 1}, {-1, 1}, {-2000, 1}, {-2001, 1}, {-600_000, 1}, {1, 3},
		}},
		{"limit 1, window 1 ms", Policy{Revision: 1, Limit: 1, Window: 1, MaxRegression: 0}, base, []call{
			{0, 1}, {0, 1}, {1, 1}, {1, 1}, {3, 1}, {2, 1},
		}},
		{"window of 31 days", Policy{Revision: 1, Limit: 1000, Window: 31 * day, Grace: day, MaxRegression: day}, base, []call{
			{0, 999}, {1, 2}, {2, 1}, {-day, 1}, {31 * day, 1000}, {40 * day, 500}, {62 * day, 500},
		}},
		{"window of a year", Policy{Revision: 1, Limit: 7, Window: year, Grace: minute}, base, []call{
			{0, 7}, {1, 1}, {year / 2, 1}, {year, 3}, {year + year/3, 3}, {2 * year, 7},
		}},
		{"window of 100 years, the first since the epoch", long, base, []call{{0, 1}, {1, 2}, {2, 1}}},
		{"limit at the edge", Policy{Revision: 2147483647, Limit: limitEdge, Window: minute, Grace: minute}, base, []call{
			{0, limitEdge}, {1, 1}, {59_999, limitEdge}, {60_000, 1}, {60_000, limitEdge - 1}, {90_000, limitEdge / 3}, {120_000, limitEdge},
		}},
		{"3,000,000 an hour", Policy{Revision: 1, Limit: 3_000_000, Window: 60 * minute, Grace: minute}, base, []call{
			{0, 3_000_000}, {1, 1}, {60 * minute, 1}, {75 * minute, 750_000}, {75 * minute, 750_001}, {90 * minute, 1_500_000},
		}},
		{"latest clock", Policy{Revision: 1, Limit: 2, Window: minute, Grace: minute}, algorithm.MaxNowMillis - 1, []call{{0, 1}, {1, 1}, {1, 1}}},
	}
}

func bucketScenarios() []scenario {
	third := Policy{Revision: 1, Limit: 10, RefillTokens: 1, RefillPeriod: 3000, Grace: minute, MaxRegression: 2000}
	return []scenario{
		{"use up, deny, refill", Policy{Revision: 3, Limit: 5, RefillTokens: 5, RefillPeriod: 1000, Grace: minute, MaxRegression: 2000}, base, []call{
			{0, 1}, {0, 4}, {0, 1}, {199, 1}, {200, 1}, {201, 1}, {399, 1}, {400, 1}, {2000, 5}, {10_000, 5},
		}},
		{"a third of a token a second, remainder carried", third, base, []call{
			{0, 10}, {1000, 1}, {2000, 1}, {2999, 1}, {3000, 1}, {3500, 1}, {7000, 1}, {7001, 1}, {11_000, 1}, {12_000, 1},
		}},
		{"boundary after a denied, non-consuming request", third, base, []call{{0, 9}, {1, 2}, {2, 1}, {2, 1}}},
		{"small step back clamps, none refills twice", third, base, []call{
			{0, 10}, {3000, 1}, {2999, 1}, {1000, 1}, {999, 1}, {-600_000, 1}, {3000, 1}, {6000, 1},
		}},
		{"ten minutes idle, then a burst", third, base, []call{{0, 10}, {600_000, 10}, {600_000, 1}}},
		{"7 tokens in 11 ms", Policy{Revision: 1, Limit: 100, RefillTokens: 7, RefillPeriod: 11, Grace: 0, MaxRegression: 5}, base, []call{
			{0, 100}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {14, 7}, {15, 50}, {200, 100}, {200, 1}, {201, 1}, {202, 1},
		}},
		{"the expiry moves only when it must", Policy{Revision: 1, Limit: 10, RefillTokens: 1, RefillPeriod: 1000, Grace: 1000, MaxRegression: 0}, base, []call{
			{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 5}, {11_003, 1}, {12_003, 1}, {30_000, 10},
		}},
		{"one token a day", Policy{Revision: 1, Limit: 1000, RefillTokens: 1000, RefillPeriod: day, Grace: minute, MaxRegression: 2000}, base, []call{
			{0, 1000}, {1, 1}, {86_399, 1}, {86_400, 1}, {day + 86_400, 1000},
		}},
		{"fill time of 100 years", Policy{Revision: 1, Limit: 100, RefillTokens: 1, RefillPeriod: year, Grace: 0, MaxRegression: 0}, base, []call{
			{0, 100}, {1, 1}, {year - 1, 1}, {year, 1}, {50 * year, 50}, {50 * year, 1},
		}},
		{"capacity at the edge of its range", Policy{Revision: 1, Limit: 4_503_599_627_370_495, RefillTokens: 4_503_599_627_370_495, RefillPeriod: 1, Grace: 0, MaxRegression: 0}, base, []call{
			{0, 4_503_599_627_370_495}, {0, 1}, {1, 4_503_599_627_370_495}, {1, 1}, {2, 1},
		}},
		{"capacity 1", Policy{Revision: 1, Limit: 1, RefillTokens: 1, RefillPeriod: 1, Grace: 0, MaxRegression: 0}, base, []call{{0, 1}, {0, 1}, {1, 1}, {1, 1}}},
	}
}

// malformed are values that no program ever writes.
var malformed = []string{
	"", " ", "nan", "inf", "-inf", "1e400", "1e3", "-1", "+1", "0x10", "1.5", "1 ", " 1", "1\n", "9007199254740992", "12345678901234567", "٣",
}

// editScenarios are single calls on a state that was edited: each number in turn takes each malformed
// value, goes missing, or goes out of its range.
func editScenarios(program string, policy Policy) []Vector {
	m := Model(program, policy)
	healthy := m.Call(nil, base, 1, false).After
	var vectors []Vector
	add := func(name string, before model.Hash) {
		vectors = append(vectors, Vector{Name: name, Policy: policy, Before: before, Now: base + 1, Cost: 1})
	}
	own := strings.Split(healthy[m.Identity], " ")
	for i, part := range m.Parts() {
		for _, value := range append(malformed, "0", "1", "007", "9007199254740991", "4398046511105", "0000000000000001", "00000000000000001") {
			edited := slices.Clone(own)
			edited[i] = value
			add(fmt.Sprintf("%s is %q", part, value), model.Hash{m.Identity: strings.Join(edited, " ")})
		}
		add(part+" is missing", model.Hash{m.Identity: strings.Join(slices.Delete(slices.Clone(own), i, i+1), " ")})
		add(part+" stands twice", model.Hash{m.Identity: strings.Join(slices.Insert(slices.Clone(own), i, own[i]), " ")})
	}
	for _, separator := range []string{"", "  ", "\t", "\n", ",", "\x00"} {
		add(fmt.Sprintf("%q stands between the numbers", separator), model.Hash{m.Identity: strings.Join(own, separator)})
	}
	for _, around := range []string{" %s", "%s ", "%s\n", "%s\x00", ""} {
		add(fmt.Sprintf("the state as %q", around), model.Hash{m.Identity: strings.ReplaceAll(around, "%s", healthy[m.Identity])})
	}
	for _, identity := range []string{"", "1:xx:1:golden", m.Identity + ":sim", m.Identity + "x", "2" + m.Identity[1:]} {
		add(fmt.Sprintf("identity is %q", identity), model.Hash{identity: healthy[m.Identity]})
	}
	add("a hash of somebody else", model.Hash{"name": "x"})
	extra := maps.Clone(healthy)
	extra["name"] = "x"
	add("a field of somebody else beside", extra)
	return vectors
}

// Generate makes the vectors of a program.
func Generate(program string) File {
	file := File{Program: program}
	var scenarios []scenario
	edits := editScenarios
	edited := Policy{Revision: 3, Limit: 5, Window: minute, Grace: minute, MaxRegression: 2000}
	switch program {
	case "rate-fixed-window-v1":
		scenarios = windowScenarios(algorithm.MaxExact)
	case "rate-sliding-counter-v1":
		scenarios = windowScenarios(algorithm.MaxSlidingCounterLimit)
	case "rate-gcra-v1":
		scenarios = gcraScenarios()
		edited = Policy{Revision: 3, Limit: 3, Period: 10_000, Burst: 5, Grace: minute, MaxRegression: 2000}
	case "rate-sliding-log-v1":
		scenarios = slices.DeleteFunc(append(windowScenarios(algorithm.MaxSlidingLogLimit), logScenarios()...), func(s scenario) bool {
			return s.policy.Limit > algorithm.MaxSlidingLogLimit
		})
		edits = logEdits
	default:
		scenarios = bucketScenarios()
		edited = Policy{Revision: 3, Limit: 5, RefillTokens: 1, RefillPeriod: 3000, Grace: minute, MaxRegression: 2000}
	}
	for _, s := range scenarios {
		m := Model(program, s.policy)
		var state model.Hash
		for i, c := range s.calls {
			v := Vector{
				Name: fmt.Sprintf("%s: call %d", s.name, i+1), Policy: s.policy, Before: state, Now: s.start + c.at, Cost: c.cost,
			}
			complete(m, &v)
			file.Vectors = append(file.Vectors, v)
			state = v.After
		}
	}
	m := Model(program, edited)
	for _, v := range edits(program, edited) {
		complete(m, &v)
		file.Vectors = append(file.Vectors, v)
	}
	return file
}

func complete(m *model.Model, v *Vector) {
	r := m.Call(v.Before, v.Now, v.Cost, false)
	v.Reply, v.TTL = r.Reply, r.TTL
	v.After = r.Leaves(v.Before)
}
