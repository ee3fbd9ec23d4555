package algorithm

import "testing"

func TestFixedWindowCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		p           FixedWindow
		step, value string
	}{
		{"least", FixedWindow{Limit: 1, WindowMillis: 1}, "", ""},
		{"greatest limit", FixedWindow{Limit: MaxExact, WindowMillis: MaxHorizonMillis}, "", ""}, // casebook 17
		{"limit above", FixedWindow{Limit: MaxExact + 1, WindowMillis: 1}, "limit", "9007199254740992"},
		{"limit 0", FixedWindow{WindowMillis: 1}, "limit", "0"}, // casebook 11
		{"limit -1", FixedWindow{Limit: -1, WindowMillis: 1}, "limit", "-1"},
		{"window 0", FixedWindow{Limit: 1}, "window", "0"}, // casebook 11
		{"window -1", FixedWindow{Limit: 1, WindowMillis: -1}, "window", "-1"},
		{"window above", FixedWindow{Limit: 1, WindowMillis: MaxHorizonMillis + 1}, "window", "3155760000001"},
		{"clock", FixedWindow{Limit: 1, WindowMillis: 1, Clock: Clock{MaxRegressionMillis: 1}}, "cleanup grace", "0"},
	} {
		wantRange(t, c.name, c.p.Check(), c.step, c.value)
	}
}

func TestFixedWindowDecide(t *testing.T) {
	t.Parallel()
	p := FixedWindow{Limit: 10, WindowMillis: 1000, Clock: Clock{GraceMillis: 500, MaxRegressionMillis: 100}}
	var s FixedWindowState
	for i, c := range []struct {
		now, cost int64
		want      Decision
		after     FixedWindowState
	}{
		{5300, 7, Decision{StatusAllowed, 5300, 5300, 10, 3, 0, 6000}, FixedWindowState{true, 5300, 5, 7, 6500}},
		{5400, 4, Decision{StatusDenied, 5400, 5400, 10, 3, 600, 6000}, FixedWindowState{true, 5300, 5, 7, 6500}},
		{5250, 4, Decision{StatusDenied, 5250, 5300, 10, 3, 750, 6000}, FixedWindowState{true, 5300, 5, 7, 6500}},
		{5200, 3, Decision{StatusAllowed, 5200, 5300, 10, 0, 0, 6000}, FixedWindowState{true, 5300, 5, 10, 6500}},
		{5199, 1, Decision{StatusClockUnsafe, 5199, 5199, 10, 0, 1, 5200}, FixedWindowState{true, 5300, 5, 10, 6500}},
		{5999, 1, Decision{StatusDenied, 5999, 5999, 10, 0, 1, 6000}, FixedWindowState{true, 5300, 5, 10, 6500}},
		{6000, 10, Decision{StatusAllowed, 6000, 6000, 10, 0, 0, 7000}, FixedWindowState{true, 6000, 6, 10, 7500}},
		// A tolerated step back into the window before stays in the later one.
		{5950, 1, Decision{StatusDenied, 5950, 6000, 10, 0, 1050, 7000}, FixedWindowState{true, 6000, 6, 10, 7500}},
		{99_999, 1, Decision{StatusAllowed, 99_999, 99_999, 10, 9, 0, 100_000}, FixedWindowState{true, 99_999, 99, 1, 100_500}},
	} {
		d, next := p.Decide(s, c.now, c.cost)
		if d != c.want || next != c.after {
			t.Errorf("step %d:\n got %+v %+v\nwant %+v %+v", i, d, next, c.want, c.after)
		}
		s = next
	}
}

func TestFixedWindowValid(t *testing.T) {
	t.Parallel()
	p := FixedWindow{Limit: 10, WindowMillis: 1000}
	good := FixedWindowState{Present: true, LastObserved: 5300, Window: 5, Consumed: 7, ExpiresAt: 6500}
	for name, c := range map[string]struct {
		edit func(*FixedWindowState)
		want bool
	}{
		"good":          {func(*FixedWindowState) {}, true},
		"absent":        {func(s *FixedWindowState) { *s = FixedWindowState{} }, true},
		"least":         {func(s *FixedWindowState) { *s = FixedWindowState{Present: true, Consumed: 1} }, true},
		"latest":        {func(s *FixedWindowState) { s.LastObserved, s.Window = MaxNowMillis, MaxNowMillis/1000 }, true},
		"full":          {func(s *FixedWindowState) { s.Consumed = 10 }, true},
		"past":          {func(s *FixedWindowState) { s.LastObserved, s.Window = -1, 0 }, false},
		"future":        {func(s *FixedWindowState) { s.LastObserved, s.Window = MaxNowMillis+1, (MaxNowMillis+1)/1000 }, false},
		"other window":  {func(s *FixedWindowState) { s.Window = 6 }, false},
		"nothing spent": {func(s *FixedWindowState) { s.Consumed = 0 }, false},
		"overspent":     {func(s *FixedWindowState) { s.Consumed = 11 }, false},
	} {
		s := good
		c.edit(&s)
		if got := p.Valid(s); got != c.want {
			t.Errorf("%s: Valid(%+v) = %v", name, s, got)
		}
	}
}
