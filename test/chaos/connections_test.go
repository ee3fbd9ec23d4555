package chaos

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// pooled leaves n idle connections, over which nothing is under way.
func (b *bench) pooled(n int) {
	b.t.Helper()
	b.proxy.set(onReply(always(fate{kind: fateHold})))
	before := b.proxy.count("EVALSHA", "")
	outcomes := make(chan ratelimit.Outcome, n)
	for i := range n {
		go func() { outcomes <- b.evaluate(deepFixed(fmt.Sprintf("pooled %d", i))) }()
	}
	eventually(b.t, "as many are under way", func() error {
		if now := b.proxy.count("EVALSHA", "") - before; now < n {
			return fmt.Errorf("%d", now)
		}
		return nil
	})
	b.proxy.lift()
	for range n {
		if o := <-outcomes; !ratelimit.Allows(o) {
			b.t.Fatalf("outcome is %s", word(o))
		}
	}
}

// loads counts the evaluations that each connection up to a number has carried since the function
// returned, also where the connection has ended.
func (b *bench) loads() (since func() []int) {
	var links []*link
	var before []int
	b.proxy.each(func(l *link) {
		links = append(links, l)
		before = append(before, l.evaluated())
	})
	return func() []int {
		counts := make([]int, len(links))
		for i, l := range links {
			counts[i] = l.evaluated() - before[i]
		}
		return counts
	}
}

func (l *link) evaluated() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commands
}

const poolOf = 5

// slow is a command timeout that a machine under load keeps.
const slow = 5 * time.Second

// TestRestartEndsConnections restarts the server. Its connections end in order, and the pool sees that
// before it uses one: no evaluation fails.
func TestRestartEndsConnections(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{pool: poolOf, timeout: slow})
	b.pooled(poolOf)
	since := b.loads()
	b.kill()
	b.idle(0)
	b.server.Restart()
	for range 2 * poolOf {
		if o := b.evaluate(deepFixed("after")); !ratelimit.Allows(o) {
			t.Errorf("outcome is %s", word(o))
		}
	}
	for i, n := range since() {
		if n > 0 {
			t.Errorf("old connection %d carried %d evaluations", i, n)
		}
	}
}

// TestLostRouteCostsOneEvaluation lets the server go without a word, as when a route is lost: each old
// connection costs one evaluation at the most, and is never used again.
func TestLostRouteCostsOneEvaluation(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{pool: poolOf, timeout: waits})
	second := newBench(t, options{})
	b.pooled(poolOf)
	since := b.loads()
	b.proxy.set(fault{deaf: true})
	b.proxy.move(second.server.Addr)
	b.kill()
	failed := 0
	for n := 0; n < 2*poolOf; {
		switch o := b.evaluate(deepFixed("after")); o.(type) { //nolint:gochecksumtype // Two are expected.
		case ratelimit.Evaluated:
			n++
		case ratelimit.Indeterminate:
			failed++
		default:
			t.Fatalf("outcome is %s", word(o))
		}
		if failed > poolOf {
			t.Fatalf("%d evaluations failed over %d old connections", failed, poolOf)
		}
	}
	for i, n := range since() {
		if n > 1 {
			t.Errorf("old connection %d carried %d evaluations", i, n)
		}
	}
	t.Logf("%d of %d old connections cost an evaluation", failed, poolOf)
}

// TestReadOnlyEndsOlderConnections demotes the server while another one takes its place behind the
// address. The first evaluation is told READONLY, and no other one goes to the old server.
func TestReadOnlyEndsOlderConnections(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{pool: poolOf, timeout: slow})
	second := newBench(t, options{})
	b.pooled(poolOf)
	since, first := b.loads(), b.proxy.accepted()
	b.do("REPLICAOF", "127.0.0.1", "1")
	b.proxy.move(second.server.Addr)
	if got := word(b.evaluate(deepFixed("after"))); got != "Unavailable READ_ONLY" {
		t.Errorf("outcome is %s", got)
	}
	for range 4 * poolOf {
		if o := b.evaluate(deepFixed("after")); !ratelimit.Allows(o) {
			t.Errorf("outcome is %s", word(o))
		}
	}
	total := 0
	for _, n := range since() {
		total += n
	}
	if total != 1 {
		t.Errorf("%d evaluations went to the old server", total)
	}
	// The pool closes an old connection when it comes to it.
	b.pooled(poolOf)
	b.proxy.each(func(l *link) {
		if l.number <= first {
			t.Errorf("old connection %d is still there", l.number)
		}
	})
}

