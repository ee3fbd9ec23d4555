package algorithm

import "testing"

func TestStatusWords(t *testing.T) {
	t.Parallel()
	words := map[Status]string{
		StatusAllowed: "ALLOWED", StatusDenied: "DENIED", StatusClockUnsafe: "CLOCK_UNSAFE",
		StatusStateIncompatible: "STATE_INCOMPATIBLE", StatusInvalid: "INVALID",
	}
	for status, word := range words {
		if status.String() != word {
			t.Errorf("status %d is %q, want %q", status, status, word)
		}
		if got, ok := ParseStatus(word); got != status || !ok {
			t.Errorf("ParseStatus(%q) = %v, %v", word, got, ok)
		}
	}
	for _, status := range []Status{StatusUnspecified, StatusInvalid + 1, 255} {
		if status.String() != "UNSPECIFIED" {
			t.Errorf("status %d is %q", status, status)
		}
	}
	for _, word := range []string{"", "UNSPECIFIED", "allowed", "ALLOWED ", " ALLOWED", "ALLOWED\x00", "ALLOW", "OK", "1"} {
		if got, ok := ParseStatus(word); got != StatusUnspecified || ok {
			t.Errorf("ParseStatus(%q) = %v, %v", word, got, ok)
		}
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	want := Decision{Status: StatusInvalid, ServerNowMillis: 7, EffectiveNowMillis: 7}
	if got := Rejected(StatusInvalid, 7); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestClockCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		clock       Clock
		step, value string
	}{
		{Clock{}, "", ""},
		{Clock{GraceMillis: MaxHorizonMillis, MaxRegressionMillis: MaxRegressionMillis}, "", ""},
		{Clock{GraceMillis: 5, MaxRegressionMillis: 5}, "", ""},
		{Clock{GraceMillis: 4, MaxRegressionMillis: 5}, "cleanup grace", "4"},
		{Clock{GraceMillis: -1}, "cleanup grace", "-1"},
		{Clock{GraceMillis: MaxHorizonMillis + 1}, "cleanup grace", "3155760000001"},
		{Clock{GraceMillis: MaxHorizonMillis, MaxRegressionMillis: MaxRegressionMillis + 1}, "max clock regression", "86400001"},
		{Clock{MaxRegressionMillis: -1}, "max clock regression", "-1"},
	} {
		wantRange(t, c.step+c.value, c.clock.Check(), c.step, c.value)
	}
}

func TestEffectiveTime(t *testing.T) {
	t.Parallel()
	clock := Clock{GraceMillis: 100, MaxRegressionMillis: 20}
	for now, want := range map[int64]int64{1000: 1000, 1001: 1001, 999: 1000, 980: 1000} {
		got, _, ok := clock.effective(now, 1000, 5)
		if got != want || !ok {
			t.Errorf("at %d: %d, %v, want %d", now, got, ok, want)
		}
	}
	for _, now := range []int64{979, 500, 0} {
		_, got, ok := clock.effective(now, 1000, 5)
		want := Decision{
			Status: StatusClockUnsafe, ServerNowMillis: now, EffectiveNowMillis: now, Limit: 5,
			RetryAfterMillis: 980 - now, ResetAtMillis: 980,
		}
		if ok || got != want {
			t.Errorf("at %d: %+v, %v, want %+v", now, got, ok, want)
		}
	}
	// At the moment that the reply names, and not before, the clock is tolerable again.
	if _, _, ok := clock.effective(980, 1000, 5); !ok {
		t.Error("unsafe at the moment that was named")
	}
}
