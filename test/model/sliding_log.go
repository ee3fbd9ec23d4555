package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// slidingLog is the sliding log over a sorted set. The program reads a few members and trusts the
// others, so over a damaged set it depends on which those are: the model looks at the same ones. Over
// a set that is whole it must agree with the arithmetic in every field, or it panics.
type slidingLog struct {
	p algorithm.SlidingLog
}

// SlidingLog is rate-sliding-log-v1 under p.
func SlidingLog(p algorithm.SlidingLog, identity string) *Model {
	return &Model{
		Program: store.RateSlidingLogV1, Identity: identity, limit: p.Limit,
		fixed: []int64{p.Limit, p.WindowMillis, p.Clock.GraceMillis, p.Clock.MaxRegressionMillis},
		log:   &slidingLog{p},
	}
}

// SortedSet reports whether the state is a sorted set and no hash.
func (m *Model) SortedSet() bool { return m.log != nil }

// member is a member of a sorted set.
type member struct {
	text, score string
	number      float64
}

// Members gives the members and scores of a sorted set in its order.
func Members(set Hash) [][2]string {
	var pairs [][2]string
	for _, m := range ordered(set) {
		pairs = append(pairs, [2]string{m.text, m.score})
	}
	return pairs
}

func ordered(set Hash) []member {
	var all []member
	for text, score := range set {
		number, err := strconv.ParseFloat(score, 64)
		if err != nil {
			panic(fmt.Sprintf("model: score %q", score))
		}
		all = append(all, member{text, score, number})
	}
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
	})
	return all
}

// number reads an integer as the programs do, of 1 to 16 digits.
func number(text string, low, high int64) (int64, bool) {
	if text == "" || len(text) > 16 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= low && n <= high
}

// metadata reads the first member: last observed time and last cumulative cost.
func (l *slidingLog) metadata(m member, identity string) (last, total int64, ok bool) {
	rest, ours := strings.CutPrefix(m.text, identity+" ")
	first, second, two := strings.Cut(rest, " ")
	if !ours || !two || m.score != "-1" {
		return 0, 0, false
	}
	last, fineLast := number(first, 0, algorithm.MaxNowMillis)
	total, fineTotal := number(second, 1, algorithm.MaxExact-l.p.Limit)
	return last, total, fineLast && fineTotal
}

// entry reads a member that stands for an admission.
func (l *slidingLog) entry(m member, last, total int64) (algorithm.SlidingLogEntry, bool) {
	sum, cost, two := strings.Cut(m.text, ":")
	if !two || len(sum) != 16 {
		return algorithm.SlidingLogEntry{}, false
	}
	at, fineAt := number(m.score, 0, last)
	cumulative, fineSum := number(sum, 1, total)
	units, fineCost := number(cost, 1, l.p.Limit)
	e := algorithm.SlidingLogEntry{At: at, Cumulative: cumulative, Cost: units}
	return e, fineAt && fineSum && fineCost && at+l.p.WindowMillis > last && units <= cumulative &&
		total-cumulative+units <= l.p.Limit
}

// call is the program over a sorted set.
func (l *slidingLog) call(set Hash, identity string, serverNow, cost int64, simulated bool) Result {
	members := ordered(set)
	d, total, valid := l.read(members, identity, serverNow, cost)
	if !valid {
		return rejected(set, serverNow)
	}
	result := Result{Reply: reply(d), After: set, Whole: true}
	if d.Status == algorithm.StatusAllowed {
		result.After = l.written(set, members, identity, d.EffectiveNowMillis, total, cost)
		result.TTL = d.EffectiveNowMillis + l.p.WindowMillis + l.p.Clock.GraceMillis - serverNow
		if simulated {
			result.TTL = max(result.TTL, minSimulatedTTL)
		}
	}
	l.confirm(set, members, identity, serverNow, cost, d, result)
	return result
}

// written is the set after an admission: metadata and whatever is dead go.
func (l *slidingLog) written(set Hash, members []member, identity string, now, total, cost int64) Hash {
	after := maps.Clone(set)
	if after == nil {
		after = Hash{}
	}
	for _, m := range members {
		if m.number <= float64(max(now-l.p.WindowMillis, -1)) {
			delete(after, m.text)
		}
	}
	after[fmt.Sprintf("%s %d %d", identity, now, total)] = "-1"
	after[fmt.Sprintf("%016d:%d", total, cost)] = strconv.FormatInt(now, 10)
	return after
}