// TestFailover lets a replica take over in mid-traffic, as a failover behind one address does. Each
// caller keeps the old server for one evaluation at the most.
func TestFailover(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{pool: poolOf, timeout: slow})
	replica := lanes.StartProcess(t, lanes.Options{})
	client := connect(t, plainOptions(replica.Addr))
	b.do("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	for _, command := range [][]any{
		{"CONFIG", "SET", "masteruser", administrator, "masterauth", password},
		{"ACL", "SETUSER", username, "on", ">" + password, "~*", "&*", "+@all"},
		{"REPLICAOF", "127.0.0.1", b.server.Port},
	} {
		if err := client.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	b.pooled(poolOf)
	// A write that the replica has confirmed is there after the failover.
	r := deepFixed("kept")
	if o := b.evaluate(r); !ratelimit.Allows(o) {
		t.Fatalf("outcome is %s", word(o))
	}
	eventually(t, "the replica has it", func() error {
		n, err := client.Exists(t.Context(), b.key(r)).Result()
		if err == nil && n != 1 {
			err = errors.New(replica.Log())
		}
		return err
	})
	since := b.loads()
	if err := client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	b.proxy.move(replica.Addr)
	b.do("REPLICAOF", "127.0.0.1", replica.Port)
	words := map[string]int{}
	for range 4 * poolOf {
		words[word(b.evaluate(r))]++
	}
	if words["Unavailable READ_ONLY"]+words["Evaluated allowed"] != 4*poolOf || words["Unavailable READ_ONLY"] > 1 {
		t.Errorf("outcomes are %s", counted(words))
	}
	total := 0
	for _, n := range since() {
		total += n
	}
	if total > 1 {
		t.Errorf("%d evaluations went to the old server", total)
	}
	o, ok := b.evaluate(r).(ratelimit.Evaluated)
	if want := deep - int64(words["Evaluated allowed"]) - 2; !ok || o.Decision.Remaining != want {
		t.Errorf("%+v, want %d left: what was spent before is kept", o, want)
	}
}

// TestRecoveryIsNotHeldBack lets more dials fail than the pool has connections, which makes the client's
// pool hold back further ones for up to a second where it counts them as failed. The first evaluation
// after recovery is decided, on the first connection.
func TestRecoveryIsNotHeldBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{pool: poolOf, timeout: slow})
	for name, fails := range map[string]func() (end func()){
		"refused": func() func() {
			b.proxy.refuse()
			return func() { b.proxy.listen(t) }
		},
		"cut in the greeting": func() func() {
			b.proxy.set(fault{reply: func(c command, _ []byte) fate {
				if c.greets() {
					return fate{kind: fateCut}
				}
				return pass
			}})
			return b.proxy.lift
		},
	} {
		end := fails()
		b.freshConnections()
		for range 4 * poolOf {
			if o, ok := b.evaluate(deepFixed("while")).(ratelimit.Unavailable); !ok {
				t.Errorf("%s: outcome is %s", name, word(o))
			}
		}
		end()
		before := b.proxy.accepted()
		if o := b.evaluate(deepFixed("after")); !ratelimit.Allows(o) {
			t.Errorf("%s: the first evaluation after recovery is %s", name, word(o))
		}
		// Its own, and readiness may ask at the same time.
		if dialed := b.proxy.accepted() - before; dialed > 2 {
			t.Errorf("%s: %d connections were made", name, dialed)
		}
	}
}
