package replay

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// shownSubjects is how many of the most denied subjects a summary names.
const shownSubjects = 10

// unknownWord names an outcome that is none of the four.
const unknownWord = "UNKNOWN"

// tally counts under one policy.
type tally struct {
	policy  *ratelimit.RateLimitPolicy
	counts  PolicySummary
	denied  map[ratelimit.SubjectDigest]int64
	current Window // the window of the last request
	busiest Window
	series  series
}

func newTally(policy *ratelimit.RateLimitPolicy) *tally {
	kind, length := windowOf(policy.Parameters())
	return &tally{
		policy:  policy,
		counts:  PolicySummary{PolicyID: string(policy.ID()), Revision: policy.Revision(), Algorithm: policy.Algorithm().String()},
		denied:  make(map[ratelimit.SubjectDigest]int64),
		current: Window{Kind: kind, Millis: length.Milliseconds()},
	}
}

// windowOf gives the stretch of time that a policy itself counts in.
func windowOf(parameters ratelimit.Parameters) (kind string, length time.Duration) {
	switch p := parameters.(type) {
	case ratelimit.FixedWindowParameters:
		return "window", p.Window
	case ratelimit.SlidingWindowCounterParameters:
		return "window", p.Window
	case ratelimit.TokenBucketParameters:
		return "refill-period", p.RefillPeriod
	case ratelimit.GCRAParameters:
		return "period", p.Period
	case ratelimit.SlidingWindowLogParameters:
		return "window", p.Window
	}
	return "minute", time.Minute
}

// count adds one outcome. Times do not go back.
func (t *tally) count(millis int64, subject ratelimit.SubjectDigest, outcome ratelimit.Outcome) {
	t.counts.Requests++
	if from := millis - millis%t.current.Millis; from != t.current.FromMillis || t.current.Requests == 0 {
		t.current.FromMillis, t.current.Requests, t.current.Denied = from, 0, 0
	}
	t.current.Requests++
	switch o := outcome.(type) {
	case ratelimit.Evaluated:
		if o.Decision.Allowed {
			t.counts.Admitted++
			t.series.add(millis, 1, 0)
		} else {
			t.counts.Denied++
			t.current.Denied++
			t.denied[subject]++
			t.series.add(millis, 0, 1)
		}
	case ratelimit.Unavailable:
		increment(&t.counts.Unavailable, o.Category.String())
	case ratelimit.Indeterminate:
		t.counts.Indeterminate++
	case ratelimit.Incompatible:
		increment(&t.counts.Incompatible, o.Category.String())
	default:
		increment(&t.counts.Incompatible, unknownWord)
	}
	if t.current.Requests > t.busiest.Requests || t.current.FromMillis == t.busiest.FromMillis {
		t.busiest = t.current
	}
}

func increment(counts *map[string]int64, word string) {
	if *counts == nil {
		*counts = make(map[string]int64)
	}
	(*counts)[word]++
}

func (t *tally) summary() PolicySummary {
	s := t.counts
	if s.Requests > 0 {
		s.DeniedShare = float64(s.Denied) / float64(s.Requests)
		busiest := t.busiest
		s.Busiest = &busiest
	}
	s.DeniedSubjects = len(t.denied)
	type subject struct {
		digest ratelimit.SubjectDigest
		denied int64
	}
	subjects := make([]subject, 0, len(t.denied))
	for digest, denied := range t.denied {
		subjects = append(subjects, subject{digest, denied})
	}
	slices.SortFunc(subjects, func(a, b subject) int {
		left, right := a.digest.Bytes(), b.digest.Bytes()
		return cmp.Or(cmp.Compare(b.denied, a.denied), bytes.Compare(left[:], right[:]))
	})
	for _, each := range subjects[:min(len(subjects), shownSubjects)] {
		s.MostDenied = append(s.MostDenied, Subject{Digest: each.digest.String(), Denied: each.denied})
	}
	s.Series = t.series.points()
	return s
}
