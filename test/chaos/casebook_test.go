package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// What users of rate limiters met, numbers 1 to 10 of the casebook, in docs/evidence.md: each has a test
// of its number. The first is TestCasebook01BlackHole.

// inVariants runs a test in each variant, in a short run with both options or neither.
func inVariants(t *testing.T, f func(t *testing.T, v variant)) {
	t.Helper()
	t.Parallel()
	for _, v := range variants() {
		if v.coalesce != v.circuit && !long() {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			f(t, v)
		})
	}
}

// balance settles and holds the spend to what callers were told.
func (b *bench) balance() result {
	b.t.Helper()
	b.settle()
	accounts, err := readAOF(b.server.Dir, b.ledger.requests)
	if err != nil {
		b.t.Fatal(err)
	}
	total, wrong := b.ledger.compare(accounts)
	report(b.t, wrong)
	report(b.t, b.inconsistent(accounts))
	return total
}

// TestCasebook02StartsBeforeRedis starts a provider whose server is not there: it answers, it is not
// ready, and it becomes ready by itself.
func TestCasebook02StartsBeforeRedis(t *testing.T) {
	inVariants(t, func(t *testing.T, v variant) {
		b := newBench(t, options{variant: v, cold: true})
		b.server.Stop()
		b.store.Start()
		eventually(t, "it says why it is not ready", func() error {
			if why := b.notReady(); why == "" || strings.Contains(why, "no server was reached yet") {
				return fmt.Errorf("it says %q", why)
			}
			return nil
		})
		r := deepFixed("early")
		for range 10 {
			if got := word(b.evaluate(r)); got != "Unavailable NOT_READY" {
				t.Errorf("outcome is %s", got)
			}
		}
		b.server.Restart()
		from := time.Now()
		eventually(t, "it becomes ready", b.store.Ready)
		t.Logf("ready after %v", time.Since(from).Round(time.Millisecond))
		if o, ok := b.evaluate(r).(ratelimit.Evaluated); !ok || o.Decision.Remaining != deep-1 {
			t.Errorf("%+v", o)
		}
		b.balance()
		for _, line := range []string{`msg="redis is not ready" reason=`, `msg="redis is ready" server="redis `} {
			if !strings.Contains(b.log.String(), line) {
				t.Errorf("no %s in the log:\n%s", line, b.log)
			}
		}
	})
}

// notReady is the reason why the provider is not ready, or "".
func (b *bench) notReady() string {
	if err := b.store.Ready(); err != nil {
		return err.Error()
	}
	return ""
}

// TestCasebook03MasterBecomesReplica demotes the server in mid-traffic, and promotes it again.
func TestCasebook03MasterBecomesReplica(t *testing.T) {
	inVariants(t, func(t *testing.T, v variant) {
		b := newBench(t, options{variant: v, timeout: slow})
		var demoted atomic.Bool
		stop := b.traffic(*seedFlag, func() string { return fmt.Sprintf("demoted=%v", demoted.Load()) })
		b.served()
		promote := b.demote(fixed())
		demoted.Store(true)
		for range 50 {
			if got := word(b.evaluate(deepFixed("while"))); got != "Unavailable READ_ONLY" {
				t.Errorf("outcome is %s", got)
			}
		}
		promote()
		b.served()
		stop()
		total := b.balance()
		if total.unavailable == 0 || total.indeterminate+total.incompatible > 0 {
			t.Errorf("%+v", total)
		}
	})
}

// TestCasebook04MasterKilled kills the server during a burst, without a proxy between, and starts it
// again with what it had written.
func TestCasebook04MasterKilled(t *testing.T) {
	inVariants(t, func(t *testing.T, v variant) {
		b := newBench(t, options{variant: v, direct: true, timeout: waits})
		stop := b.traffic(*seedFlag, func() string { return "burst" })
		for range 3 {
			b.served()
			b.kill()
			b.server.Restart()
		}
		b.served()
		stop()
		total := b.balance()
		t.Logf("allowed %d, indeterminate %d, spent %d; %s", total.allowed, total.indeterminate, total.spent, counted(b.ledger.words("")))
	})
}

// TestCasebook05ReplyDropped lets the command reach the server and drops the reply, for each algorithm:
// the caller is told that it is not known, and nobody runs it again.
func TestCasebook05ReplyDropped(t *testing.T) {
	inVariants(t, func(t *testing.T, v variant) {
		b := newBench(t, options{variant: v, timeout: waits})
		for _, algorithm := range ratelimit.Algorithms() {
			r := request{algorithm: algorithm, limit: deep, subject: "dropped", cost: 2}
			b.evaluate(request{algorithm: algorithm, limit: deep, subject: "known", cost: 1})
			b.proxy.set(onReply(always(lost)))
			if got := word(b.evaluate(r)); got != "Indeterminate" {
				t.Errorf("%s: outcome is %s", algorithm, got)
			}
			b.proxy.lift()
			b.served()
			if n := b.proxy.evaluations(b.key(r)); n != 1 {
				t.Errorf("%s: sent %d times", algorithm, n)
			}
			if spent := b.spent(r); spent != 2 {
				t.Errorf("%s: %d spent", algorithm, spent)
			}
		}
		b.balance()
	})
}

