package denialcache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// shape is a policy in few numbers.
type shape struct {
	algorithm  ratelimit.Algorithm
	limit      int64
	rate       int64 // units each window, of a bucket and a GCRA
	window     int64 // ms
	regression int64 // ms
}

func (s shape) policy() (*ratelimit.RateLimitPolicy, error) {
	window := time.Duration(s.window) * time.Millisecond
	config := ratelimit.RateLimitPolicyConfig{
		ID: "p", Revision: 7, Algorithm: s.algorithm, MaxCost: s.limit, CleanupGrace: time.Minute,
		MaxClockRegression: time.Duration(s.regression) * time.Millisecond, FailurePolicy: ratelimit.FailClosed,
	}
	switch s.algorithm {
	case ratelimit.AlgorithmFixedWindow:
		config.Parameters = ratelimit.FixedWindowParameters{Limit: s.limit, Window: window}
	case ratelimit.AlgorithmSlidingWindowCounter:
		config.Parameters = ratelimit.SlidingWindowCounterParameters{Limit: s.limit, Window: window}
	case ratelimit.AlgorithmTokenBucket:
		config.Parameters = ratelimit.TokenBucketParameters{Capacity: s.limit, RefillTokens: s.rate, RefillPeriod: window}
	case ratelimit.AlgorithmGCRA:
		config.Parameters = ratelimit.GCRAParameters{Limit: s.rate, Period: window, Burst: s.limit}
	case ratelimit.AlgorithmSlidingWindowLog:
		config.Parameters = ratelimit.SlidingWindowLogParameters{Limit: s.limit, Window: window}
	case ratelimit.AlgorithmInvalid:
	}
	return ratelimit.NewRateLimitPolicy(config)
}

// state is the store's state of one subject.
type state struct {
	// decide decides and stores; judge only decides.
	decide, judge func(now, cost int64) algorithm.Decision
}

func stateOf(policy *ratelimit.RateLimitPolicy) state {
	switch p := policy.Parameters().(type) {
	case ratelimit.FixedWindowParameters:
		return stateful(p.Arithmetic(policy.Clock()).Decide)
	case ratelimit.SlidingWindowCounterParameters:
		return stateful(p.Arithmetic(policy.Clock()).Decide)
	case ratelimit.TokenBucketParameters:
		return stateful(p.Arithmetic(policy.Clock()).Decide)
	case ratelimit.GCRAParameters:
		return stateful(p.Arithmetic(policy.Clock()).Decide)
	case ratelimit.SlidingWindowLogParameters:
		return stateful(p.Arithmetic(policy.Clock()).Decide)
	}
	return state{}
}

func stateful[S any](decide func(S, int64, int64) (algorithm.Decision, S)) state {
	var stored S
	return state{
		decide: func(now, cost int64) (d algorithm.Decision) {
			d, stored = decide(stored, now, cost)
			return d
		},
		judge: func(now, cost int64) algorithm.Decision {
			d, _ := decide(stored, now, cost)
			return d
		},
	}
}

// event is something that happens a while after the one before it.
type event struct {
	gap  int64 // ns
	cost int64
	// other means that another instance asks the store, and not this one its cache.
	other bool
	// aim means that the event happens short of the moment that the last denial named for its retry, less a
	// thousandth where slow is set, unless that is over. Short is in ns.
	aim, slow bool
	short     int64
	// back is how far the store's clock is set back before it, ns.
	back int64
	// sending and replying are how long the way to the store takes and the way back, ns. Another instance
	// asks meanwhile, if its cost is not 0.
	sending, replying int64
	before, after     int64
}

// scenario is what happens to one subject.
type scenario struct {
	shape  shape
	offset int64 // of the store's clock at the begin, ns
	ppm    int64 // by which the store's clock is too fast
	events []event
}

var algorithms = ratelimit.Algorithms()

