package measure

import (
	"math"
	"testing"
)

func same(a, b float64) bool { return a == b || (math.IsNaN(a) && math.IsNaN(b)) }

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, math.NaN()},
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{1, 1, 1000}, 1},
	} {
		given := append([]float64(nil), c.values...)
		if got := Median(c.values); !same(got, c.want) {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
		for i := range given {
			if c.values[i] != given[i] {
				t.Errorf("the values were reordered: %v, before %v", c.values, given)
			}
		}
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want float64 }{
		{6, 3, 2}, {0, 3, 0}, {1, 0, math.NaN()}, {0, 0, math.NaN()}, {math.NaN(), 1, math.NaN()}, {1, math.NaN(), math.NaN()},
	} {
		if got := Ratio(c.a, c.b); !same(got, c.want) {
			t.Errorf("%v by %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	if least, greatest := Spread([]float64{3, 1, 2}); least != 1 || greatest != 3 {
		t.Errorf("%v, %v", least, greatest)
	}
	if least, greatest := Spread(nil); !math.IsNaN(least) || !math.IsNaN(greatest) {
		t.Errorf("%v, %v of nothing", least, greatest)
	}
}
