package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// certainty is a row of the table of certainties: a fault, and what an evaluation of cost 1 comes to in
// it.
type certainty struct {
	name string
	// says is the row as docs/failure-modes.md has it.
	says    string
	outcome string
	spent   int64 // in Redis, when all is over
	passed  int   // evaluations that reached the server in whole, by digest or by source
	before  int   // evaluations that the row makes and has admitted before its fault, not counted above
	options options
	// act makes the fault and the evaluation, and ends the fault.
	act func(b *bench, r request) ratelimit.Outcome
}

// faulty evaluates while the proxy has a fault.
func faulty(f fault) func(*bench, request) ratelimit.Outcome {
	return func(b *bench, r request) ratelimit.Outcome {
		b.proxy.set(f)
		defer b.proxy.lift()
		return b.evaluate(r)
	}
}

// onEvaluation gives evaluations a fate.
func onEvaluation(f fate) fault {
	return fault{command: func(c command) fate {
		if c.evaluates() {
			return f
		}
		return pass
	}}
}

// onReply gives the replies to evaluations a fate.
func onReply(f func(raw []byte) fate) fault {
	return fault{reply: func(c command, raw []byte) fate {
		if c.evaluates() {
			return f(raw)
		}
		return pass
	}}
}

func always(f fate) func([]byte) fate { return func([]byte) fate { return f } }

// onGreeting gives a fate to the replies to the first command of a new connection, and makes the next
// connection a new one.
func onGreeting(f fate) func(*bench, request) ratelimit.Outcome {
	return func(b *bench, r request) ratelimit.Outcome {
		b.proxy.set(fault{reply: func(c command, _ []byte) fate {
			if c.name() == "HELLO" {
				return f
			}
			return pass
		}})
		defer b.proxy.lift()
		b.freshConnections()
		return b.evaluate(r)
	}
}

// freshConnections resets the provider's idle connections and waits until its kernel knows.
func (b *bench) freshConnections() {
	b.t.Helper()
	b.proxy.reset()
	b.idle(0)
}

// idle waits until the proxy has so many connections.
func (b *bench) idle(n int) {
	b.t.Helper()
	eventually(b.t, "connections end", func() error {
		if open := b.proxy.open(); open != n {
			return fmt.Errorf("%d are there", open)
		}
		return nil
	})
}

// held runs f while n other evaluations are under way, and then lets their replies come.
func held(b *bench, n int, f func() ratelimit.Outcome) ratelimit.Outcome {
	b.t.Helper()
	b.proxy.set(onReply(always(fate{kind: fateHold})))
	others := make(chan ratelimit.Outcome, n)
	for i := range n {
		before := b.proxy.count("EVALSHA", "")
		go func() { others <- b.evaluate(deepFixed(fmt.Sprintf("other %d", i))) }()
		eventually(b.t, "another evaluation is under way", func() error {
			if b.proxy.count("EVALSHA", "") == before {
				return fmt.Errorf("%d evaluations", before)
			}
			return nil
		})
	}
	outcome := f()
	b.proxy.lift()
	for range n {
		<-others
	}
	return outcome
}

// begun waits until so many calls are in flight.
func (b *bench) begun(n int) {
	b.t.Helper()
	eventually(b.t, "the evaluation has begun", func() error {
		if now := b.limiter.InFlight(); now < n {
			return fmt.Errorf("%d in flight", now)
		}
		return nil
	})
}

// arrived waits until an evaluation of a key has passed the proxy.
func (b *bench) arrived(key string) {
	b.t.Helper()
	eventually(b.t, "the command arrives", func() error {
		if b.proxy.evaluations(key) == 0 {
			return errors.New("no command")
		}
		return nil
	})
}

// answered is a server's reply to an evaluation that it was never sent.
func answered(reply string) func(*bench, request) ratelimit.Outcome {
	return faulty(onEvaluation(fate{kind: fateInstead, instead: []byte(reply)}))
}

// waits is the command timeout of rows that wait for it. What must come in time has it tenfold.
const waits = 300 * time.Millisecond

// margin is the command timeout of rows in which a wait ends a tenth before it, and says for what it was.
const margin = 5 * waits

