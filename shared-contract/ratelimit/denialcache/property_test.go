package denialcache

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func right() rules { return rules{lifetime: lifetime, prevail: prevail} }

// TestWhatItDeniesTheStoreWouldDeny: whatever others do at whatever cost, with any delay on the way there
// and back, at any fraction of a millisecond, with clocks that run apart by less than a thousandth, each
// cached denial is one that the store would have given at that moment, and where nobody was admitted since,
// what it names holds too.
func TestWhatItDeniesTheStoreWouldDeny(t *testing.T) {
	t.Parallel()
	for _, of := range algorithms {
		t.Run(of.String(), func(t *testing.T) {
			t.Parallel()
			var count tally
			scenarios := genScenario(of, false)
			rapid.Check(t, func(t *rapid.T) {
				if err := scenarios.Draw(t, "scenario").run(right(), &count); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("%d cached denials, %d of a higher cost, %d after which others were admitted", count.cached, count.higher, count.cached-count.undisturbed)
			if count.higher == 0 || count.undisturbed == 0 || count.cached == count.undisturbed {
				t.Errorf("too little to judge: %+v", count)
			}
		})
	}
}

// TestAStepBackLeavesDenialsRight: where the store's clock is set back, by a little or by so much that it
// decides nothing, a cached denial is still none that the store would have admitted. (Its retry-after is
// short by the step.)
func TestAStepBackLeavesDenialsRight(t *testing.T) {
	t.Parallel()
	for _, of := range algorithms {
		t.Run(of.String(), func(t *testing.T) {
			t.Parallel()
			var count tally
			scenarios := genScenario(of, true)
			rapid.Check(t, func(t *rapid.T) {
				if err := scenarios.Draw(t, "scenario").run(right(), &count); err != nil {
					t.Fatal(err)
				}
			})
			if count.cached == 0 {
				t.Errorf("too little to judge: %+v", count)
			}
		})
	}
}

// TestWrongRulesAreNoticed holds the test above to find what is wrong, in each algorithm.
func TestWrongRulesAreNoticed(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(*rules){
		"without a margin": func(r *rules) {
			r.lifetime = func(retryAfter time.Duration) time.Duration { return min(retryAfter, MaxHold) }
		},
		"without the millisecond": func(r *rules) {
			r.lifetime = func(retryAfter time.Duration) time.Duration { return lifetime(retryAfter) + time.Millisecond }
		},
		"without the thousandth": func(r *rules) {
			r.lifetime = func(retryAfter time.Duration) time.Duration {
				return min(retryAfter, MaxHold) - time.Millisecond
			}
		},
		"the lower cost with the later end": func(r *rules) {
			r.prevail = func(held, made *claim, _ time.Duration) *claim {
				low := made
				if held.cost < made.cost {
					low = held
				}
				return &claim{
					key: made.key, cost: low.cost, until: max(held.until, made.until), reply: low.reply,
					retryAfter: low.retryAfter, remaining: low.remaining, resetAt: low.resetAt,
				}
			}
		},
	} {
		for _, of := range algorithms {
			if name == "the lower cost with the later end" && of == ratelimit.AlgorithmFixedWindow {
				continue // All costs wait for the end of the window, so no claim ends later than another of its time.
			}
			t.Run(name+"/"+of.String(), func(t *testing.T) {
				t.Parallel()
				r := right()
				wrong(&r)
				scenarios := genScenario(of, false)
				const most = 5000
				for seed := range most {
					if err := scenarios.Example(seed).run(r, &tally{}); errors.Is(err, errWrong) {
						t.Logf("noticed by scenario %d: %v", seed, err)
						return
					}
				}
				t.Errorf("%d scenarios did not notice", most)
			})
		}
	}
}
