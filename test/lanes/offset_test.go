package lanes

import (
	"errors"
	"testing"
	"time"
)

func TestTheOffsetClockRunsAndSteps(t *testing.T) {
	t.Parallel()
	c := StartOffset(t)
	now := func() time.Time {
		t.Helper()
		shown, err := serverTime(c.Addr)
		if err != nil {
			t.Fatal(err)
		}
		return shown
	}
	first := now()
	if err := poll(wireTimeout, nil, func() error {
		if !now().After(first) {
			return errors.New("the same time twice")
		}
		return nil
	}); err != nil {
		t.Error("the clock stands still")
	}
	for _, offset := range []time.Duration{-time.Hour, -1500 * time.Millisecond, 24 * time.Hour, 0} {
		before := time.Now()
		c.SetOffset(offset)
		shown := now()
		if shown.Before(before.Add(offset-offsetSlack)) || shown.After(time.Now().Add(offset+offsetSlack)) {
			t.Errorf("at %v the server's clock shows %v", offset, shown)
		}
	}
}
