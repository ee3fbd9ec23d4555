package parity

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// TestEveryProgramHasAGenerator: a later program is compared too, or this fails.
func TestEveryProgramHasAGenerator(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, p := range store.Programs() {
		generate, ok := generators[p.ID()]
		if !ok {
			t.Errorf("%s has no generator", p.ID())
			continue
		}
		found := false
		for range 1000 {
			program, _ := generate(r).step(r, firstMoment, "0", nothing)
			found = found || program == p
		}
		if !found {
			t.Errorf("the generator of %s never gives it", p.ID())
		}
	}
	if len(generators) != len(store.Programs()) {
		t.Errorf("%d generators of %d programs", len(generators), len(store.Programs()))
	}
}

// tally counts what a walk has met, so that one that meets nothing fails.
type tally map[string]int

func (n tally) require(t *testing.T, steps int) {
	t.Helper()
	for _, p := range store.Programs() {
		if n[p.ID()] == 0 {
			t.Errorf("%s was never run", p.ID())
		}
	}
	if steps < 10_000 {
		return // Too few to meet all that is rare.
	}
	for _, word := range []string{
		"ALLOWED", "DENIED", "CLOCK_UNSAFE", "STATE_INCOMPATIBLE", "INVALID", "CALL", "PROBE", "REJECTED", "COUNTED", "LATE", "READ",
		"APPLIED", "CHANGED", "ABSENT", "NOT_INTEGER", wrongType, failed, "expired", "caller's clock",
	} {
		if n[word] == 0 {
			t.Errorf("no run met %s: %v", word, n)
		}
	}
}

func (n tally) count(o seen, program *store.Program) {
	n[program.ID()]++
	var word string
	if _, err := fmt.Sscanf(o.reply, "[s:%q", &word); err != nil {
		if _, err := fmt.Sscanf(o.reply, "s:%q", &word); err != nil {
			word = o.reply
		}
		if strings.HasPrefix(word, "i:") {
			word = "an integer"
		}
	}
	n[word]++
}

