package chaos

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// departure is a phase in which a caller goes away.
type departure struct {
	name    string
	options options
	// others is how many evaluations are under way before, whose replies are held.
	others int
	// arrange makes the phase last and gives what ends it.
	arrange func(b *bench) (end func())
	// reached waits until the caller is in the phase.
	reached func(b *bench, r request)
	// sent is whether the command leaves.
	sent bool
}

// departures lists the phases. What the caller is told, and when, is the outcome's matter; here it
// counts that nothing of it stays.
func departures() []departure {
	nothing := func(*bench) func() { return func() {} }
	inFlight := func(n int) func(*bench, request) { return func(b *bench, _ request) { b.begun(n) } }
	arrived := func(b *bench, r request) { b.arrived(b.key(r)) }
	return []departure{
		{name: "queued", options: options{variant: coalesced}, others: busyStreams, arrange: nothing, reached: inFlight(busyStreams + 1)},
		{name: "waiting for the pool", options: options{pool: 1}, others: 1, arrange: nothing, reached: inFlight(2)},
		{
			name: "dialing", reached: inFlight(1),
			arrange: func(b *bench) func() {
				b.proxy.refuse()
				b.freshConnections()
				unclog := clog(b.t, b.proxy.address)
				return func() { unclog(); b.proxy.listen(b.t) }
			},
		},
		{
			name: "greeting", reached: func(b *bench, _ request) {
				eventually(b.t, "the greeting arrives", func() error {
					if b.proxy.open() == 0 {
						return errors.New("no connection")
					}
					return nil
				})
			},
			arrange: func(b *bench) func() {
				b.proxy.set(fault{hole: true})
				b.freshConnections()
				return b.proxy.lift
			},
		},
		{
			name: "after the write", sent: true, reached: arrived,
			arrange: func(b *bench) func() { b.proxy.set(onReply(always(lost))); return b.proxy.lift },
		},
		{
			name: "reply late", sent: true, reached: arrived,
			arrange: func(b *bench) func() { b.proxy.set(onReply(always(fate{kind: fateHold}))); return b.proxy.lift },
		},
		{
			name: "reply late, coalesced", options: options{variant: coalesced}, others: busyStreams - 1, sent: true, reached: arrived,
			arrange: nothing,
		},
	}
}

// TestCallerGoesAway lets a caller go away in each phase. Its slot is taken until its command has ended,
// nothing of it is sent later, no goroutine stays, and the next caller reads its own reply: each policy
// has a limit that no other has. It is not parallel, since it looks at every goroutine.
func TestCallerGoesAway(t *testing.T) {
	for _, d := range departures() {
		before := goleak.IgnoreCurrent()
		t.Run(d.name, d.run)
		// Provider, proxy and server have ended with the subtest.
		if err := goleak.Find(before); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

func (d departure) run(t *testing.T) {
	o := d.options
	o.timeout = waits
	b := newBench(t, o)
	algorithms := ratelimit.Algorithms()
	own := func(i int, subject string) request {
		a := algorithms[i%len(algorithms)]
		return request{algorithm: a, limit: ownLimit(a), subject: subject, cost: 1}
	}
	// Every program is known before: what arrives then is an evaluation.
	for i := range algorithms {
		if o := b.evaluate(own(i, "warm")); !ratelimit.Allows(o) {
			t.Fatalf("outcome is %s", word(o))
		}
	}
	end := d.arrange(b)
	r := own(1, "leaves")
	var outcome ratelimit.Outcome
	leave := func() ratelimit.Outcome {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return b.leaving(ctx, r, func() {
			d.reached(b, r)
			cancel()
		})
	}
	if d.others > 0 {
		outcome = held(b, d.others, leave)
	} else {
		outcome = leave()
	}
	switch outcome.(type) {
	case ratelimit.Unavailable:
		if d.sent {
			t.Errorf("the command was sent, and the outcome is %s", word(outcome))
		}
	case ratelimit.Indeterminate, ratelimit.Evaluated:
		if !d.sent {
			t.Errorf("the command was not sent, and the outcome is %s", word(outcome))
		}
	case ratelimit.Incompatible:
		t.Errorf("outcome is %s", word(outcome))
	}
	if n := b.limiter.InFlight(); n != 0 {
		t.Errorf("%d slots are taken after all have been told", n)
	}
	sent := b.proxy.evaluations(b.key(r))
	// No connection whose command has not ended is in use: one that waits for its reply was closed.
	eventually(t, "connections with a command that nobody waits for end", func() error {
		open := 0
		b.proxy.each(func(l *link) {
			if l.owes(b.key(r)) {
				open++
			}
		})
		if open > 0 {
			return fmt.Errorf("%d are there", open)
		}
		return nil
	})
	end()
	// The late reply comes now, to nobody.
	for i := range 4 * len(algorithms) {
		next := own(i, "next")
		o, ok := b.evaluate(next).(ratelimit.Evaluated)
		if !ok || o.Decision.Limit != next.limit || o.Decision.Remaining != next.limit-1-int64(i/len(algorithms)) {
			t.Errorf("the next caller's outcome is %+v, with a limit of %d", o, next.limit)
		}
	}
	b.settle()
	if now := b.proxy.evaluations(b.key(r)); now != sent {
		t.Errorf("%d evaluations were sent after the caller was told", now-sent)
	}
	if want := map[bool]int{true: 1}[d.sent]; sent != want {
		t.Errorf("%d evaluations were sent, want %d", sent, want)
	}
	accounts, err := readAOF(b.server.Dir, b.ledger.requests)
	if err != nil {
		t.Fatal(err)
	}
	_, wrong := b.ledger.compare(accounts)
	report(t, wrong)
}

// owes reports whether the reply to an evaluation of a key is outstanding.
func (l *link) owes(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.waiting {
		if c.key() == key {
			return true
		}
	}
	return false
}
