package algorithm

import (
	"fmt"
	"math/big"
)

const (
	// MaxExact is 2^53-1, the largest integer up to which every integer is exact in a double.
	MaxExact int64 = 1<<53 - 1
	// MaxNowMillis is the latest clock reading accepted (2^42 ms, in the year 2109).
	MaxNowMillis int64 = 1 << 42
	// MaxHorizonMillis bounds windows, fill times and grace: 100 Julian years.
	MaxHorizonMillis int64 = 100 * 36525 * 24 * 36000
	// MaxRegressionMillis bounds the tolerated backward movement of the clock: one day.
	MaxRegressionMillis int64 = 24 * 60 * 60 * 1000
)

// RangeError says which intermediate step of an algorithm would leave its exact range.
type RangeError struct {
	Step  string // the step as a formula, with its variables named as in docs/guarantees.md
	Value string // the worst value that the step takes, in decimal
	Min   int64  // the least value allowed
	Max   int64  // the greatest value allowed
}

// Error names the step, its worst value and the range.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s is %s, outside %d..%d", e.Step, e.Value, e.Min, e.Max)
}

// within returns a RangeError unless low <= value <= high.
func within(step string, value, low, high int64) error {
	if value < low || value > high {
		return &RangeError{Step: step, Value: fmt.Sprint(value), Min: low, Max: high}
	}
	return nil
}

// bigWithin is within for a value that may not fit 64 bits.
func bigWithin(step string, value *big.Int, high int64) error {
	if value.Sign() < 0 || value.Cmp(big.NewInt(high)) > 0 {
		return &RangeError{Step: step, Value: value.String(), Min: 0, Max: high}
	}
	return nil
}

// ceilDiv is the quotient of non-negative a and positive b, rounded up, without the sum a+b-1.
func ceilDiv(a, b int64) int64 {
	if a == 0 {
		return 0
	}
	return (a-1)/b + 1
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
