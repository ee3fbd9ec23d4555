package memory

import (
	"errors"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// breakerPolicyArgs is how many arguments the policy takes in every breaker program.
const breakerPolicyArgs = 12

// breakerCall is one run of a breaker program up to its decision.
type breakerCall struct {
	tx        *Tx
	key       string
	identity  string // as it is stored
	machine   breaker.Machine
	now       int64 // the clock that decides
	simulated bool
	before    breaker.Stored
}

// readBreaker reads the policy, which comes first among the arguments, and the clock, the last of them.
func readBreaker(tx *Tx, keys, args []string) (*breakerCall, bool) {
	clock, ok := parseUint(args[len(args)-1], 0, algorithm.MaxNowMillis)
	number := func(i int, low, high int64) int64 {
		n, fine := parseUint(args[i], low, high)
		ok = ok && fine
		return n
	}
	c := &breakerCall{tx: tx, key: keys[0], identity: args[0], now: tx.NowMillis()}
	c.machine = breaker.Machine{
		Threshold:         number(1, 0, breaker.MostThreshold),
		Buckets:           number(2, 0, breaker.MostBuckets),
		BucketMillis:      number(3, 0, algorithm.MaxHorizonMillis),
		MinimumCalls:      number(4, 0, breaker.MostMinimumCalls),
		RatePermille:      number(5, 0, breaker.MostRatePermille),
		OpenTimeoutMillis: number(6, 1, algorithm.MaxHorizonMillis),
		MaxProbes:         number(7, 1, breaker.MostProbes),
		ProbeLeaseMillis:  number(8, 1, algorithm.MaxHorizonMillis),
		ProbeSuccesses:    number(9, 1, breaker.MostProbeSuccesses),
		Clock: algorithm.Clock{
			GraceMillis:         number(10, 0, algorithm.MaxHorizonMillis),
			MaxRegressionMillis: number(11, 0, algorithm.MaxRegressionMillis),
		},
	}
	if !ok || len(c.identity) > 64 || !strings.HasPrefix(c.identity, "1:cb:") || c.now > algorithm.MaxNowMillis ||
		c.machine.Check() != nil {
		return c, false
	}
	if clock > 0 {
		c.now, c.simulated = clock, true
		c.identity += ":sim"
	}
	return c, true
}

// load reads the stored state. It reports false where something stands there that is none.
func (c *breakerCall) load() (bool, error) {
	fields, err := c.tx.HashGet(c.key, c.machine.FieldNames()...)
	switch {
	case errors.Is(err, ErrWrongType):
		return false, nil
	case err != nil:
		return false, err
	case allAbsent(fields):
		return !c.tx.Exists(c.key), nil
	}
	texts := make([]string, len(fields))
	for i, field := range fields {
		if field.Kind != store.ValueText {
			return false, nil
		}
		texts[i] = field.Text
	}
	var ok bool
	c.before, ok = c.machine.ParseFields(c.identity, texts)
	return ok, nil
}

// save stores a state and its lifetime. A state has one text, so that writing all of its fields leaves
// what writing only those that changed would.
func (c *breakerCall) save(t breaker.Transition, after breaker.Stored) error {
	if !t.Writes {
		return nil
	}
	names, texts := c.machine.FieldNames(), c.machine.Fields(c.identity, after)
	pairs := make([]string, 0, 2*len(names))
	for i, name := range names {
		pairs = append(pairs, name, texts[i])
	}
	own := common{now: c.now, simulated: c.simulated}
	return own.create(c.tx, c.key, t.EffectiveNowMillis+c.machine.LifetimeMillis(), pairs...)
}

// decide runs a transition over the stored state, or gives the reply of a program that cannot decide.
func (c *breakerCall) decide(run func(breaker.Stored) (breaker.Transition, breaker.Stored)) (breaker.Transition, error) {
	ok, err := c.load()
	if err != nil {
		return breaker.Transition{}, err
	}
	if !ok {
		return breaker.Refused(breaker.StatusStateIncompatible, c.now), nil
	}
	t, after := run(c.before)
	return t, c.save(t, after)
}

func breakerReply(words []string, numbers ...int64) store.Reply {
	var r store.Reply
	for _, text := range words {
		r.Append(store.Text(text))
	}
	for _, n := range numbers {
		r.Append(store.Integer(n))
	}
	return r
}

func breakerAcquireReply(t breaker.Transition) store.Reply {
	return breakerReply([]string{t.Status.String(), t.State.String()},
		t.ServerNowMillis, t.EffectiveNowMillis, t.SinceMillis, t.RetryAfterMillis, t.LeaseUntilMillis)
}

func breakerRecordReply(t breaker.Transition) store.Reply {
	before := t.Before
	if t.State == breaker.StateInvalid {
		before = breaker.StateInvalid
	}
	return breakerReply([]string{t.Status.String(), before.String(), t.State.String()},
		t.ServerNowMillis, t.EffectiveNowMillis, t.SinceMillis, t.RetryAfterMillis)
}

func breakerReadReply(t breaker.Transition) store.Reply {
	return breakerReply([]string{t.Status.String(), t.State.String()},
		t.ServerNowMillis, t.EffectiveNowMillis, t.SinceMillis, t.RetryAfterMillis, t.Tally, t.Total)
}

// breakerAcquireV1 is breaker-acquire-v1.
func breakerAcquireV1(tx *Tx, keys, args []string) (store.Reply, error) {
	invalid := breakerAcquireReply(breaker.Refused(breaker.StatusInvalid, tx.NowMillis()))
	if len(keys) != 1 || len(args) != breakerPolicyArgs+2 || !breaker.ValidToken(args[12]) {
		return invalid, nil
	}
	c, ok := readBreaker(tx, keys, args)
	if !ok {
		return invalid, nil
	}
	t, err := c.decide(func(s breaker.Stored) (breaker.Transition, breaker.Stored) {
		return c.machine.Acquire(s, c.now, args[12])
	})
	return breakerAcquireReply(t), err
}

// breakerRecordV1 is breaker-record-v1.
func breakerRecordV1(tx *Tx, keys, args []string) (store.Reply, error) {
	invalid := breakerRecordReply(breaker.Refused(breaker.StatusInvalid, tx.NowMillis()))
	if len(keys) != 1 || len(args) != breakerPolicyArgs+6 || !breaker.ValidToken(args[13]) {
		return invalid, nil
	}
	kind, okKind := breaker.ParsePermitKind(args[12])
	generation, okGeneration := parseUint(args[14], 0, algorithm.MaxNowMillis)
	acquiredAt, okAcquiredAt := parseUint(args[15], 0, algorithm.MaxNowMillis)
	result, okResult := breaker.ParseResult(args[16])
	c, ok := readBreaker(tx, keys, args)
	if !okKind || !okGeneration || !okAcquiredAt || !okResult || !ok {
		return invalid, nil
	}
	t, err := c.decide(func(s breaker.Stored) (breaker.Transition, breaker.Stored) {
		return c.machine.Record(s, c.now, breaker.Report{
			Kind: kind, Token: args[13], Generation: generation, AcquiredAt: acquiredAt, Result: result,
		})
	})
	return breakerRecordReply(t), err
}

// breakerReadV1 is breaker-read-v1.
func breakerReadV1(tx *Tx, keys, args []string) (store.Reply, error) {
	invalid := breakerReadReply(breaker.Refused(breaker.StatusInvalid, tx.NowMillis()))
	if len(keys) != 1 || len(args) != breakerPolicyArgs+1 {
		return invalid, nil
	}
	c, ok := readBreaker(tx, keys, args)
	if !ok {
		return invalid, nil
	}
	t, err := c.decide(func(s breaker.Stored) (breaker.Transition, breaker.Stored) {
		return c.machine.Read(s, c.now), s
	})
	return breakerReadReply(t), err
}