// atProxy are the rows whose fault is made between provider and server, each with a provider of its own
// before a server that all of them share.
func atProxy() []certainty {
	waiting := options{timeout: waits}
	return []certainty{
		{
			name: "decided", says: "none", outcome: "Evaluated allowed", spent: 1, passed: 1,
			act: func(b *bench, r request) ratelimit.Outcome { return b.evaluate(r) },
		},
		{
			name: "deadline", says: "the caller has less time left than one command may take", outcome: "Unavailable DEADLINE",
			act: func(b *bench, r request) ratelimit.Outcome {
				return b.evaluateWithin(b.t.Context(), r, b.timeout()/2)
			},
		},
		{
			name: "canceled", says: "the caller is gone before anything is sent", outcome: "Unavailable CANCELED",
			act: func(b *bench, r request) ratelimit.Outcome {
				ctx, cancel := context.WithCancel(b.t.Context())
				cancel()
				return b.evaluateWithin(ctx, r, 20*b.timeout())
			},
		},
		{
			name: "admission", says: "all admission slots are taken", outcome: "Unavailable ADMISSION", options: options{inFlight: 1},
			act: func(b *bench, r request) ratelimit.Outcome {
				return held(b, 1, func() ratelimit.Outcome { return b.evaluate(r) })
			},
		},
		{
			name: "pool", says: "no connection comes free in time", outcome: "Unavailable POOL", options: options{pool: 1, timeout: margin},
			act: func(b *bench, r request) ratelimit.Outcome {
				return held(b, 1, func() ratelimit.Outcome { return b.evaluate(r) })
			},
		},
		{
			name: "canceled-in-pool", says: "the caller goes away while it waits for a connection", outcome: "Unavailable CANCELED", options: options{pool: 1},
			act: func(b *bench, r request) ratelimit.Outcome {
				return held(b, 1, func() ratelimit.Outcome {
					ctx, cancel := context.WithCancel(b.t.Context())
					defer cancel()
					return b.leaving(ctx, r, func() {
						b.begun(2)
						cancel()
					})
				})
			},
		},
		{
			name: "queue-time", says: "coalesced, and not sent in a quarter of the command timeout", outcome: "Unavailable DEADLINE", options: options{variant: coalesced},
			act: func(b *bench, r request) ratelimit.Outcome {
				return held(b, busyStreams, func() ratelimit.Outcome { return b.evaluate(r) })
			},
		},
		{
			name: "queue-canceled", says: "coalesced, and the caller goes away before it is sent", outcome: "Unavailable CANCELED", options: options{variant: coalesced},
			act: func(b *bench, r request) ratelimit.Outcome {
				return held(b, busyStreams, func() ratelimit.Outcome {
					ctx, cancel := context.WithCancel(b.t.Context())
					defer cancel()
					return b.leaving(ctx, r, func() {
						b.begun(busyStreams + 1)
						cancel()
					})
				})
			},
		},
		{
			name: "queue-full", says: "coalesced, and too many commands wait to be sent", outcome: "Unavailable QUEUE", options: options{variant: coalesced, inFlight: 1 << 14, timeout: 10 * time.Second},
			act: func(b *bench, r request) ratelimit.Outcome {
				var o ratelimit.Outcome
				for range 5 { // What waits is given up after a while: a machine at a standstill gets no crowd together.
					o = held(b, busyStreams, func() ratelimit.Outcome { return b.crowd(r, 5000) })
					if word(o) == "Unavailable QUEUE" {
						break
					}
				}
				return o
			},
		},
		{
			name: "refused", says: "the connection is refused", outcome: "Unavailable CONNECTION",
			act: func(b *bench, r request) ratelimit.Outcome {
				b.proxy.refuse()
				b.freshConnections()
				defer b.proxy.listen(b.t)
				return b.evaluate(r)
			},
		},
		{
			name: "dial-black-hole", says: "the connection is neither accepted nor refused", outcome: "Unavailable CONNECTION", options: options{timeout: margin},
			act: func(b *bench, r request) ratelimit.Outcome {
				b.proxy.refuse()
				b.freshConnections()
				defer b.proxy.listen(b.t)
				unclog := clog(b.t, b.proxy.address)
				defer unclog()
				return b.evaluate(r)
			},
		},
		{name: "silent-greeting", says: "a new connection is silent", outcome: "Unavailable HANDSHAKE", options: waiting, act: onGreeting(lost)},
		{name: "cut-greeting", says: "a new connection ends in its greeting", outcome: "Unavailable HANDSHAKE", act: onGreeting(fate{kind: fateCut, bytes: 3})},
		{
			name: "black-hole", says: "the server accepts connections and is silent on them", outcome: "Unavailable HANDSHAKE", options: waiting,
			act: func(b *bench, r request) ratelimit.Outcome {
				b.proxy.set(fault{hole: true})
				defer b.proxy.lift()
				b.freshConnections()
				return b.evaluate(r)
			},
		},
		{
			name: "older-server", says: "another, older server stands behind the address", outcome: "Unavailable SERVER_VERSION",
			act: func(b *bench, r request) ratelimit.Outcome {
				b.proxy.set(fault{reply: func(c command, raw []byte) fate {
					if c.name() != "INFO" {
						return pass
					}
					return fate{kind: fateInstead, instead: bytes.Replace(raw, []byte("redis_version:7"), []byte("redis_version:6"), 1)}
				}})
				defer b.proxy.lift()
				b.freshConnections()
				return b.evaluate(r)
			},
		},
		{
			name: "not-ready", says: "the server was not yet found usable", outcome: "Unavailable NOT_READY", options: options{cold: true},
			act: func(b *bench, r request) ratelimit.Outcome { return b.evaluate(r) },
		},
		{
			name: "closed", says: "the limiter was stopped", outcome: "Unavailable CLOSED",
			act: func(b *bench, r request) ratelimit.Outcome {
				if err := b.limiter.Drain(b.t.Context()); err != nil {
					b.t.Error(err)
				}
				return b.evaluate(r)
			},
		},
		{
			name: "circuit", says: "the circuit around the store is open", outcome: "Unavailable CIRCUIT", options: options{variant: guarded},
			act: func(b *bench, r request) ratelimit.Outcome {
				b.proxy.refuse()
				b.freshConnections()
				defer b.proxy.listen(b.t)
				for range circuitFailures {
					b.evaluate(deepFixed("before"))
				}
				return b.evaluate(r)
			},
		},

		{name: "half-command", says: "half of the command arrives", outcome: "Indeterminate", act: faulty(onEvaluation(fate{kind: fateCut, bytes: 60}))},
		{name: "lost-command", says: "the command is lost on its way", outcome: "Indeterminate", options: waiting, act: faulty(onEvaluation(lost))},
		{
			name: "late-command", says: "the command arrives after the caller was answered", outcome: "Indeterminate", spent: 1, passed: 1, options: waiting,
			act: faulty(onEvaluation(fate{kind: fateHold})),
		},
		{
			name: "lost-reply", says: "the reply is lost on its way", outcome: "Indeterminate", spent: 1, passed: 1, options: waiting,
			act: faulty(onReply(always(lost))),
		},
		{
			name: "late-reply", says: "the reply comes after the caller was answered", outcome: "Indeterminate", spent: 1, passed: 1, options: waiting,
			act: faulty(onReply(always(fate{kind: fateHold}))),
		},
		{
			name: "half-reply", says: "the connection ends within the reply", outcome: "Indeterminate", spent: 1, passed: 1,
			act: faulty(onReply(always(fate{kind: fateCut, bytes: 9}))),
		},
		{
			name: "stalled-reply", says: "half of the reply arrives, then nothing", outcome: "Indeterminate", spent: 1, passed: 1, options: waiting,
			act: faulty(onReply(always(fate{kind: fateStall, bytes: 9}))),
		},
		{
			name: "end-after-command", says: "the connection ends after the command", outcome: "Indeterminate", spent: 1, passed: 1,
			act: faulty(onReply(always(fate{kind: fateCut}))),
		},
		{
			name: "reset-after-command", says: "the connection is reset after the command", outcome: "Indeterminate", spent: 1, passed: 1,
			act: faulty(onReply(always(fate{kind: fateReset}))),
		},
		{
			name: "caller-gone", says: "the caller goes away after the command, and no reply comes", outcome: "Indeterminate", spent: 1, passed: 1, options: waiting,
			act: func(b *bench, r request) ratelimit.Outcome {
				b.proxy.set(onReply(always(lost)))
				defer b.proxy.lift()
				ctx, cancel := context.WithCancel(b.t.Context())
				defer cancel()
				return b.leaving(ctx, r, func() {
					b.arrived(b.key(r))
					cancel()
				})
			},
		},
		{
			name: "other-error", says: "an error reply that does not say that nothing ran (`ERR` and others)", outcome: "Indeterminate",
			act: answered("-ERR something went wrong\r\n"),
		},

		{name: "try-again", says: "the server answers `TRYAGAIN`", outcome: "Unavailable CLUSTER", act: answered("-TRYAGAIN Multiple keys request during rehashing of slot\r\n")},
		{name: "cross-slot", says: "the server answers `CROSSSLOT`", outcome: "Unavailable CLUSTER", act: answered("-CROSSSLOT Keys in request don't hash to the same slot\r\n")},
		{name: "no-auth-reply", says: "the server answers `NOAUTH` to the command", outcome: "Unavailable AUTHENTICATION", act: answered("-NOAUTH Authentication required.\r\n")},
		{name: "wrong-pass-reply", says: "the server answers `WRONGPASS` to the command", outcome: "Unavailable AUTHENTICATION", act: answered("-WRONGPASS invalid username-password pair or user is disabled.\r\n")},

		{
			name: "foreign-key", says: "a key of another type stands where the state should be", outcome: "Incompatible STATE", passed: 1,
			act: func(b *bench, r request) ratelimit.Outcome {
				b.do("SET", b.key(r), foreign)
				defer b.do("DEL", b.key(r))
				return b.evaluate(r)
			},
		},
		{
			name: "reply-arity", says: "the reply has another number of fields", outcome: "Incompatible REPLY", spent: 1, passed: 1,
			act: faulty(onReply(always(fate{kind: fateInstead, instead: []byte("*1\r\n$7\r\nALLOWED\r\n")}))),
		},
		{
			name: "reply-value", says: "the reply has a value that the program cannot give", outcome: "Incompatible REPLY", spent: 1, passed: 1,
			act: faulty(onReply(always(fate{kind: fateInstead, instead: []byte(strange[len(strange)-1])}))),
		},
		{
			name: "reply-syntax", says: "the reply is not of the protocol", outcome: "Incompatible REPLY", spent: 1, passed: 1,
			act: faulty(onReply(always(fate{kind: fateInstead, instead: []byte("HTTP/1.1 400 Bad Request\r\n\r\n")}))),
		},
		{
			name: "invalid", says: "the program refuses its arguments (`INVALID`)", outcome: "Incompatible PROGRAM",
			act: answered("*7\r\n$7\r\nINVALID\r\n:1\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n"),
		},
	}
}