// read decides from the members that the program looks at, and gives the cumulative cost after an
// admission. It is false where one of them is not this policy's.
func (l *slidingLog) read(members []member, identity string, serverNow, cost int64) (d algorithm.Decision, total int64, valid bool) {
	d = algorithm.Decision{
		Status: algorithm.StatusAllowed, ServerNowMillis: serverNow, EffectiveNowMillis: serverNow,
		Limit: l.p.Limit, Remaining: l.p.Limit - cost, ResetAtMillis: serverNow + l.p.WindowMillis,
	}
	if len(members) == 0 {
		return d, cost, true
	}
	last, total, valid := l.metadata(members[0], identity)
	if !valid || len(members) < 2 {
		return d, 0, false
	}
	first, valid := l.entry(members[1], last, total)
	if !valid {
		return d, 0, false
	}
	now := max(serverNow, last)
	if safe := last - l.p.Clock.MaxRegressionMillis; safe > serverNow {
		return algorithm.Decision{
			Status: algorithm.StatusClockUnsafe, ServerNowMillis: serverNow, EffectiveNowMillis: serverNow,
			Limit: l.p.Limit, RetryAfterMillis: safe - serverNow, ResetAtMillis: safe,
		}, 0, true
	}
	d.EffectiveNowMillis, d.ResetAtMillis = now, now+l.p.WindowMillis
	if last+l.p.WindowMillis <= now {
		return d, cost, true
	}
	if first.At+l.p.WindowMillis <= now {
		live := slices.IndexFunc(members, func(m member) bool { return m.number > float64(now-l.p.WindowMillis) })
		if live < 0 {
			return d, 0, false
		}
		if first, valid = l.entry(members[live], last, total); !valid {
			return d, 0, false
		}
	}
	used := total - first.Cumulative + first.Cost
	d.Remaining = l.p.Limit - used
	if cost <= d.Remaining {
		d.Remaining -= cost
		return d, total + cost, true
	}
	at := first.At
	if budget := l.p.Limit - cost; total-first.Cumulative > budget {
		if at, valid = l.lastToGo(members, last, total, budget); !valid || at+l.p.WindowMillis <= now {
			return d, 0, false
		}
	}
	d.Status, d.RetryAfterMillis, d.ResetAtMillis = algorithm.StatusDenied, at+l.p.WindowMillis-serverNow, last+l.p.WindowMillis
	return d, 0, true
}

// lastToGo is the time of the oldest entry after which at most budget was spent, by the program's own
// search from the end.
func (l *slidingLog) lastToGo(members []member, last, total, budget int64) (at int64, valid bool) {
	at = last
	for low, high := int64(1), budget+1; low < high; {
		middle := (low + high + 1) / 2
		place := int64(len(members)) - middle
		fits := false
		if place >= 0 && members[place].score != "-1" {
			e, ok := l.entry(members[place], last, total)
			if !ok {
				return 0, false
			}
			if fits = total-e.Cumulative <= budget; fits {
				low, at = middle, e.At
			}
		}
		if !fits {
			high = middle - 1
		}
	}
	return at, true
}

// confirm holds what was decided over a whole set to the arithmetic.
func (l *slidingLog) confirm(set Hash, members []member, identity string, serverNow, cost int64, d algorithm.Decision, result Result) {
	before, whole := l.parse(members, identity)
	if !whole {
		return
	}
	want, next := l.p.Decide(before, serverNow, cost)
	fine := d == want
	if fine && d.Status == algorithm.StatusAllowed {
		after, still := l.parse(ordered(result.After), identity)
		// A sum that has come near the end of its range is written, and is no state from then on.
		ended := next.Entries[len(next.Entries)-1].Cumulative > algorithm.MaxExact-l.p.Limit
		fine = still != ended && (ended || after.LastObserved == next.LastObserved && slices.Equal(after.Entries, next.Entries))
	}
	if !fine {
		panic(fmt.Sprintf("model: %v at %d, cost %d:\n got %+v %v\nwant %+v %+v", set, serverNow, cost, d, result.After, want, next))
	}
}

// parse reads a set that is whole and nobody else's.
func (l *slidingLog) parse(members []member, identity string) (s algorithm.SlidingLogState, whole bool) {
	if len(members) == 0 {
		return s, true
	}
	last, total, ok := l.metadata(members[0], identity)
	if !ok {
		return s, false
	}
	s.Present, s.LastObserved = true, last
	for _, m := range members[1:] {
		e, ok := l.entry(m, last, total)
		if !ok {
			return s, false
		}
		s.Entries = append(s.Entries, e)
	}
	return s, l.p.Valid(s) && s.Entries[len(s.Entries)-1].Cumulative == total
}
