package memory

import (
	"sync"
	"testing"
	"time"
)

// A base stays where it is while the clocks go alike, as far as a comparison can tell, and moves to the
// fresh reading where they do not.
func TestBaseFollowsSteps(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	base := baseReading{at: start, from: 10 * time.Second, until: 11 * time.Second, anchored: start.Add(-10 * time.Second).UnixNano()}
	const passed = time.Second // since the base, when the clocks are compared
	for name, c := range map[string]struct {
		wall  time.Duration // what the wall clock says has passed
		width time.Duration // how long the comparison took
		moves bool
	}{
		"alike":                                  {passed, 0, false},
		"apart by what is tolerated":             {passed + tolerated, 0, false},
		"behind by what is tolerated":            {passed - tolerated, 0, false},
		"a step ahead":                           {passed + tolerated + 1, 0, true},
		"a step back":                            {passed - tolerated - 1, 0, true},
		"a large step ahead":                     {passed + 1000*time.Hour, 0, true},
		"a large step back":                      {passed - 1000*time.Hour, 0, true},
		"what a slow comparison may err":         {passed + 5*time.Millisecond, 5 * time.Millisecond, false},
		"beyond what a slow comparison may err":  {passed + 6*time.Millisecond + 1, 5 * time.Millisecond, true},
		"a step back during a slow comparison":   {passed - tolerated - 1, 5 * time.Millisecond, true},
		"alike at the end of a slow comparison":  {passed + 4*time.Millisecond, 4 * time.Millisecond, false},
		"alike at the start of a slow comparion": {passed, 4 * time.Millisecond, false},
	} {
		before := base.from + passed
		after := before + c.width
		fresh := start.Add(c.wall)
		next := base.next(before, fresh, before, after)
		want := base
		want.until = after + comparedEvery
		if c.moves {
			want.at, want.from, want.apart = fresh, before, true
		}
		if next != want {
			t.Errorf("%s: %+v, want %+v", name, next, want)
		}
	}
}

// What has once gone apart stays so: an anchored number would be that of the old wall clock.
func TestBaseStaysApart(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	base := baseReading{at: start, apart: true}
	if next := base.next(time.Second, start.Add(time.Second), time.Second, time.Second); !next.apart {
		t.Errorf("%+v", next)
	}
}

// both are the two ways in which the wall clock is read: as long as the clocks go alike, and after.
func both() map[string]*clock {
	alike, apart := newClock(nil), newClock(nil)
	b := *apart.wall.base.Load()
	b.apart = true
	apart.wall.base.Store(&b)
	return map[string]*clock{"alike": &alike, "apart": &apart}
}

// Readings lie between those of time.Now before and after, to what is tolerated, over several comparisons.
func TestWallClockIsTimeNow(t *testing.T) {
	t.Parallel()
	for name, c := range both() {
		comparisons := map[*baseReading]bool{}
		for begin := time.Now(); len(comparisons) < 4 && time.Since(begin) < 10*time.Second; {
			before := time.Now()
			now, late := c.read(before.Add(time.Hour))
			after := time.Now()
			if late {
				t.Fatalf("%s: late an hour early", name)
			}
			if now < before.Add(-2*tolerated).UnixMilli() || now > after.Add(2*tolerated).UnixMilli() {
				t.Fatalf("%s: %d, between %d and %d", name, now, before.UnixMilli(), after.UnixMilli())
			}
			if at := c.wall.now(); at.Sub(before) < 0 || at.Sub(before) > time.Since(before) {
				t.Fatalf("%s: the monotonic reading is %v after the one before", name, at.Sub(before))
			}
			comparisons[c.wall.base.Load()] = true
		}
		if len(comparisons) < 4 {
			t.Errorf("%s: the clocks were compared %d times", name, len(comparisons))
		}
	}
}

// A deadline is over at its moment, whether it carries a monotonic reading or was read from somewhere.
func TestWallClockDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range both() {
		now := time.Now()
		for _, d := range []struct {
			deadline time.Time
			late     bool
		}{
			{now, true},
			{now.Round(0).Add(-2 * tolerated), true},
			{now.Add(-time.Hour), true},
			{now.Round(0).Add(-time.Hour), true},
			{now.Add(time.Hour), false},
			{now.Round(0).Add(time.Hour), false},
			{time.Time{}, true},
			{time.Unix(0, 0), true},
			{farAway, false},
			{time.Unix(1<<40, 0), false},
		} {
			if _, late := c.read(d.deadline); late != d.late {
				t.Errorf("%s: %v: late is %t", name, d.deadline, late)
			}
		}
	}
}

// Where clocks are compared by many at once, no reading goes back for anybody.
func TestWallClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	for name, c := range both() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				last := int64(0)
				for begin := time.Now(); time.Since(begin) < 250*time.Millisecond; {
					now, _ := c.read(farAway)
					if now < last {
						t.Errorf("%s: %d after %d", name, now, last)
						return
					}
					last = now
				}
			})
		}
		wg.Wait()
	}
}

func TestCountable(t *testing.T) {
	t.Parallel()
	for year, want := range map[int]bool{1: false, 1969: false, 1970: false, 1971: true, 2026: true, 2199: true, 2200: false, 9999: false} {
		if got := countable(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("%d: %t", year, got)
		}
	}
}
