package lanes

import (
	"strconv"
	"testing"
	"time"
)

func TestTheClockStandsWhereItIsSet(t *testing.T) {
	t.Parallel()
	c := StartFaketime(t)
	check := func(want time.Time) {
		t.Helper()
		got, err := c.serverTime()
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) || !c.Now().Equal(want) {
			t.Errorf("TIME %v, Now %v, want %v", got, c.Now(), want)
		}
	}
	start := c.Now()
	check(start)
	check(start) // it stands still

	c.Advance(time.Millisecond)
	check(start.Add(time.Millisecond))
	c.Advance(-time.Second)
	check(start.Add(-999 * time.Millisecond))
	c.SetTime(start.Add(24 * time.Hour))
	check(start.Add(24 * time.Hour))
	c.SetTime(start.In(time.FixedZone("east", 3*3600)))
	check(start)
}

// A fraction that is read as a float and cut off would be a microsecond short
// at .000065 and some others.
func TestEveryMillisecondAndMicrosecondComesThrough(t *testing.T) {
	t.Parallel()
	c := StartFaketime(t)
	second := c.Now()
	for i := range 1000 {
		c.SetTime(second.Add(time.Duration(i) * time.Millisecond))
		c.SetTime(second.Add(time.Duration(i) * time.Microsecond))
	}
}

func TestExpiryFollowsTheClock(t *testing.T) {
	t.Parallel()
	c := StartFaketime(t)
	pttl := func() any { t.Helper(); return mustAsk(t, c.Addr, "PTTL", "k") }

	mustAsk(t, c.Addr, "SET", "k", "v", "PX", "1000")
	if got := pttl(); got != int64(1000) {
		t.Fatalf("PTTL %v", got)
	}
	c.Advance(999 * time.Millisecond)
	if got := pttl(); got != int64(1) {
		t.Errorf("PTTL a millisecond before expiry: %v", got)
	}
	c.Advance(-500 * time.Millisecond)
	if got := pttl(); got != int64(501) {
		t.Errorf("PTTL after a step back: %v", got)
	}
	// A key is there through its last millisecond: expired means now > expiry.
	c.Advance(501 * time.Millisecond)
	if got := pttl(); got != int64(0) {
		t.Errorf("PTTL at expiry: %v", got)
	}
	c.Advance(time.Millisecond)
	if got := mustAsk(t, c.Addr, "EXISTS", "k"); got != int64(0) {
		t.Errorf("the key is there a millisecond after its expiry")
	}
}

func TestTimeInAProgramFollowsTheClock(t *testing.T) {
	t.Parallel()
	c := StartFaketime(t)
	c.Advance(1234567 * time.Microsecond)
	got := mustAsk(t, c.Addr, "EVAL", "#!lua\nlocal t = redis.call('TIME') return t[1] .. '.' .. t[2]", "0")
	want := strconv.FormatInt(c.Now().Unix(), 10) + ".234567"
	if got != want {
		t.Errorf("TIME in a program gave %v, want %v", got, want)
	}
}

func TestTheClockSurvivesARestart(t *testing.T) {
	t.Parallel()
	c := StartFaketime(t, "--maxmemory", "9mb")
	c.Advance(time.Hour)
	c.Kill()
	c.Restart()
	if got, err := c.serverTime(); err != nil || !got.Equal(c.Now()) {
		t.Errorf("TIME %v (%v), want %v", got, err, c.Now())
	}
}
