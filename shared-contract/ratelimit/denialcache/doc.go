// Package denialcache is a decorator of ratelimit.EdgeRateLimitPort that remembers denials. After one
// with retry-after R, evaluations of the same or a higher cost for that policy and subject are denied
// here and not asked for as long as nothing but the time of the store could make the answer another.
// Such a decision says so: its source is ratelimit.SourceDenialCache.
//
// It never admits, caches no admission, and caches nothing that is not an evaluated denial of the
// policy as this process knows it: no Unavailable (an unsafe clock among them), Indeterminate or
// Incompatible. Requests are judged as everywhere, and one whose deadline is over or whose caller has
// gone is left to the port.
//
// # The rule
//
// A denial of cost c is a claim: costs of c and above are denied until
//
//	send + R - 1 ms - R/1000, with R at most 10 s
//
// on the monotonic clock of this process, where send was read before the port was asked.
//
// # Why it is exact
//
// Let the store have decided at the reading s of its clock, in whole milliseconds. Retry-after counts
// from s, so the same request is denied at every reading before s+R if nothing else is admitted. That
// leaves three questions.
//
// Other traffic. Denials write nothing. An admission of any cost, by whomever, makes no later request
// pass that would not have passed without it:
//   - Fixed window: it only adds to the count of its window, and s+R is the end of that window.
//   - Sliding window counter: at each reading the estimate is the count of the current window plus the
//     weighted count of the one before. An admission adds to the first and, a window later, to the second.
//   - Token bucket: refill is cut at the capacity, but never gives less where more was left, and does not
//     depend on how often it is worked out. Who spends finds no more at any later reading than who did not.
//   - GCRA: the arrival time only moves on, and the later it is, the less passes.
//   - Sliding window log: what was live stays so for as long, and one entry more is.
//
// An admission also moves the moment below which a clock that goes back is clamped. On one that does
// not go back, that changes nothing.
//
// Higher costs. Each algorithm admits if the cost fits into what is free, so what denies c denies more.
//
// Clocks. The store decided after send, at a true moment in [s, s+1) ms. While the process measures
// less than x since send, the store's clock has moved by less than x, or by less than x*(1+1/1000) if it
// runs up to a thousandth faster; x = R - 1 ms - R/1000 leaves both below R - 1 ms, since
// (R*999/1000 - 1)*(1001/1000) < R - 1. So its reading is below s + 1 + R - 1. With send + R alone a
// denial in that last millisecond can be wrong.
//
// # Combining claims
//
// A claim stays true whatever is claimed later. So it is sound to keep any of several claims about a
// subject, and never sound to mix two: the lower cost of one with the later end of the other is a claim
// that nobody made. One is kept: of two that hold, that of the lower cost, which answers more; of equal
// costs, the later end. An admission of a lower cost neither prolongs nor ends a claim.
//
// # What a cached denial says
//
// Limit, reset-at (a moment, so it does not age), policy, revision and certainty are those of the denial.
// Remaining is what was left then: it may have grown by time or shrunk by other admissions since, and it
// is below the cost that was denied. Retry-after is what is left of R if the store decided at the last
// moment that it can have, which is when its answer came: never too early, and late by no more than the
// answer took, 1 ms, and a thousandth of the time since. For a cost above the one that was denied, R
// is replaced by a bound: see wait.go.
//
// # What it is exact relative to
//
// A store that keeps its state, and clocks that run within a thousandth of each other and do not step.
// Where that breaks (a flush, an eviction, a failover that loses writes, a clock that is set forward, a
// machine that slept), a denial can be wrong until the claim ends, within 10 s. Nothing is ever admitted
// wrongly. See docs/denial-cache.md.
//
// # Bounds
//
// Config.MaxEntries claims, of 112 bytes each, and 16 bytes for each place. A claim belongs to a set of
// eight places by a hash with a seed of this process; where the set is full one that has ended goes, or
// one that was not asked for since the last that went. That only forgets. There is no goroutine and
// nothing to close; a claim that has ended stays in memory until its place is taken. An answer from
// here makes one allocation, that of its outcome.
//
// # Concurrency
//
// All methods are safe for concurrent use. Reading takes no lock.
//
// # Errors
//
// New reports everything that is wrong with its arguments at once. Evaluate fails with what PolicySet.Admit
// or the port fails with.
package denialcache