// genScenario makes scenarios; where steps is set the store's clock is set back now and then.
func genScenario(of ratelimit.Algorithm, steps bool) *rapid.Generator[scenario] {
	back := rapid.Just(int64(0))
	if steps {
		back = rapid.OneOf(back, back, back, rapid.Int64Range(0, 4_000_000_000))
	}
	return rapid.Custom(func(t *rapid.T) scenario {
		s := scenario{
			shape: shape{
				algorithm:  of,
				limit:      rapid.Int64Range(1, 12).Draw(t, "limit"),
				rate:       rapid.Int64Range(1, 12).Draw(t, "rate"),
				window:     rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Range(200, 2000), rapid.Int64Range(2000, 15_000)).Draw(t, "window"),
				regression: rapid.Int64Range(0, 3000).Draw(t, "regression"),
			},
			offset: 1_700_000_000_000_000_000 + rapid.Int64Range(0, 40_000_000_000).Draw(t, "offset"),
			ppm:    rapid.Int64Range(-999, 999).Draw(t, "ppm"),
		}
		window := s.shape.window * time.Millisecond.Nanoseconds()
		cost := rapid.Int64Range(1, s.shape.limit)
		meanwhile := rapid.OneOf(rapid.Just(int64(0)), cost)
		gaps := rapid.OneOf(
			rapid.Int64Range(0, 3_000_000), rapid.Int64Range(0, window/30), rapid.Int64Range(0, window/30),
			rapid.Int64Range(0, window/5), rapid.Int64Range(0, window/5), rapid.Int64Range(0, 3*window),
		)
		delay := rapid.OneOf(rapid.Int64Range(0, 300_000), rapid.Int64Range(0, 30_000_000))
		s.events = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
			return event{
				gap:     gaps.Draw(t, "gap"),
				cost:    cost.Draw(t, "cost"),
				other:   rapid.IntRange(0, 2).Draw(t, "other") == 2,
				aim:     rapid.IntRange(0, 3).Draw(t, "aim") == 3,
				slow:    rapid.Bool().Draw(t, "slow"),
				back:    back.Draw(t, "back"),
				short:   rapid.Int64Range(0, 2_500_000).Draw(t, "short"),
				sending: delay.Draw(t, "sending"), replying: delay.Draw(t, "replying"),
				before: meanwhile.Draw(t, "before"), after: meanwhile.Draw(t, "after"),
			}
		}), 10, 60).Draw(t, "events")
		return s
	})
}

// world runs a scenario. It is the port that the cache decorates.
type world struct {
	policy *ratelimit.RateLimitPolicy
	state  state
	offset int64
	ppm    int64
	now    int64 // ns since the begin

	event      event
	admissions int // by anyone
	stepped    bool
	denial     struct{ send, retryAfter int64 }
	// learned is how many admissions there were when a denial was decided, by when its reply came.
	learned map[time.Duration]fact
}

type fact struct {
	admissions int
	took       int64 // ns
	cost       int64
}

const million = 1_000_000

// reading is the store's clock.
func (w *world) reading() int64 {
	return (w.offset + w.now + w.now/million*w.ppm + w.now%million*w.ppm/million) / million
}

func (w *world) clock() time.Time { return time.Unix(0, w.now) }

func (w *world) decide(cost int64) algorithm.Decision {
	d := w.state.decide(w.reading(), cost)
	if d.Status == algorithm.StatusAllowed {
		w.admissions++
	}
	return d
}

// Evaluate is what a provider does, with the time that it takes.
func (w *world) Evaluate(_ context.Context, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	send := w.now
	w.now += w.event.sending / 2
	if w.event.before > 0 {
		w.decide(w.event.before)
	}
	w.now += w.event.sending - w.event.sending/2
	d := w.decide(request.Cost)
	admissions := w.admissions
	w.now += w.event.replying / 2
	if w.event.after > 0 {
		w.decide(w.event.after)
	}
	w.now += w.event.replying - w.event.replying/2
	if d.Status == algorithm.StatusDenied {
		w.denial.send, w.denial.retryAfter = send, d.RetryAfterMillis*million
		w.learned[time.Duration(w.now)] = fact{admissions: admissions, took: w.now - send, cost: request.Cost}
	}
	return ratelimit.Conclude(w.policy, d, ratelimit.SourceGlobalRedis), nil
}

// errWrong means that a denial is not what the store would have answered.
var errWrong = errors.New("the store would have admitted what was denied")

// tally counts what a scenario has shown.
type tally struct{ cached, higher, undisturbed int }

