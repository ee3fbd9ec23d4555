package breaker

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// Bounds of a machine's numbers.
const (
	MostThreshold      = 1_000_000_000
	MostBuckets        = 20
	MostMinimumCalls   = 1_000_000_000
	MostRatePermille   = 1000
	MostProbes         = 16
	MostProbeSuccesses = 1_000_000
	// MostCalls is what one bucket counts up to; further results leave it as it is. It is the greatest
	// number for which a thousand times the sum of all buckets stays within 2^53-1.
	MostCalls = int64(maxExact / (MostRatePermille * MostBuckets))
)

const (
	maxExact = int64(algorithm.MaxExact)
	maxNow   = algorithm.MaxNowMillis
	maxSpan  = algorithm.MaxHorizonMillis
)

// Machine is a breaker's numbers, and its transitions as pure functions of stored state and a clock
// reading. Every quantity is an int64, durations are milliseconds.
//
// Exactly one trip rule is set: Threshold, or the four numbers of the rate, the others being 0.
//
// # Transitions
//
//   - Closed counts the results of calls. It trips when Threshold calls in a row have failed; or when
//     the window holds MinimumCalls results or more and failures*1000 >= RatePermille*results. The
//     window is the current bucket and the Buckets-1 before it.
//   - Open rejects until Since+OpenTimeout, then is half-open, whoever looks.
//   - Half-open leases at most MaxProbes slots at the same time. A slot is free again when its result
//     is recorded, or when its lease is over. A failed probe opens again; ProbeSuccesses successful
//     ones close.
//
// Rejections, late results and reads store nothing; neither does letting a call through while closed,
// nor a success where there is no failure to forget.
//
// # What is late
//
// The result of a call counts where the breaker is in the closed period in which the call was let
// through, and if that was less than Lifetime less the tolerated step back ago: state outlives its
// last write by Lifetime, so no trip between can have been forgotten. The result of a probe counts
// while its lease holds.
//
// # Stale state
//
// State that was last written Lifetime ago or longer decides exactly as absent state does: a breaker
// that nobody has used for so long is closed.
type Machine struct {
	Threshold int64

	Buckets      int64
	BucketMillis int64
	MinimumCalls int64
	RatePermille int64

	OpenTimeoutMillis int64
	MaxProbes         int64
	ProbeLeaseMillis  int64
	ProbeSuccesses    int64
	Clock             algorithm.Clock
}

// LifetimeMillis is how long state outlives its last write: the longest of open timeout, window and
// probe lease, and the grace.
func (m Machine) LifetimeMillis() int64 {
	return max(m.OpenTimeoutMillis, m.Buckets*m.BucketMillis, m.ProbeLeaseMillis) + m.Clock.GraceMillis
}

// Check returns what is out of range, all of it: *algorithm.RangeError values, joined. Within these
// ranges no intermediate value leaves 0..2^53-1: the greatest are the moments maxNow + lifetime and
// the products failures*1000 and RatePermille*results, with results at most Buckets*MostCalls.
func (m Machine) Check() error {
	var faults []error
	within := func(step string, value, low, high int64) {
		if value < low || value > high {
			faults = append(faults, &algorithm.RangeError{Step: step, Value: fmt.Sprint(value), Min: low, Max: high})
		}
	}
	if m.consecutive() {
		within("threshold", m.Threshold, 1, MostThreshold)
		within("buckets beside a threshold", m.Buckets, 0, 0)
		within("bucket width beside a threshold", m.BucketMillis, 0, 0)
		within("minimum calls beside a threshold", m.MinimumCalls, 0, 0)
		within("rate beside a threshold", m.RatePermille, 0, 0)
	} else {
		within("buckets", m.Buckets, 1, MostBuckets)
		within("bucket width", m.BucketMillis, 1, maxSpan)
		within("minimum calls", m.MinimumCalls, 1, MostMinimumCalls)
		within("rate in permille", m.RatePermille, 1, MostRatePermille)
		window := new(big.Int).Mul(big.NewInt(m.Buckets), big.NewInt(m.BucketMillis))
		if len(faults) == 0 && window.Cmp(big.NewInt(maxSpan)) > 0 {
			faults = append(faults, &algorithm.RangeError{Step: "buckets*width", Value: window.String(), Min: 1, Max: maxSpan})
		}
	}
	within("open timeout", m.OpenTimeoutMillis, 1, maxSpan)
	within("probes", m.MaxProbes, 1, MostProbes)
	within("probe lease", m.ProbeLeaseMillis, 1, maxSpan)
	within("probe successes", m.ProbeSuccesses, 1, MostProbeSuccesses)
	if err := m.Clock.Check(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (m Machine) consecutive() bool { return m.Threshold != 0 }
