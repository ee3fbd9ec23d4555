package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// allNodes lists every section and key of the schema by path.
var allNodes = list(schema)

func list(n *node) []*node {
	var nodes []*node
	for _, key := range slices.Sorted(maps.Keys(n.children)) {
		nodes = append(nodes, n.children[key])
		nodes = append(nodes, list(n.children[key])...)
	}
	return nodes
}

// nearest gives the known key that an unknown one most likely means: the closest name, and among
// equals the one in the same section, then one of the same subject, then the outer one. section is a path of the
// schema; policy takes the place of <id> in the answer.
func nearest(section, key, policy string) string {
	key = strings.ToLower(key)
	cost := func(n *node) int {
		if leaf(n.path) == anyPolicy {
			return 1 << 30
		}
		c := 2 * distance(key, leaf(n.path))
		if n.path != join(section, leaf(n.path)) {
			c++
		}
		if subject(section) != "" && subject(n.path) != subject(section) {
			c++
		}
		return c
	}
	best := slices.MinFunc(allNodes, func(a, b *node) int {
		return cmp.Or(cmp.Compare(cost(a), cost(b)), cmp.Compare(strings.Count(a.path, "."), strings.Count(b.path, ".")), cmp.Compare(a.path, b.path))
	})
	return strings.Replace(best.path, anyPolicy, cmp.Or(policy, anyPolicy), 1)
}

// subject is the section right below app in which a path is, "" for app itself.
func subject(path string) string {
	_, below, _ := strings.Cut(path, ".")
	first, _, _ := strings.Cut(below, ".")
	return first
}

// distance counts the insertions, deletions and substitutions between two texts, of which only the
// beginning counts.
func distance(a, b string) int {
	if len(a) > maxShown {
		a = a[:maxShown]
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