// run plays a scenario under rules, and gives what was wrong with the first cached denial that was.
func (s scenario) run(r rules, count *tally) error {
	policy, err := s.shape.policy()
	if err != nil {
		return err
	}
	set, err := ratelimit.NewPolicySet(policy)
	if err != nil {
		return err
	}
	w := &world{policy: policy, state: stateOf(policy), offset: s.offset, ppm: s.ppm, learned: map[time.Duration]fact{}}
	cache, err := New(w, Config{Policies: set, MaxEntries: 1, Clock: w.clock})
	if err != nil {
		return err
	}
	cache.rules = r
	subject, err := ratelimit.ParseSubjectDigest(zeros)
	if err != nil {
		return err
	}
	for i, e := range s.events {
		w.event = e
		at := w.now + e.gap
		if e.aim {
			aimed := w.denial.send + w.denial.retryAfter - e.short
			if e.slow {
				aimed -= w.denial.retryAfter / drift
			}
			at = max(w.now, aimed)
		}
		w.now = at
		w.offset -= e.back
		w.stepped = w.stepped || e.back > 0
		if e.other {
			w.decide(e.cost)
			continue
		}
		outcome, err := cache.Evaluate(context.Background(), ratelimit.RateLimitRequest{
			PolicyID: policy.ID(), Subject: subject, Cost: e.cost, Deadline: time.Unix(1<<32, 0),
		})
		if err != nil {
			return err
		}
		if answer, ok := outcome.(ratelimit.Evaluated); ok && answer.Decision.Source == ratelimit.SourceDenialCache {
			if err := w.judge(cache, answer.Decision, e.cost, subject, count); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
		}
	}
	return nil
}

// judge holds a cached denial to the store as it is at this very moment.
func (w *world) judge(cache *EdgeRateLimiter, got ratelimit.RateLimitDecision, cost int64, subject ratelimit.SubjectDigest, count *tally) error {
	count.cached++
	exact := w.state.judge(w.reading(), cost)
	fail := func(what string) error {
		return fmt.Errorf("%s: cost %d at %d ns (store's clock %d): %+v, the store says %+v", what, cost, w.now, w.reading(), got, exact)
	}
	k := cache.known[w.policy].key(subject)
	c := cache.claims.find(cache.claims.hash(&k), &k, cost, time.Duration(w.now))
	switch {
	case exact.Status == algorithm.StatusAllowed:
		return fmt.Errorf("%w: %w", errWrong, fail("denied"))
	case exact.Status != algorithm.StatusDenied && !w.stepped:
		return fail("a denial where the store decides nothing")
	case c == nil:
		return fail("no claim says so")
	case got.Allowed, got.Limit != w.policy.Limit(), got.Remaining < 0, got.Remaining >= cost, got.PolicyID != w.policy.ID(),
		got.PolicyRevision != w.policy.Revision(), got.Certainty != w.policy.Certainty(),
		got.RetryAfter < time.Millisecond, got.RetryAfter%time.Millisecond != 0:
		return fail("malformed")
	}
	if cost > c.cost {
		count.higher++
	}
	learned := w.learned[c.reply]
	if learned.admissions != w.admissions || w.stepped {
		return nil // What the denial named has moved.
	}
	count.undisturbed++
	told := got.RetryAfter.Milliseconds()
	if d := w.state.judge(w.reading()+told, cost); d.Status != algorithm.StatusAllowed {
		return fail(fmt.Sprintf("retry-after is too early, then it says %+v", d))
	}
	if got.ResetAt.UnixMilli() != exact.ResetAtMillis || got.ResetAt.Location() != time.UTC {
		return fail("reset-at is another")
	}
	// Late by the time that the denial took, a millisecond, and what the clocks may differ by, in both directions.
	late := learned.took/million + 2 + 2*(w.now-int64(c.reply))/million/drift + 1
	if cost > c.cost {
		late++
	}
	if tight := cost == c.cost || cache.known[w.policy].wait.span == 0; tight && told > exact.RetryAfterMillis+late {
		return fail(fmt.Sprintf("retry-after is later than %d ms too late", late))
	}
	return nil
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