// order gives the programs in turns, each walk beginning elsewhere.
func order(r *rand.Rand) []*store.Program {
	all := slices.Clone(store.Programs())
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// beyondEmbedded reports what the embedded Redis cannot hold as Redis does: a lifetime beyond farOff, or
// a score with eight zeros at its end, which it shows with an exponent.
func beyondEmbedded(o seen) bool {
	if o.state.kind == "zset" {
		for _, score := range o.state.pairs {
			if n := number(score); n != 0 && n%100_000_000 == 0 {
				return true
			}
		}
	}
	return o.pttl > farOff
}

// lenient reports a lifetime, which store-incrby leaves to SET, that the embedded Redis judges in
// another way: it takes other forms of an integer, and does not see that one is beyond the end of time.
func lenient(program *store.Program, c call) bool {
	if program != store.StoreIncrByV1 || len(c.args) < 2 {
		return false
	}
	n, err := strconv.ParseInt(c.args[1], 10, 64)
	return err == nil && (decimal(n) != c.args[1] || n > farOff)
}

// decimals are texts that a program over one hash may calculate with as they are.
var decimals = regexp.MustCompile(`^0[0-9]{1,15}$`)

// octal reports an argument or a number of a state in a hash that begins with a zero and goes on: where a
// program calculates with such a text, the embedded Redis takes it to the base of eight.
func octal(program *store.Program, c call, before state) bool {
	if !strings.HasPrefix(program.Name, "rate-") || program == store.RateSlidingLogV1 {
		return false // These read each integer with tonumber.
	}
	texts := slices.Clone(c.args)
	if before.kind == "hash" {
		for _, value := range before.pairs {
			texts = append(texts, strings.Split(value, " ")...)
		}
	}
	return slices.ContainsFunc(texts, decimals.MatchString)
}

// farOff is a lifetime in ms that the embedded Redis does not hold: it counts in nanoseconds, and one
// that a clock set back makes longer than 292 years overflows.
const farOff = 140 * year

// TestPrograms walks random policies through random arguments, states and clocks on a real Redis, an
// embedded one and in memory, all of whose clocks are set. Everything is equal, lifetimes too.
func TestPrograms(t *testing.T) {
	r := source(t)
	server, small, m := clocked(t)
	met, beyond := tally{}, 0
	programs := order(r)
	began := time.Now()
	for step, episode := 0, 0; step < *steps; episode++ {
		sub := generators[programs[episode%len(programs)].ID()](r)
		key := fmt.Sprint("k", episode)
		now := firstMoment + r.Int64N(lastMoment-firstMoment)
		last := seen{state: nothing, pttl: -2}
		simulated := sub.clock && r.IntN(3) == 0
		sides := []side{m, server, small}
		if simulated {
			met["caller's clock"]++
		}
		caller := 1 + r.Int64N(1<<42)
		sound := nothing
		for range 30 {
			step++
			if simulated {
				caller = within(move(r, caller, sub.horizon, sub.regression, -1), 1, 1<<42)
			}
			if !simulated || r.IntN(3) == 0 {
				now = within(move(r, now, sub.horizon, sub.regression, last.pttl), firstMoment, lastMoment)
			}
			for _, s := range sides {
				s.setClock(now)
			}
			last.state, last.pttl = look(t, m, key, last, met)
			if spoilt := strings.Contains(last.reply, "STATE_INCOMPATIBLE") && r.IntN(2) == 0; spoilt || r.IntN(10) == 0 {
				last.state, last.pttl = replant(r, sub, last), pick(r, last.pttl, -1, scale(r, year))
				if spoilt {
					last.state = sound
				}
				for _, s := range sides {
					s.put(t, key, last.state, last.pttl)
				}
			}
			c, program := next(r, sub, key, now, caller, simulated, last.state)
			before := last
			last = m.run(t, program, c)
			met.count(last, program)
			if !strings.Contains(last.reply, "STATE_INCOMPATIBLE") {
				sound = last.state
			}
			if len(sides) == 3 && (beyondEmbedded(before) || beyondEmbedded(last) || lenient(program, c) || octal(program, c, before.state)) {
				// From here on without the embedded Redis, until the next key.
				sides = sides[:2]
				beyond++
			}
			for _, s := range sides[1:] {
				if o := s.run(t, program, c); o.reply != last.reply || !o.state.equal(last.state) || o.pttl != last.pttl || o.now != now {
					t.Fatalf("step %d, at %d: %v on %v, %d ms to live:\n%s\n  replied %s\n  left %v, %d ms to live, at %d\nmemory\n  replied %s\n  left %v, %d ms to live",
						step, now, c, before.state, before.pttl, s.name(), o.reply, o.state, o.pttl, o.now, last.reply, last.state, last.pttl)
				}
			}
		}
		for _, s := range sides {
			s.put(t, key, nothing, -1)
		}
	}
	t.Logf("%d steps in %v: %v; %d keys were beyond the embedded Redis", *steps, time.Since(began).Round(time.Millisecond), met, beyond)
	if beyond > *steps/100 {
		t.Errorf("%d keys were beyond the embedded Redis, in %d steps", beyond, *steps)
	}
	met.require(t, *steps)
}

// look reads what the passing of time has left of a key in memory.
func look(t *testing.T, m *memorySide, key string, before seen, met tally) (state, int64) {
	t.Helper()
	s, pttl := m.look(t, key)
	if before.state.kind != "none" && s.kind == "none" {
		met["expired"]++
	}
	return s, pttl
}

// replant gives another state for a key.
func replant(r *rand.Rand, sub subject, last seen) state {
	if sub.plant != nil && r.IntN(2) == 0 {
		return sub.plant(r)
	}
	return edited(r, last.state)
}

// next gives a call, one in ten of which is spoiled.
func next(r *rand.Rand, sub subject, key string, now, caller int64, simulated bool, current state) (call, *store.Program) {
	clock, decides := "0", now
	if simulated != (r.IntN(40) == 0) && sub.clock {
		clock, decides = decimal(caller), caller
	}
	program, args := sub.step(r, decides, clock, current)
	c := call{program: programID(program.ID()), keys: []string{key}, args: args}
	if r.IntN(10) == 0 {
		c = spoiled(r, c)
	}
	return c, program
}

// slack is how much of a lifetime may pass between two sides on a machine under load, in ms.
const slack = 20_000

// TestProgramsOnEachLane does the same on the real Redis of each lane, whose clock is its own: the
// reply, or TIME just before it, says at which millisecond memory must run.
func TestProgramsOnEachLane(t *testing.T) {
	for _, lane := range lanesOf(t) {
		t.Run(lane.label, func(t *testing.T) {
			r := source(t)
			m := newMemorySide(t)
			// What is planted before the first call must not age by the way to the server's present.
			m.setClock(time.Now().UnixMilli())
			met := tally{}
			programs := order(r)
			for step, episode := 0, 0; step < *steps/2; episode++ {
				sub := generators[programs[episode%len(programs)].ID()](r)
				key := fmt.Sprint("k", episode)
				last := seen{state: nothing, pttl: -2, now: time.Now().UnixMilli()}
				simulated := sub.clock && r.IntN(2) == 0
				if simulated {
					met["caller's clock"]++
				}
				caller := 1 + r.Int64N(1<<42)
				for range 30 {
					step++
					if simulated {
						caller = within(move(r, caller, sub.horizon, sub.regression, -1), 1, 1<<42)
					}
					if last.pttl >= 0 && last.pttl < 100 {
						// So near its end the two could see it on either side of it.
						last = seen{state: nothing, pttl: -2, now: last.now}
						lane.put(t, key, nothing, -1)
						m.put(t, key, nothing, -1)
						met["expired"]++
					}
					if r.IntN(10) == 0 {
						last.state, last.pttl = replant(r, sub, last), pick(r, -1, slack+scale(r, year))
						lane.put(t, key, last.state, last.pttl)
						m.put(t, key, last.state, last.pttl)
					}
					c, program := next(r, sub, key, last.now, caller, simulated, last.state)
					before := last
					o := lane.run(t, program, c)
					m.setClock(serverNow(program, o))
					last = m.run(t, program, c)
					met.count(last, program)
					gone := (o.pttl == -2) != (last.pttl == -2) && max(o.pttl, last.pttl) < 100
					alike := o.pttl == last.pttl || o.pttl >= 0 && last.pttl >= 0 && max(o.pttl-last.pttl, last.pttl-o.pttl) < slack
					if o.reply != last.reply || !gone && (!o.state.equal(last.state) || !alike) {
						t.Fatalf("step %d: %v on %v, %d ms to live:\n%s\n  replied %s\n  left %v, %d ms to live\nmemory\n  replied %s\n  left %v, %d ms to live",
							step, c, before.state, before.pttl, lane.label, o.reply, o.state, o.pttl, last.reply, last.state, last.pttl)
					}
					last.pttl = min(o.pttl, last.pttl)
				}
				lane.put(t, key, nothing, -1)
				m.put(t, key, nothing, -1)
			}
			met.require(t, *steps/2)
		})
	}
}

// serverNow is the clock that a run was at: what it says of it, where it reads the server's.
func serverNow(program *store.Program, o seen) int64 {
	i := slices.IndexFunc(program.Reply, func(f store.Field) bool { return f.Name == "server_now" })
	if i < 0 {
		return o.now
	}
	var now int64
	if _, err := fmt.Sscanf(field(o.reply, i), "i:%d", &now); err != nil || max(now-o.now, o.now-now) > slack {
		return o.now // A caller's clock.
	}
	return now
}
