package differential

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/test/lanes"
	"github.com/edgelimit/edgelimit/test/model"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the random sequences; 0 takes one from the clock")
	steps = flag.Int("steps", 6000, "steps of each random test")
)

// source gives the random numbers of a test and says on failure how to have them again.
func source(t *testing.T) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: go test ./test/differential -run %s -seed %d", t.Name(), s)
		}
	})
	return rand.New(rand.NewPCG(s, 1))
}

// TestRandomUnderCallerClock walks random policies through random costs, jumps of the clock both
// ways and edits of the state, on each lane.
func TestRandomUnderCallerClock(t *testing.T) {
	for lane, server := range servers(t) {
		r := source(t)
		p := dial(t, server.Addr, 2)
		for step := 0; step < *steps; {
			m, horizon, regression := randomModel(r)
			key := p.newKey()
			var state model.Hash
			now := 1 + r.Int64N(algorithm.MaxNowMillis)
			for range 40 {
				step++
				switch r.IntN(8) {
				case 0:
					now -= r.Int64N(regression + 2)
				case 1:
					now -= scale(r, 10*regression+10)
				case 2:
					now += scale(r, 3*horizon)
				case 3:
					now += horizon - 1 + r.Int64N(3)
				default:
					now += scale(r, max(horizon/8, 1))
				}
				now = min(max(now, 1), algorithm.MaxNowMillis)
				if state != nil && r.IntN(12) == 0 {
					state = edit(r, m, state)
					p.put(t, m, key, state)
				}
				cost := randomCost(r, m.Limit())
				want := m.Call(state, now, cost, true)
				o := p.call(t, m, key, m.Args(cost, now))
				ttl := o.pttl
				what := fmt.Sprintf("%s: %s %v at %v on %v", lane, m.Program.ID(), m.Args(cost, now), now, state)
				if !check(t, what, o, state, ttl, want, time.Minute) {
					return
				}
				state = o.hash
				if want.Reply[0] == "STATE_INCOMPATIBLE" {
					p.put(t, m, key, nil)
					state = nil
				}
			}
		}
	}
}

// TestRandomUnderServerClock does the same by the server's own clock: the reply says at which
// millisecond the arithmetic must be run.
func TestRandomUnderServerClock(t *testing.T) {
	for lane, server := range servers(t) {
		r := source(t)
		p := dial(t, server.Addr, 2)
		for step := 0; step < *steps/4; {
			m, _, regression := randomModel(r)
			key := p.newKey()
			var state model.Hash
			for range 25 {
				step++
				if r.IntN(6) == 0 {
					time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
				}
				if state != nil && r.IntN(12) == 0 {
					if r.IntN(2) == 0 {
						state = edit(r, m, state)
					} else {
						state = shift(r, m, state, regression)
					}
					p.put(t, m, key, state)
				}
				cost := randomCost(r, m.Limit())
				o := p.call(t, m, key, m.Args(cost, 0))
				now, ok := o.reply[1].(int64)
				if !ok {
					t.Fatalf("%s replied %v", m.Program.ID(), o.reply)
				}
				want := m.Call(state, now, cost, false)
				what := fmt.Sprintf("%s: %s %v at %v on %v", lane, m.Program.ID(), m.Args(cost, 0), now, state)
				if !check(t, what, o, state, o.pttl, want, time.Minute) {
					return
				}
				state = o.hash
				if want.Reply[0] == "STATE_INCOMPATIBLE" || o.pttl <= 0 {
					p.put(t, m, key, nil)
					state = nil
				}
				if want.Reply[0] == "ALLOWED" && want.TTL > 0 && o.pttl < time.Millisecond {
					state = nil // Expired in the moment between the call and its reading.
				}
			}
		}
	}
}

// shift moves the last observed time around the server's present, so that it lies ahead.
func shift(r *rand.Rand, m *model.Model, state model.Hash, regression int64) model.Hash {
	to := time.Now().UnixMilli() + r.Int64N(2*regression+100)
	moved := maps.Clone(state)
	if !m.SortedSet() {
		moved["l"] = fmt.Sprint(to)
		return moved
	}
	// The last entry and the metadata move together.
	members := model.Members(state)
	newest := members[len(members)-1]
	moved[newest[0]] = fmt.Sprint(to)
	for _, pair := range members {
		if parts := strings.Split(pair[0], " "); len(parts) == 3 && pair[1] == "-1" {
			delete(moved, pair[0])
			moved[parts[0]+" "+fmt.Sprint(to)+" "+parts[2]] = "-1"
		}
	}
	return moved
}

// TestRandomClockSteps moves a real server's own clock in random steps both ways; lifetimes are exact.
func TestRandomClockSteps(t *testing.T) {
	server := lanes.StartFaketime(t)
	r := source(t)
	p := dial(t, server.Addr, 2)
	for step := 0; step < *steps/20; {
		m, horizon, regression := randomModel(r)
		key := p.newKey()
		var state model.Hash
		expires := int64(-1)
		now := int64(1_700_000_000_000) + r.Int64N(1_000_000_000)
		for range 15 {
			step++
			switch r.IntN(4) {
			case 0:
				now -= r.Int64N(2*regression + 2)
			default:
				now += scale(r, max(horizon/4, 1))
			}
			now = min(now, algorithm.MaxNowMillis)
			server.SetTime(time.UnixMilli(now))
			if state != nil && expires >= 0 && now >= expires {
				state = nil // Redis has let it expire.
			}
			cost := randomCost(r, m.Limit())
			want := m.Call(state, now, cost, false)
			o := p.call(t, m, key, m.Args(cost, 0))
			before := noTTL
			if state != nil && expires >= 0 {
				before = time.Duration(expires-now) * time.Millisecond
			}
			what := fmt.Sprintf("%s %v at %v on %v", m.Program.ID(), m.Args(cost, 0), now, state)
			if !check(t, what, o, state, before, want, 0) {
				return
			}
			state = o.hash
			if want.TTL > 0 {
				expires = now + want.TTL
			}
		}
	}
}