// busyStreams is how many evaluations, one after the other, leave a coalescing provider no way to send
// another: one that went alone, and one in each of three batches.
const busyStreams = 4

// crowd evaluates n times at once, with nobody sending, and gives the outcome of those that the queue
// had no room for, or else of any.
func (b *bench) crowd(r request, n int) ratelimit.Outcome {
	outcomes := make(chan ratelimit.Outcome, n)
	for range n {
		go func() { outcomes <- b.evaluate(r) }()
	}
	var some ratelimit.Outcome
	for range n {
		o := <-outcomes
		u, ok := o.(ratelimit.Unavailable)
		if !ok || u.Category != ratelimit.UnavailableQueue && u.Category != ratelimit.UnavailableDeadline {
			b.t.Errorf("outcome is %s", word(o))
		}
		if some == nil || ok && u.Category == ratelimit.UnavailableQueue {
			some = o
		}
	}
	return some
}

// leaving evaluates while depart runs, which lets the caller go.
func (b *bench) leaving(ctx context.Context, r request, depart func()) ratelimit.Outcome {
	result := make(chan ratelimit.Outcome, 1)
	go func() { result <- b.evaluateWithin(ctx, r, 20*b.timeout()) }()
	depart()
	return <-result
}

// TestCertaintyAtProxy makes each fault between provider and server, and holds outcome, category, spend
// and the number of times that the command arrived to what the table says.
func TestCertaintyAtProxy(t *testing.T) {
	t.Parallel()
	shared := newBench(t, options{})
	for i, row := range atProxy() {
		for turn := i; turn == i || long() && turn < i+len(ratelimit.Algorithms()); turn++ {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				o := row.options
				o.timeout = or(o.timeout, 10*waits)
				row.hold(shared.beside(t, o), turn)
			})
		}
	}
}

