package differential

import (
	"fmt"
	"math/rand/v2"

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
		switch r.IntN(3) {
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

// edit changes one field of a stored hash, or removes it.
func edit(r *rand.Rand, hash model.Hash) model.Hash {
	edited := model.Hash{}
	fields := make([]string, 0, len(hash))
	for _, field := range []string{"m", "l", "w", "c", "pw", "pc", "t", "r", "e"} {
		if value, ok := hash[field]; ok {
			edited[field] = value
			fields = append(fields, field)
		}
	}
	field := fields[r.IntN(len(fields))]
	if r.IntN(8) == 0 && len(fields) > 1 {
		delete(edited, field)
	} else {
		edited[field] = oddValues[r.IntN(len(oddValues))]
	}
	return edited
}
