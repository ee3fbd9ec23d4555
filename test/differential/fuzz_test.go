package differential

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/edgelimit/edgelimit/test/lanes"
	"github.com/edgelimit/edgelimit/test/model"
	"github.com/edgelimit/edgelimit/test/vectors"
)

// fuzzState gives any bytes as the stored state of a program, any clock and any cost. The reply, and
// what stands afterwards, must be the model's; never an allow that the model does not give.
func fuzzState(f *testing.F, program string) {
	file, err := vectors.Load(program)
	if err != nil {
		f.Fatal(err)
	}
	for i, v := range file.Vectors {
		if i%7 == 0 && v.Before != nil {
			for _, state := range v.Before {
				f.Add(state, v.Now, v.Cost)
			}
		}
	}
	server := lanes.StartProcess(f, lanes.Options{})
	m := vectors.Model(program, file.Vectors[0].Policy)
	p := dial(f, server.Addr, 2)
	f.Fuzz(func(t *testing.T, state string, now, cost int64) {
		now = 1 + (now&(1<<63-1))%(1<<42)
		cost = 1 + (cost&(1<<63-1))%m.Limit()
		hash := model.Hash{m.Identity + ":sim": state}
		key := p.prefix + "fuzz"
		p.put(t, m, key, hash)
		want := m.Call(hash, now, cost, true)
		o := p.call(t, m, key, m.Args(cost, now))
		check(t, program, o, hash, o.pttl, want, time.Minute)
	})
}

func FuzzFixedWindowState(f *testing.F)    { fuzzState(f, "rate-fixed-window-v1") }
func FuzzSlidingCounterState(f *testing.F) { fuzzState(f, "rate-sliding-counter-v1") }
func FuzzTokenBucketState(f *testing.F)    { fuzzState(f, "rate-token-bucket-v1") }
func FuzzGCRAState(f *testing.F)           { fuzzState(f, "rate-gcra-v1") }

// FuzzSlidingLogState gives any bytes as the members of a sorted set, and any integers as their scores.
func FuzzSlidingLogState(f *testing.F) {
	const program = "rate-sliding-log-v1"
	file, err := vectors.Load(program)
	if err != nil {
		f.Fatal(err)
	}
	m := vectors.Model(program, file.Vectors[0].Policy)
	for i, v := range file.Vectors {
		if i%7 == 0 && v.Before != nil {
			var pairs []string
			for _, pair := range model.Members(v.Before) {
				pairs = append(pairs, pair[1]+"="+strings.TrimPrefix(pair[0], m.Identity+" "))
			}
			f.Add(strings.Join(pairs, "|"), v.Now, v.Cost)
		}
	}
	server := lanes.StartProcess(f, lanes.Options{})
	p := dial(f, server.Addr, 2)
	f.Fuzz(func(t *testing.T, members string, now, cost int64) {
		if !utf8.ValidString(members) {
			return
		}
		now = 1 + (now&(1<<63-1))%(1<<42)
		cost = 1 + (cost&(1<<63-1))%m.Limit()
		set := model.Hash{}
		for _, pair := range strings.Split(members, "|") {
			score, member, _ := strings.Cut(pair, "=")
			number, err := strconv.ParseInt(score, 10, 64)
			if err != nil || number > 1<<52 || number < -1<<52 {
				return
			}
			if number == -1 {
				member = m.Identity + ":sim " + member
			}
			set[member] = strconv.FormatInt(number, 10)
		}
		key := p.prefix + "fuzz"
		p.put(t, m, key, set)
		want := m.Call(set, now, cost, true)
		o := p.call(t, m, key, m.Args(cost, now))
		check(t, program, o, set, o.pttl, want, time.Minute)
	})
}