// hold makes the fault of a row and judges what came of it. The algorithms take turns; a long run tries
// all of them.
func (row certainty) hold(b *bench, turn int) {
	b.t.Helper()
	algorithms := ratelimit.Algorithms()
	r := request{algorithm: algorithms[turn%len(algorithms)], limit: deep, subject: row.name, cost: 1}
	key := b.key(r)
	outcome := row.act(b, r)
	if got := word(outcome); got != row.outcome {
		b.t.Errorf("%s: outcome is %s, want %s", r.algorithm, got, row.outcome)
	}
	if retry := retryAfter(outcome); strings.HasPrefix(row.outcome, "Unavailable") && retry < time.Millisecond {
		b.t.Errorf("retry after %v", retry)
	}
	if b.options.cold {
		b.store.Start()
	}
	b.settle()
	if spent := b.spent(r); spent != row.spent {
		b.t.Errorf("%s: %d spent, want %d", r.algorithm, spent, row.spent)
	}
	if passed := b.proxy.evaluations(key); passed != row.passed {
		b.t.Errorf("%s: %d evaluations arrived, want %d", r.algorithm, passed, row.passed)
	}
}

func retryAfter(o ratelimit.Outcome) time.Duration {
	switch o := o.(type) {
	case ratelimit.Unavailable:
		return o.RetryAfter
	case ratelimit.Indeterminate:
		return o.RetryAfter
	case ratelimit.Evaluated:
		return o.Decision.RetryAfter
	case ratelimit.Incompatible:
	}
	return 0
}

