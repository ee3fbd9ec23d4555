package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/test/model"
)

// scale gives a value of any magnitude up to most, small ones as likely as large ones.
func scale(r *rand.Rand, most int64) int64 {
	bound := most
	for bound > 1 && r.IntN(3) > 0 {
		bound = max(bound>>r.IntN(12), 1)
	}
	return 1 + r.Int64N(bound)
}

// randomModel gives a random policy of a random algorithm that its range check accepts, and a length
// of time in which its state changes much.
func randomModel(r *rand.Rand) (*model.Model, int64, int64) {
	for {
		clock := algorithm.Clock{MaxRegressionMillis: scale(r, 10_000) - 1}
		clock.GraceMillis = clock.MaxRegressionMillis + scale(r, 100_000) - 1
		switch r.IntN(5) {
		case 0:
			p := algorithm.FixedWindow{Limit: scale(r, algorithm.MaxExact), WindowMillis: scale(r, algorithm.MaxHorizonMillis), Clock: clock}
			if p.Check() == nil {
				return model.FixedWindow(p, fmt.Sprintf("1:fw:%d:random", 1+r.IntN(9))), p.WindowMillis, clock.MaxRegressionMillis
			}
		case 1:
			p := algorithm.SlidingCounter{Limit: scale(r, algorithm.MaxSlidingCounterLimit), WindowMillis: scale(r, algorithm.MaxHorizonMillis), Clock: clock}
			if p.Check() == nil {
				return model.SlidingCounter(p, fmt.Sprintf("1:sc:%d:random", 1+r.IntN(9))), p.WindowMillis, clock.MaxRegressionMillis
			}
		case 2:
			p := algorithm.GCRA{
				Limit: scale(r, 1_000_000_000), PeriodMillis: scale(r, algorithm.MaxHorizonMillis), Burst: scale(r, algorithm.MaxExact), Clock: clock,
			}
			if p.Check() == nil {
				return model.GCRA(p, fmt.Sprintf("1:gc:%d:random", 1+r.IntN(9))), max(p.FillMillis(), 1), clock.MaxRegressionMillis
			}
		case 3:
			p := algorithm.SlidingLog{Limit: scale(r, algorithm.MaxSlidingLogLimit), WindowMillis: scale(r, algorithm.MaxHorizonMillis), Clock: clock}
			if p.Check() == nil {
				return model.SlidingLog(p, fmt.Sprintf("1:sl:%d:random", 1+r.IntN(9))), p.WindowMillis, clock.MaxRegressionMillis
			}
		default:
			p := algorithm.TokenBucket{
				Capacity: scale(r, algorithm.MaxExact), RefillTokens: scale(r, 1_000_000_000),
				RefillPeriodMillis: scale(r, algorithm.MaxHorizonMillis), Clock: clock,
			}
			if p.Check() == nil {
				return model.TokenBucket(p, fmt.Sprintf("1:tb:%d:random", 1+r.IntN(9))), max(p.FillMillis(), 1), clock.MaxRegressionMillis
			}
		}
	}
}

// randomCost gives costs near the limit and small ones.
func randomCost(r *rand.Rand, limit int64) int64 {
	switch r.IntN(4) {
	case 0:
		return limit - r.Int64N(min(limit, 3))
	case 1:
		return 1 + r.Int64N(min(limit, 3))
	default:
		return scale(r, limit)
	}
}

var oddValues = []string{
	"", "nan", "inf", "1e400", "-1", "+1", "9007199254740992", "9007199254740991", "0", "1", "00012", "4398046511104", "4398046511105", "x",
}

// edit changes one part of a stored state, or removes it.
func edit(r *rand.Rand, m *model.Model, state model.Hash) model.Hash {
	if m.SortedSet() {
		return editSet(r, state)
	}
	return editHash(r, state)
}

// editHash changes, removes or repeats one number of a stored state, or moves the state to another name.
func editHash(r *rand.Rand, hash model.Hash) model.Hash {
	edited := model.Hash{}
	for identity, state := range hash {
		parts := strings.Split(state, " ")
		i := r.IntN(len(parts))
		switch r.IntN(12) {
		case 0:
			parts = slices.Delete(parts, i, i+1)
		case 1:
			parts = slices.Insert(parts, i, parts[i])
		case 2:
			identity += "x"
		default:
			parts[i] = oddValues[r.IntN(len(oddValues))]
		}
		edited[identity] = strings.Join(parts, " ")
	}
	return edited
}

var oddScores = []string{"-1", "-2", "0", "1.5", "inf", "-inf", "4398046511104", "4398046511105", "9007199254740992"}

// editSet changes one member of a sorted set or its score, removes it, or adds another.
func editSet(r *rand.Rand, set model.Hash) model.Hash {
	edited := maps.Clone(set)
	members := model.Members(set)
	chosen := members[r.IntN(len(members))]
	if r.IntN(2) == 0 {
		chosen = members[r.IntN(min(len(members), 2))] // These are always read.
	}
	member, score := chosen[0], chosen[1]
	if r.IntN(8) > 0 || len(members) == 1 {
		delete(edited, member)
	}
	separator := " "
	if strings.Contains(member, " ") == (r.IntN(8) == 0) {
		separator = ":"
	}
	switch r.IntN(6) {
	case 0:
		if len(edited) > 0 {
			return edited
		}
		edited[oddValues[r.IntN(len(oddValues))]] = score
	case 1:
		edited[member] = oddScores[r.IntN(len(oddScores))]
	case 2:
		number, _ := strconv.ParseFloat(score, 64)
		edited[member] = strconv.FormatFloat(number+float64(r.IntN(5)-2), 'f', -1, 64)
	default:
		parts := strings.Split(member, separator)
		i := r.IntN(len(parts))
		if parts[i] = oddValues[r.IntN(len(oddValues))]; r.IntN(2) == 0 {
			parts[i] = fmt.Sprintf("%016d", r.IntN(20))
		}
		edited[strings.Join(parts, separator)] = score
	}
	return edited
}