// TestCasebook06ScriptFlush empties the script cache again and again during a burst: nobody notices.
func TestCasebook06ScriptFlush(t *testing.T) {
	inVariants(t, func(t *testing.T, v variant) {
		b := newBench(t, options{variant: v, timeout: slow})
		ended := flushing(b, fixed())
		var burst sync.WaitGroup
		algorithms := ratelimit.Algorithms()
		for caller := range callers {
			burst.Go(func() {
				for i := range 60 {
					r := request{algorithm: algorithms[(caller+i)%len(algorithms)], limit: deep, subject: "flushed", cost: 1}
					if o := b.evaluate(r); !ratelimit.Allows(o) {
						t.Errorf("outcome is %s", word(o))
					}
				}
			})
		}
		burst.Wait()
		ended()
		total := b.balance()
		if total.spent != callers*60 {
			t.Errorf("%d spent by %d evaluations", total.spent, callers*60)
		}
		report(t, b.sentTwice())
		t.Logf("%d evaluations, %d programs sent by source", total.evaluations, b.proxy.count("EVAL", ""))
	})
}

// TestCasebook07RestartedEmpty kills a server without persistence in the middle of a burst: scripts and
// state are gone. What is lost is told, not held: no limiter can know what its store has forgotten. Held
// is that callers hear of decisions or honestly of none.
func TestCasebook07RestartedEmpty(t *testing.T) {
	inVariants(t, func(t *testing.T, v variant) {
		b := newBench(t, options{variant: v, fragile: true, timeout: waits})
		stop := b.traffic(*seedFlag, func() string { return "burst" })
		r := deepFixed("seen")
		for range 10 {
			b.evaluate(r)
		}
		b.kill()
		b.server.Restart()
		b.served()
		stop()
		o, ok := b.evaluate(r).(ratelimit.Evaluated)
		if !ok {
			t.Fatalf("outcome is %+v", o)
		}
		words := b.ledger.words("")
		for w := range words {
			if strings.HasPrefix(w, "Incompatible") {
				t.Errorf("outcome is %s", w)
			}
		}
		t.Logf("11 units were spent by one key, and the server knows of %d; %s", deep-o.Decision.Remaining, counted(words))
	})
}

// TestCasebook08HotKey lets 100 callers share one key: exactly the limit is admitted, and nobody gives
// up.
func TestCasebook08HotKey(t *testing.T) {
	inVariants(t, func(t *testing.T, v variant) {
		b := newBench(t, options{variant: v, timeout: slow})
		for _, algorithm := range ratelimit.Algorithms() {
			limit := ownLimit(algorithm)
			var allowed, denied atomic.Int64
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					for range 3 {
						switch o := b.evaluate(request{algorithm: algorithm, limit: limit, subject: "hot", cost: 1}); {
						case ratelimit.Allows(o):
							allowed.Add(1)
						case word(o) == "Evaluated denied":
							denied.Add(1)
						default:
							t.Errorf("%s: outcome is %s", algorithm, word(o))
						}
					}
				})
			}
			all.Wait()
			if allowed.Load() != limit || denied.Load() != 300-limit {
				t.Errorf("%s: %d allowed and %d denied, limit %d", algorithm, allowed.Load(), denied.Load(), limit)
			}
		}
		if total := b.balance(); total.spent != 101+102+103+104+105 {
			t.Errorf("%d spent", total.spent)
		}
	})
}

// TestCasebook09Protocols compares the decisions of every lane's server, of one that knows no HELLO and
// of one that says that it is Valkey; and the replies to the programs in both protocols.
func TestCasebook09Protocols(t *testing.T) {
	t.Parallel()
	faults := map[string]fault{
		"as it is": {},
		"no HELLO": {command: func(c command) fate {
			if c.name() == "HELLO" {
				return fate{kind: fateInstead, instead: []byte("-ERR unknown command 'HELLO', with args beginning with: '2'\r\n")}
			}
			return pass
		}},
		"Valkey": {reply: func(c command, raw []byte) fate {
			if c.name() != "INFO" {
				return pass
			}
			return fate{kind: fateInstead, instead: asValkey(raw)}
		}},
	}
	var want []string
	for _, server := range lanes.All(t) {
		for _, name := range []string{"as it is", "no HELLO", "Valkey"} {
			b := benchAt(t, server.Addr, faults[name])
			var got []string
			for _, algorithm := range ratelimit.Algorithms() {
				for range shallow/maxCost + 2 {
					o := b.evaluate(request{algorithm: algorithm, limit: shallow, subject: "spoken", cost: maxCost})
					e, ok := o.(ratelimit.Evaluated)
					if !ok {
						t.Fatalf("%s, %s: outcome is %s", server, name, word(o))
					}
					got = append(got, fmt.Sprintf("%v %d of %d", e.Decision.Allowed, e.Decision.Remaining, e.Decision.Limit))
				}
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %v, want %v", server, name, got, want)
			}
			if name == "Valkey" && b.store.Server() != "valkey 8.0.2" {
				t.Errorf("%s is taken for %s", server, b.store.Server())
			}
		}
		sameReplies(t, server)
	}
}