// byServer are the rows whose fault is the server's own. They share one server, one after the other.
func byServer() []certainty {
	// while makes a disturbance of the schedule.
	while := func(name string) func(*bench, request) ratelimit.Outcome {
		return func(b *bench, r request) ratelimit.Outcome {
			faults := disturbances()
			i := slices.IndexFunc(faults, func(d disturbance) bool { return d.name == name })
			end := faults[i].begin(b, fixed())
			defer end()
			return b.evaluate(r)
		}
	}
	// afresh makes the next connection a new one.
	afresh := func(act func(*bench, request) ratelimit.Outcome) func(*bench, request) ratelimit.Outcome {
		return func(b *bench, r request) ratelimit.Outcome {
			b.freshConnections()
			return act(b, r)
		}
	}
	return []certainty{
		{name: "loading", says: "the server is loading its data (`LOADING`)", outcome: "Unavailable LOADING", passed: 1, act: while("loading")},
		{name: "read-only", says: "the server was demoted to a replica (`READONLY`)", outcome: "Unavailable READ_ONLY", passed: 1, act: while("replica")},
		{name: "master-down", says: "the server is a replica without its master and serves no stale data (`MASTERDOWN`)", outcome: "Unavailable MASTER_DOWN", passed: 1, act: while("stale-replica")},
		{name: "out-of-memory", says: "the server is full and evicts nothing (`OOM`)", outcome: "Unavailable OUT_OF_MEMORY", passed: 1, act: while("full")},
		{name: "persistence", says: "the server cannot persist (`MISCONF`)", outcome: "Unavailable PERSISTENCE", passed: 1, act: while("cannot-persist")},
		{name: "replicas", says: "the server has too few replicas (`NOREPLICAS`)", outcome: "Unavailable REPLICAS", passed: 1, act: while("no-replicas")},
		{name: "busy", says: "the server runs another script for too long (`BUSY`)", outcome: "Unavailable BUSY", passed: 1, act: while("busy")},
		{name: "permission", says: "the user may not run programs (`NOPERM`)", outcome: "Unavailable PERMISSION", passed: 1, act: while("no-permission")},
		{name: "permission-inside", says: "the user may not do what the program does", outcome: "Indeterminate", passed: 1, act: while("no-permission-inside")},
		{name: "wrong-password", says: "the password was changed (`WRONGPASS`)", outcome: "Unavailable AUTHENTICATION", act: afresh(while("wrong-password"))},
		{name: "no-password", says: "the server wants a password that was not configured (`NOAUTH`)", outcome: "Unavailable AUTHENTICATION", act: (*bench).withoutPassword},
		{name: "script-flush", says: "the script cache was emptied (`SCRIPT FLUSH`)", outcome: "Evaluated allowed", spent: 1, passed: 2, act: func(b *bench, r request) ratelimit.Outcome {
			b.do("SCRIPT", "FLUSH")
			return b.evaluate(r)
		}},
		{name: "clock-back", says: "the server's clock went back further than the policy tolerates", outcome: "Unavailable CLOCK_UNSAFE", passed: 1, before: 1, act: func(b *bench, r request) ratelimit.Outcome {
			if o := b.evaluate(r); !ratelimit.Allows(o) {
				b.t.Errorf("before the step: %s", word(o))
			}
			b.clock.SetOffset(-time.Hour)
			defer b.clock.SetOffset(0)
			outcome := b.evaluate(r)
			// The true time, and no hint.
			if retry := retryAfter(outcome); retry < time.Hour-maxRegression-time.Minute || retry > time.Hour-maxRegression {
				b.t.Errorf("retry after %v", retry)
			}
			return outcome
		}},
		{name: "clock-back-a-little", says: "the server's clock went back within what the policy tolerates", outcome: "Evaluated allowed", spent: 1, passed: 1, before: 1, act: func(b *bench, r request) ratelimit.Outcome {
			b.evaluate(r)
			b.clock.SetOffset(-maxRegression / 2)
			defer b.clock.SetOffset(0)
			return b.evaluate(r)
		}},
		{name: "paused", says: "the server stands still, and goes on later", outcome: "Indeterminate", spent: 1, passed: 1, act: while("pause")},
		{name: "killed", says: "the server is killed before it has read the command", outcome: "Indeterminate", passed: 1, act: func(b *bench, r request) ratelimit.Outcome {
			b.server.Pause()
			defer b.server.Restart()
			return b.leaving(b.t.Context(), r, func() {
				b.arrived(b.key(r))
				b.kill()
			})
		}},
	}
}

