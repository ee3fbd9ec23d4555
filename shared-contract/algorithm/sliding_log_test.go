package algorithm

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestSlidingLogCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		p           SlidingLog
		step, value string
	}{
		{"least", SlidingLog{Limit: 1, WindowMillis: 1}, "", ""},
		{"greatest", SlidingLog{Limit: 10_000, WindowMillis: MaxHorizonMillis}, "", ""}, // casebook 17
		{"limit above", SlidingLog{Limit: 10_001, WindowMillis: 1}, "limit", "10001"},
		{"limit 0", SlidingLog{WindowMillis: 1}, "limit", "0"}, // casebook 11
		{"limit -1", SlidingLog{Limit: -1, WindowMillis: 1}, "limit", "-1"},
		{"window 0", SlidingLog{Limit: 1}, "window", "0"},
		{"window above", SlidingLog{Limit: 1, WindowMillis: MaxHorizonMillis + 1}, "window", "3155760000001"},
		{"clock", SlidingLog{Limit: 1, WindowMillis: 1, Clock: Clock{MaxRegressionMillis: 1}}, "cleanup grace", "0"},
	} {
		wantRange(t, c.name, c.p.Check(), c.step, c.value)
	}
}

// naiveLog keeps everything that was ever admitted and sums it up each time.
type naiveLog struct {
	p        SlidingLog
	admitted []SlidingLogEntry
}

func (n *naiveLog) spent(now int64) (sum int64) {
	for _, e := range n.admitted {
		if e.At+n.p.WindowMillis > now {
			sum += e.Cost
		}
	}
	return sum
}

// firstFit tries every moment from now on.
func (n *naiveLog) firstFit(now, cost int64) int64 {
	for n.spent(now)+cost > n.p.Limit {
		now++
	}
	return now
}

func (n *naiveLog) decide(serverNow, cost int64) Decision {
	now := serverNow
	if last := len(n.admitted) - 1; last >= 0 {
		effective, unsafe, ok := n.p.Clock.effective(serverNow, n.admitted[last].At, n.p.Limit)
		if !ok {
			return unsafe
		}
		now = effective
	}
	d := Decision{Status: StatusDenied, ServerNowMillis: serverNow, EffectiveNowMillis: now, Limit: n.p.Limit}
	if n.spent(now)+cost <= n.p.Limit {
		n.admitted = append(n.admitted, SlidingLogEntry{At: now, Cost: cost})
		d.Status = StatusAllowed
	} else {
		d.RetryAfterMillis = n.firstFit(now, cost) - serverNow
	}
	d.Remaining = n.p.Limit - n.spent(now)
	d.ResetAtMillis = n.firstFit(now, n.p.Limit)
	return d
}

// TestSlidingLogIsExact: each field of each decision is that of a log that is never trimmed and has no
// sums, searched millisecond by millisecond; also where the entries lie in the two pieces of a ring.
func TestSlidingLogIsExact(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 9))
	statuses := map[Status]int{}
	for _, shape := range [][2]int64{{1, 1}, {1, 50}, {2, 7}, {3, 40}, {10, 100}, {25, 60}, {100, 30}} {
		p := SlidingLog{Limit: shape[0], WindowMillis: shape[1], Clock: Clock{GraceMillis: 90, MaxRegressionMillis: 12}}
		for range 12 {
			naive := &naiveLog{p: p}
			var s SlidingLogState
			now := 1000 + rng.Int64N(1000)
			for step := range 150 {
				switch rng.IntN(8) {
				case 0:
					now -= rng.Int64N(20)
				case 1:
					now += rng.Int64N(3 * p.WindowMillis)
				case 2:
				default:
					now += rng.Int64N(p.WindowMillis/6 + 2)
				}
				cost := 1 + rng.Int64N(p.Limit)
				if rng.IntN(2) == 0 {
					cost = 1 + rng.Int64N(min(p.Limit, 3))
				}
				want := naive.decide(now, cost)
				cut := rng.IntN(len(s.Entries) + 1)
				pieces, planned := p.DecideOver(SlidingLogEntries{Older: s.Entries[:cut], Newer: s.Entries[cut:]}, now, cost)
				before := slices.Clone(s.Entries)
				got, next := p.Decide(s, now, cost)
				if got != want || pieces != want || !p.Valid(next) {
					t.Fatalf("%+v, step %d at %d, cost %d over %+v:\n   got %+v\npieces %+v\n  want %+v", p, step, now, cost, s, got, pieces, want)
				}
				if !slices.Equal(before, s.Entries) {
					t.Fatalf("the state given was changed from %+v to %+v", before, s.Entries)
				}
				if got.Status == StatusAllowed {
					if want := append(before[planned.Dead:], planned.Entry); !slices.Equal(want, next.Entries) || planned.ExpiresAt != next.ExpiresAt {
						t.Fatalf("the step %+v does not lead to %+v", planned, next)
					}
				}
				s = next
				statuses[got.Status]++
			}
		}
	}
	if statuses[StatusAllowed] < 2000 || statuses[StatusDenied] < 2000 || statuses[StatusClockUnsafe] < 100 {
		t.Errorf("%v: too few to compare", statuses)
	}
}

