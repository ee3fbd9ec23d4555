package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// entry is one evaluation and what its caller was told.
type entry struct {
	cost    int64
	outcome ratelimit.Outcome
}

// ledger holds what callers were told, by state key.
type ledger struct {
	mu       sync.Mutex
	entries  map[string][]entry
	requests map[string]request // of each key: algorithm and limit
}

// note adds what a caller was told.
func (l *ledger) note(key string, r request, o ratelimit.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries, l.requests = map[string][]entry{}, map[string]request{}
	}
	l.entries[key] = append(l.entries[key], entry{r.cost, o})
	l.requests[key] = request{algorithm: r.algorithm, limit: r.limit, subject: r.subject}
}

// sums are costs by what callers were told, and numbers of evaluations.
type sums struct {
	allowed, denied, unavailable, indeterminate, incompatible int64 // costs
	evaluations, sent                                         int   // sent counts those that may have reached the server
}

func (s *sums) add(o sums) {
	s.allowed += o.allowed
	s.denied += o.denied
	s.unavailable += o.unavailable
	s.indeterminate += o.indeterminate
	s.incompatible += o.incompatible
	s.evaluations += o.evaluations
	s.sent += o.sent
}

func sum(entries []entry) sums {
	var s sums
	for _, e := range entries {
		s.evaluations++
		s.sent++
		switch o := e.outcome.(type) {
		case ratelimit.Evaluated:
			if o.Decision.Allowed {
				s.allowed += e.cost
			} else {
				s.denied += e.cost
			}
		case ratelimit.Unavailable:
			s.unavailable += e.cost
			if !refusals[o.Category] {
				s.sent--
			}
		case ratelimit.Indeterminate:
			s.indeterminate += e.cost
		case ratelimit.Incompatible:
			s.incompatible += e.cost
		}
	}
	return s
}

// refusals are the categories in which the server may have been asked. In the others no command left
// this process.
var refusals = map[ratelimit.UnavailableCategory]bool{
	ratelimit.UnavailableAuthentication: true, ratelimit.UnavailablePermission: true, ratelimit.UnavailableLoading: true,
	ratelimit.UnavailableReadOnly: true, ratelimit.UnavailableMasterDown: true, ratelimit.UnavailableCluster: true,
	ratelimit.UnavailableOutOfMemory: true, ratelimit.UnavailablePersistence: true, ratelimit.UnavailableReplicas: true,
	ratelimit.UnavailableBusy: true, ratelimit.UnavailableClockUnsafe: true,
}

// result is what a comparison found, for people.
type result struct {
	sums
	spent int64
	keys  int
}

// compare holds the spend in the append-only file to what callers were told, for each key:
//
//	allowed <= spent <= allowed + indeterminate + incompatible
//
// and, since every admission says what remained, write for write: each admission is one write of its
// cost that left what the caller was told, and what is written beside those are costs of which callers
// were told that it is not known. So the denied and the unavailable spent nothing.
func (l *ledger) compare(accounts map[string]*account) (result, []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var total result
	var faults []error
	for key, entries := range l.entries {
		r := l.requests[key]
		s := sum(entries)
		a := accounts[key]
		if a == nil {
			a = &account{}
		}
		total.add(s)
		total.spent += a.spent()
		total.keys++
		refuse := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("%s, limit %d, subject %s: %s (allowed %d, indeterminate %d, incompatible %d, spent %d)",
				r.algorithm, r.limit, r.subject, fmt.Sprintf(format, args...), s.allowed, s.indeterminate, s.incompatible, a.spent()))
		}
		if a.spent() < s.allowed {
			refuse("less was spent than allowed")
		}
		if a.spent() > s.allowed+s.indeterminate+s.incompatible {
			refuse("more was spent than anybody was told")
		}
		if a.spent() > r.limit {
			refuse("more was spent than the limit")
		}
		for _, fault := range match(r.limit, entries, a.writes) {
			refuse("%s", fault)
		}
	}
	return total, faults
}

// match pairs each admission with its write, and the writes that are left with evaluations of the same
// cost that nobody knows of.
func match(limit int64, entries []entry, writes []write) []string {
	var faults []string
	bySpent := map[int64]write{}
	for _, w := range writes {
		bySpent[w.spent] = w
	}
	unknown := map[int64]int{} // evaluations by cost
	for _, e := range entries {
		switch o := e.outcome.(type) {
		case ratelimit.Evaluated:
			if !o.Decision.Allowed {
				continue
			}
			spent := limit - o.Decision.Remaining
			w, ok := bySpent[spent]
			switch {
			case !ok:
				faults = append(faults, fmt.Sprintf("an admission of %d that left %d has no write of its own", e.cost, o.Decision.Remaining))
			case w.cost != e.cost:
				faults = append(faults, fmt.Sprintf("an admission of %d that left %d is a write of %d", e.cost, o.Decision.Remaining, w.cost))
			}
			delete(bySpent, spent)
		case ratelimit.Indeterminate, ratelimit.Incompatible:
			unknown[e.cost]++
		case ratelimit.Unavailable:
		}
	}
	for _, w := range bySpent {
		if unknown[w.cost]--; unknown[w.cost] < 0 {
			faults = append(faults, fmt.Sprintf("a write of %d at %d belongs to no evaluation", w.cost, w.spent))
		}
	}
	slices.Sort(faults)
	return faults
}

// words counts the outcomes of the subjects that begin with a prefix.
func (l *ledger) words(prefix string) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]int{}
	for key, entries := range l.entries {
		if strings.HasPrefix(l.requests[key].subject, prefix) {
			for _, e := range entries {
				counts[word(e.outcome)]++
			}
		}
	}
	return counts
}

// counted writes words in a fixed order.
func counted(words map[string]int) string {
	parts := make([]string, 0, len(words))
	for w, n := range words {
		parts = append(parts, fmt.Sprintf("%s %d", w, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
