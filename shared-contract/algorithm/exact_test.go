package algorithm

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"
)

// wantRange requires a RangeError with this step and value, or nil where step is empty.
func wantRange(t *testing.T, name string, err error, step, value string) {
	t.Helper()
	if step == "" {
		if err != nil {
			t.Errorf("%s: refused: %v", name, err)
		}
		return
	}
	var out *RangeError
	if !errors.As(err, &out) {
		t.Errorf("%s: error %v, want a RangeError", name, err)
		return
	}
	if out.Step != step || out.Value != value {
		t.Errorf("%s: step %q with value %s, want %q with %s", name, out.Step, out.Value, step, value)
	}
	v, ok := new(big.Int).SetString(out.Value, 10)
	if !ok || v.Cmp(big.NewInt(out.Min)) >= 0 && v.Cmp(big.NewInt(out.Max)) <= 0 {
		t.Errorf("%s: value %s is inside %d..%d", name, out.Value, out.Min, out.Max)
	}
}

func TestRangeErrorNamesEverything(t *testing.T) {
	t.Parallel()
	err := within("limit", -3, 1, 9)
	if got, want := err.Error(), "limit is -3, outside 1..9"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if bigWithin("x", big.NewInt(-1), 5) == nil || bigWithin("x", big.NewInt(6), 5) == nil {
		t.Error("a value out of range was accepted")
	}
	if bigWithin("x", big.NewInt(0), 5) != nil || bigWithin("x", big.NewInt(5), 5) != nil {
		t.Error("a value in range was refused")
	}
}

func TestConstants(t *testing.T) {
	t.Parallel()
	if MaxExact != 9_007_199_254_740_991 || int64(float64(MaxExact)) != MaxExact {
		t.Errorf("MaxExact is %d", MaxExact)
	}
	if MaxHorizonMillis != 3_155_760_000_000 || MaxNowMillis != 4_398_046_511_104 || MaxRegressionMillis != 86_400_000 {
		t.Errorf("horizon %d, now %d, regression %d", MaxHorizonMillis, MaxNowMillis, MaxRegressionMillis)
	}
}

func TestCeilDiv(t *testing.T) {
	t.Parallel()
	for a := range int64(200) {
		for b := int64(1); b < 50; b++ {
			got := ceilDiv(a, b)
			if got*b < a || (got-1)*b >= a && a > 0 || a == 0 && got != 0 {
				t.Fatalf("ceilDiv(%d, %d) = %d", a, b, got)
			}
		}
	}
	const largest = 1<<63 - 1
	for _, c := range [][3]int64{{largest, largest, 1}, {largest, 1, largest}, {1, largest, 1}, {largest, 2, 1 << 62}, {MaxExact, MaxExact - 1, 2}} {
		if got := ceilDiv(c[0], c[1]); got != c[2] {
			t.Errorf("ceilDiv(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestGCD(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		a, b := 1+rng.Int64N(1<<rng.IntN(54)), 1+rng.Int64N(1<<rng.IntN(54))
		if want := new(big.Int).GCD(nil, nil, big.NewInt(a), big.NewInt(b)).Int64(); gcd(a, b) != want {
			t.Fatalf("gcd(%d, %d) = %d, want %d", a, b, gcd(a, b), want)
		}
	}
}

func TestSaturatingProduct(t *testing.T) {
	t.Parallel()
	const largest = 1<<63 - 1
	for _, c := range [][3]int64{{3, 4, 12}, {largest, 1, largest}, {largest, 2, largest}, {1 << 40, 1 << 40, largest}, {largest / 7, 7, largest / 7 * 7}} {
		if got := saturatingProduct(c[0], c[1]); got != c[2] {
			t.Errorf("%d * %d = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