// At most Limit entries are kept, however long the traffic goes on.
func TestSlidingLogIsBounded(t *testing.T) {
	t.Parallel()
	p := SlidingLog{Limit: 100, WindowMillis: 50}
	var s SlidingLogState
	most := 0
	for now := range int64(2000) {
		for range 3 {
			_, s = p.Decide(s, 1_000_000+now, 1)
			most = max(most, len(s.Entries))
		}
	}
	if most != 100 {
		t.Errorf("%d entries at most, want 100", most)
	}
}

// The latest moments that a decision can name are in range.
func TestSlidingLogLatestMoments(t *testing.T) {
	t.Parallel()
	p := SlidingLog{
		Limit: 2, WindowMillis: MaxHorizonMillis,
		Clock: Clock{GraceMillis: MaxHorizonMillis, MaxRegressionMillis: MaxRegressionMillis},
	}
	d, s := p.Decide(SlidingLogState{}, MaxNowMillis, 1)
	if want := MaxNowMillis + MaxHorizonMillis; d.Status != StatusAllowed || d.ResetAtMillis != want {
		t.Errorf("%+v, want reset at %d", d, want)
	}
	if want := MaxNowMillis + 2*MaxHorizonMillis; s.ExpiresAt != want || want > MaxExact {
		t.Errorf("expires at %d, want %d", s.ExpiresAt, want)
	}
}

func TestSlidingLogDecide(t *testing.T) {
	t.Parallel()
	p := SlidingLog{Limit: 10, WindowMillis: 1000, Clock: Clock{GraceMillis: 500, MaxRegressionMillis: 100}}
	three := []SlidingLogEntry{{5000, 4, 4}, {5300, 7, 3}, {5300, 9, 2}}
	var s SlidingLogState
	for i, c := range []struct {
		now, cost int64
		want      Decision
		after     SlidingLogState
	}{
		{5000, 4, Decision{StatusAllowed, 5000, 5000, 10, 6, 0, 6000}, SlidingLogState{true, 5000, three[:1], 6500}},
		{5300, 3, Decision{StatusAllowed, 5300, 5300, 10, 3, 0, 6300}, SlidingLogState{true, 5300, three[:2], 6800}},
		{5250, 2, Decision{StatusAllowed, 5250, 5300, 10, 1, 0, 6300}, SlidingLogState{true, 5300, three, 6800}},
		// 5 units are free when the first entry has gone, 6 when the second has too, 9 with the last.
		{5400, 5, Decision{StatusDenied, 5400, 5400, 10, 1, 600, 6300}, SlidingLogState{true, 5300, three, 6800}},
		{5400, 6, Decision{StatusDenied, 5400, 5400, 10, 1, 900, 6300}, SlidingLogState{true, 5300, three, 6800}},
		{5250, 9, Decision{StatusDenied, 5250, 5300, 10, 1, 1050, 6300}, SlidingLogState{true, 5300, three, 6800}},
		{5199, 1, Decision{StatusClockUnsafe, 5199, 5199, 10, 0, 1, 5200}, SlidingLogState{true, 5300, three, 6800}},
		{5999, 5, Decision{StatusDenied, 5999, 5999, 10, 1, 1, 6300}, SlidingLogState{true, 5300, three, 6800}},
		{6000, 5, Decision{StatusAllowed, 6000, 6000, 10, 0, 0, 7000}, SlidingLogState{true, 6000, []SlidingLogEntry{{5300, 7, 3}, {5300, 9, 2}, {6000, 14, 5}}, 7500}},
		{6300, 5, Decision{StatusAllowed, 6300, 6300, 10, 0, 0, 7300}, SlidingLogState{true, 6300, []SlidingLogEntry{{6000, 14, 5}, {6300, 19, 5}}, 7800}},
		// Nothing is live any more, so the sums begin anew.
		{7300, 10, Decision{StatusAllowed, 7300, 7300, 10, 0, 0, 8300}, SlidingLogState{true, 7300, []SlidingLogEntry{{7300, 10, 10}}, 8800}},
	} {
		d, next := p.Decide(s, c.now, c.cost)
		if d != c.want || !reflect.DeepEqual(next, c.after) {
			t.Errorf("step %d:\n got %+v %+v\nwant %+v %+v", i, d, next, c.want, c.after)
		}
		s = next
	}
}

