package algorithm

import "slices"

// MaxSlidingLogLimit bounds the limit of a sliding log, and so the entries that it keeps for a
// subject: each admitted request is one.
const MaxSlidingLogLimit int64 = 10_000

// SlidingLog admits at most Limit in any interval of WindowMillis, exactly: it keeps every admitted
// request as long as the window that began with it is not over. The price is memory: up to Limit
// entries for a subject.
type SlidingLog struct {
	Limit        int64 // 1..MaxSlidingLogLimit
	WindowMillis int64 // 1..MaxHorizonMillis
	Clock        Clock
}

// SlidingLogEntry is one admitted request. It is live, and counts, while At+WindowMillis is after
// the clock.
type SlidingLogEntry struct {
	At         int64 // effective time, ms
	Cumulative int64 // the costs of the run up to and with this one; a run begins where nothing is live
	Cost       int64 // 1..Limit
}

// SlidingLogState is what a sliding log stores. The zero value means that nothing is stored.
//
// A cumulative cost within Limit of MaxExact makes a state invalid, since the next admission could
// leave the exact range: at 10,000 units a millisecond without a pause that takes 28 years. Such a
// state expires by itself.
type SlidingLogState struct {
	Present      bool
	LastObserved int64             // effective time of the last write, which is the last entry's
	Entries      []SlidingLogEntry // oldest first, all live at LastObserved
	ExpiresAt    int64             // ms; 0 where nothing is stored
}

// SlidingLogEntries are the entries of a log, oldest first, in the two pieces in which a ring holds
// them. Either piece may be empty.
type SlidingLogEntries struct {
	Older, Newer []SlidingLogEntry
}

// Len is the number of entries.
func (e SlidingLogEntries) Len() int { return len(e.Older) + len(e.Newer) }

// At is the entry at position i, the oldest being 0.
func (e SlidingLogEntries) At(i int) SlidingLogEntry {
	if i < len(e.Older) {
		return e.Older[i]
	}
	return e.Newer[i-len(e.Older)]
}

// SlidingLogStep is what an admission changes: the oldest Dead entries go and Entry comes last.
type SlidingLogStep struct {
	Dead      int
	Entry     SlidingLogEntry
	ExpiresAt int64
}

// Check returns a *RangeError where some step could leave its exact range.
func (p SlidingLog) Check() error {
	if err := within("limit", p.Limit, 1, MaxSlidingLogLimit); err != nil {
		return err
	}
	if err := within("window", p.WindowMillis, 1, MaxHorizonMillis); err != nil {
		return err
	}
	return p.Clock.Check()
}

// Valid reports whether a stored state is one that this algorithm writes.
func (p SlidingLog) Valid(s SlidingLogState) bool {
	if !s.Present {
		return true
	}
	n := len(s.Entries)
	if n == 0 || s.LastObserved > MaxNowMillis || s.Entries[n-1].At != s.LastObserved ||
		s.Entries[n-1].Cumulative > MaxExact-p.Limit {
		return false
	}
	first := s.Entries[0]
	before := first.Cumulative - first.Cost
	if first.At < 0 || first.At+p.WindowMillis <= s.LastObserved || before < 0 ||
		s.Entries[n-1].Cumulative-before > p.Limit {
		return false
	}
	at := first.At
	for _, e := range s.Entries {
		if e.At < at || e.Cost < 1 || e.Cost > p.Limit || e.Cumulative != before+e.Cost {
			return false
		}
		at, before = e.At, e.Cumulative
	}
	return true
}

// Decide evaluates cost (1..Limit) at serverNow. The state returned is to be stored where the
// decision is StatusAllowed and equals the given one otherwise. It shares no memory with the given
// one that is ever written.
func (p SlidingLog) Decide(s SlidingLogState, serverNow, cost int64) (Decision, SlidingLogState) {
	d, step := p.DecideOver(SlidingLogEntries{Older: s.Entries}, serverNow, cost)
	if d.Status != StatusAllowed {
		return d, s
	}
	return d, SlidingLogState{
		Present: true, LastObserved: step.Entry.At, ExpiresAt: step.ExpiresAt,
		Entries: append(slices.Clone(s.Entries[step.Dead:]), step.Entry),
	}
}

// DecideOver is Decide for a caller that keeps the entries itself: it says what an admission changes.
// No entries mean that nothing is stored.
func (p SlidingLog) DecideOver(entries SlidingLogEntries, serverNow, cost int64) (Decision, SlidingLogStep) {
	now, n := serverNow, entries.Len()
	var last SlidingLogEntry
	if n > 0 {
		last = entries.At(n - 1)
		effective, unsafe, ok := p.Clock.effective(serverNow, last.At, p.Limit)
		if !ok {
			return unsafe, SlidingLogStep{}
		}
		now = effective
	}
	dead := search(n, func(i int) bool { return entries.At(i).At+p.WindowMillis > now })
	var spent, cumulative int64
	if dead < n {
		first := entries.At(dead)
		spent, cumulative = last.Cumulative-(first.Cumulative-first.Cost), last.Cumulative
	}
	d := Decision{
		Status: StatusDenied, ServerNowMillis: serverNow, EffectiveNowMillis: now, Limit: p.Limit, Remaining: p.Limit - spent,
	}
	if cost > p.Limit-spent {
		// What came after the entry fits beside the cost, so the entry is the last one that has to go.
		i := search(n, func(i int) bool { return last.Cumulative-entries.At(i).Cumulative <= p.Limit-cost })
		d.RetryAfterMillis = entries.At(i).At + p.WindowMillis - serverNow
		d.ResetAtMillis = last.At + p.WindowMillis
		return d, SlidingLogStep{}
	}
	d.Status = StatusAllowed
	d.Remaining -= cost
	d.ResetAtMillis = now + p.WindowMillis
	return d, SlidingLogStep{
		Dead: dead, Entry: SlidingLogEntry{At: now, Cumulative: cumulative + cost, Cost: cost},
		ExpiresAt: d.ResetAtMillis + p.Clock.GraceMillis,
	}
}

// search is the least i in 0..n-1 for which holds is true, or n: once true, it stays true.
func search(n int, holds func(int) bool) int {
	low := 0
	for low < n {
		if middle := low + (n-low)/2; holds(middle) {
			n = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