// withoutPassword asks through a provider of the default user, which has none until the server wants one.
func (b *bench) withoutPassword(r request) ratelimit.Outcome {
	other := &bench{t: b.t, options: b.options, log: &logBuffer{}, server: b.server, clock: b.clock, address: b.address, admin: b.admin}
	other.provide()
	b.do("ACL", "SETUSER", "default", "resetpass", ">"+password)
	defer b.do("ACL", "SETUSER", "default", "nopass")
	other.freshConnections()
	outcome := other.evaluate(r)
	if passed := other.proxy.evaluations(other.key(r)); passed != 0 {
		b.t.Errorf("%d evaluations were sent", passed)
	}
	if err := other.store.Close(); err != nil {
		b.t.Error(err)
	}
	return outcome
}

// TestCertaintyByServer makes each fault in the server, and holds outcome, category, spend and the
// number of times that the command arrived to what the table says.
func TestCertaintyByServer(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{offset: true, timeout: 5 * waits})
	for i, row := range byServer() {
		t.Run(row.name, func(t *testing.T) { row.holdOn(t, b, i) })
	}
	b.settle()
}

// holdOn makes the fault of a row on a server that serves the next row too.
func (row certainty) holdOn(t *testing.T, b *bench, turn int) {
	t.Helper()
	algorithms := ratelimit.Algorithms()
	r := request{algorithm: algorithms[turn%len(algorithms)], limit: deep, subject: row.name, cost: 1}
	warm := request{algorithm: r.algorithm, limit: deep, subject: "warm " + row.name, cost: 1}
	eventually(t, "the program is known", func() error {
		if o := b.evaluate(warm); !ratelimit.Allows(o) {
			return fmt.Errorf("%s", word(o))
		}
		return nil
	})
	if got := word(row.act(b, r)); got != row.outcome {
		t.Errorf("%s: outcome is %s, want %s", r.algorithm, got, row.outcome)
	}
	b.served()
	// What was sent before is done: the server answers one that came later.
	b.freshConnections()
	b.served()
	if spent := b.spent(r) - int64(row.before); spent != row.spent {
		t.Errorf("%s: %d spent, want %d", r.algorithm, spent, row.spent)
	}
	if passed := b.proxy.evaluations(b.key(r)) - row.before; passed != row.passed {
		t.Errorf("%s: %d evaluations arrived, want %d", r.algorithm, passed, row.passed)
	}
}