func TestSlidingLogValid(t *testing.T) {
	t.Parallel()
	p := SlidingLog{Limit: 10, WindowMillis: 1000}
	for name, c := range map[string]struct {
		edit func(*SlidingLogState)
		want bool
	}{
		"good":                  {func(*SlidingLogState) {}, true},
		"absent":                {func(s *SlidingLogState) { *s = SlidingLogState{} }, true},
		"no entries":            {func(s *SlidingLogState) { s.Entries = nil }, false},
		"last is another":       {func(s *SlidingLogState) { s.LastObserved++ }, false},
		"not trimmed":           {func(s *SlidingLogState) { s.Entries[0].At = 4300 }, false},
		"just trimmed":          {func(s *SlidingLogState) { s.Entries[0].At = 4301 }, true},
		"order":                 {func(s *SlidingLogState) { s.Entries[0].At = 5201 }, false},
		"cost 0":                {func(s *SlidingLogState) { s.Entries[1].Cost, s.Entries[1].Cumulative = 0, 24 }, false},
		"cost above":            {func(s *SlidingLogState) { s.Entries = []SlidingLogEntry{{5300, 11, 11}} }, false},
		"sum above":             {func(s *SlidingLogState) { s.Entries[2].Cost, s.Entries[2].Cumulative = 6, 31 }, false},
		"sum at the limit":      {func(s *SlidingLogState) { s.Entries[2].Cost, s.Entries[2].Cumulative = 5, 30 }, true},
		"gap":                   {func(s *SlidingLogState) { s.Entries[2].Cumulative = 28 }, false},
		"sum below cost":        {func(s *SlidingLogState) { s.Entries = []SlidingLogEntry{{5300, 3, 4}} }, false},
		"negative cost, hidden": {func(s *SlidingLogState) { s.Entries = []SlidingLogEntry{{5300, 3, -2}} }, false},
		"past":                  {func(s *SlidingLogState) { s.LastObserved, s.Entries = -1, []SlidingLogEntry{{-1, 1, 1}} }, false},
		"future": {func(s *SlidingLogState) {
			s.LastObserved, s.Entries = MaxNowMillis+1, []SlidingLogEntry{{MaxNowMillis + 1, 1, 1}}
		}, false},
		"greatest sum":       {func(s *SlidingLogState) { s.Entries = []SlidingLogEntry{{5300, MaxExact - 10, 1}} }, true},
		"sum near the range": {func(s *SlidingLogState) { s.Entries = []SlidingLogEntry{{5300, MaxExact - 9, 1}} }, false},
	} {
		s := SlidingLogState{Present: true, LastObserved: 5300, Entries: []SlidingLogEntry{{5000, 24, 4}, {5200, 25, 1}, {5300, 26, 1}}}
		c.edit(&s)
		if got := p.Valid(s); got != c.want {
			t.Errorf("%s: Valid(%+v) = %v", name, s, got)
		}
	}
}