// benchAt gives a provider before a server that tests share.
func benchAt(t testing.TB, address string, f fault) *bench {
	t.Helper()
	b := &bench{t: t, options: options{timeout: slow, cold: true}, log: &logBuffer{}, address: address}
	b.provide()
	b.proxy.set(f)
	b.store.Start()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.store.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	client := connect(t, plainOptions(address))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for key := range b.ledger.entries {
			if err := client.Del(ctx, key).Err(); err != nil {
				t.Error(err)
			}
		}
	})
	return b
}

// asValkey adds to INFO what Valkey says of itself.
func asValkey(raw []byte) []byte {
	_, text, _ := strings.Cut(string(raw), "\r\n")
	text = "# Server\r\nvalkey_version:8.0.2\r\n" + strings.TrimSuffix(text, "\r\n")
	return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text)
}

// sameReplies runs a program in RESP2 and in RESP3 on a caller's clock, and compares what it says.
func sameReplies(t *testing.T, server *lanes.Server) {
	t.Helper()
	program, ok := lua.Find(store.RateFixedWindowV1)
	if !ok {
		t.Fatal("no program")
	}
	var said []string
	for protocol := 2; protocol <= 3; protocol++ {
		o := plainOptions(server.Addr)
		o.Protocol = protocol
		client := redis.NewClient(o)
		key := fmt.Sprintf("edgelimit:chaos:protocol-%d-%d", protocol, rand.Uint64())
		var replies []string
		for range 3 {
			reply, err := client.Eval(t.Context(), program.Source, []string{key}, "1:fw:1:0000000000000000", 2, 1000, 0, 0, 1, 1_000_000).Result()
			replies = append(replies, fmt.Sprintf("%T %v %v", reply, reply, err))
		}
		err := errors.Join(client.Del(t.Context(), key).Err(), client.Close())
		if err != nil {
			t.Error(err)
		}
		said = append(said, strings.Join(replies, "; "))
	}
	if said[0] != said[1] {
		t.Errorf("%s says in RESP2 %s, in RESP3 %s", server, said[0], said[1])
	}
}

// TestCasebook10NoDeadline asks without any deadline, which is refused and sent to nobody, and ends the
// connection after the command, after which a client that replays would send it again: it arrives once.
func TestCasebook10NoDeadline(t *testing.T) {
	inVariants(t, func(t *testing.T, v variant) {
		b := newBench(t, options{variant: v, timeout: slow})
		subject, err := b.digests.Digest("endless")
		if err != nil {
			t.Fatal(err)
		}
		for _, algorithm := range ratelimit.Algorithms() {
			policy := policyID(algorithm, deep)
			o, err := b.port.Evaluate(context.WithoutCancel(t.Context()), ratelimit.RateLimitRequest{PolicyID: policy, Subject: subject, Cost: 1})
			var invalid *ratelimit.InvalidRequestError
			if !errors.As(err, &invalid) || invalid.Fault != ratelimit.FaultDeadline || o != nil {
				t.Errorf("%s: %v, %v", algorithm, o, err)
			}
			if n := b.proxy.evaluations(b.limiter.StateKey(policy, subject)); n != 0 {
				t.Errorf("%s: sent %d times", algorithm, n)
			}
			b.evaluate(request{algorithm: algorithm, limit: deep, subject: "known", cost: 1})
			for name, f := range map[string]fate{"end": {kind: fateCut}, "reset": {kind: fateReset}} {
				r := request{algorithm: algorithm, limit: deep, subject: name, cost: 1}
				b.proxy.set(onReply(always(f)))
				if got := word(b.evaluate(r)); got != "Indeterminate" {
					t.Errorf("%s, %s: outcome is %s", algorithm, name, got)
				}
				b.proxy.lift()
				if n := b.proxy.evaluations(b.key(r)); n != 1 {
					t.Errorf("%s, %s: sent %d times", algorithm, name, n)
				}
			}
		}
		total := b.balance()
		if total.spent != total.allowed+total.indeterminate {
			t.Errorf("%+v", total)
		}
	})
}
