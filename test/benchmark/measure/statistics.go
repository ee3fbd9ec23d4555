package measure

import (
	"math"
	"slices"
)

// Median is the middle of values, or the mean of the middle two. It is NaN for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratio is a/b. It is NaN where b is 0 or either is no number, so that a figure that was not measured
// never looks like one.
func Ratio(a, b float64) float64 {
	if b == 0 || math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return a / b
}

// Spread is the least and the greatest of values, NaN for none.
func Spread(values []float64) (least, greatest float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(values), slices.Max(values)
}
