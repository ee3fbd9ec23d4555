package memory

import (
	"cmp"
	"slices"
	"strings"
)

// Member is one member of a sorted set.
type Member struct {
	Score int64
	Name  string
}

func compareMembers(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Name, b.Name))
}

// sortedSet keeps members by score, then by their bytes.
type sortedSet struct {
	scores map[string]int64
	sorted []Member
}

func newSortedSet() *sortedSet { return &sortedSet{scores: make(map[string]int64)} }

// set adds a member or moves it, and reports whether it is new.
func (z *sortedSet) set(m Member) bool {
	before, there := z.scores[m.Name]
	if there {
		if before == m.Score {
			return false
		}
		z.drop(Member{Score: before, Name: m.Name})
	}
	z.scores[m.Name] = m.Score
	at, _ := slices.BinarySearchFunc(z.sorted, m, compareMembers)
	z.sorted = slices.Insert(z.sorted, at, m)
	return !there
}

func (z *sortedSet) drop(m Member) {
	at, _ := slices.BinarySearchFunc(z.sorted, m, compareMembers)
	z.sorted = slices.Delete(z.sorted, at, at+1)
	delete(z.scores, m.Name)
}

// between gives the ranks [from, to) of the members with a score of low..high.
func (z *sortedSet) between(low, high int64) (from, to int) {
	byScore := func(m Member, score int64) int { return cmp.Compare(m.Score, score) }
	from, _ = slices.BinarySearchFunc(z.sorted, low, byScore)
	if high < low {
		return from, from
	}
	if high == maxScoreBound {
		return from, len(z.sorted)
	}
	to, _ = slices.BinarySearchFunc(z.sorted, high+1, byScore)
	return from, to
}

// cut removes the ranks [from, to).
func (z *sortedSet) cut(from, to int) {
	for _, m := range z.sorted[from:to] {
		delete(z.scores, m.Name)
	}
	z.sorted = slices.Delete(z.sorted, from, to)
}

// ranks turns Redis's start and stop, which count from the end where negative, into [from, to).
func (z *sortedSet) ranks(start, stop int64) (from, to int) {
	n := int64(len(z.sorted))
	if start < 0 {
		start = max(start+n, 0)
	}
	if stop < 0 {
		stop += n
	}
	stop = min(stop, n-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop + 1)
}
