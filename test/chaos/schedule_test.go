package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Each fault lasts that long, and a command times out after that long, in a short run and in a long one.
// A short one is for machines under load too.
const (
	shortFault   = 200 * time.Millisecond
	shortTimeout = 150 * time.Millisecond
	longFault    = 700 * time.Millisecond
	longTimeout  = 60 * time.Millisecond
)

// callers ask at the same time.
const callers = 12

// TestSchedule disturbs a provider under load by one fault after the other, in an order that the seed
// gives, and then holds what was spent, as the append-only file has it, to what callers were told. In a
// short run the variants share the faults; in a long one each meets all of them, again and again, each
// time in another order and with a new server.
func TestSchedule(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for round := uint64(0); ; round++ {
		seed := *seedFlag + round
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			all := variants()
			for i, v := range all {
				t.Run(v.name, func(t *testing.T) {
					t.Parallel()
					faults := chosen(t, rand.New(rand.NewPCG(seed, 0)))
					if !long() && *only == "" {
						faults = faults[len(faults)*i/len(all) : len(faults)*(i+1)/len(all)]
					}
					runSchedule(t, v, seed, faults)
				})
			}
		})
		if t.Failed() || time.Since(began) >= *duration {
			return
		}
	}
}

// chosen are the faults of this run in the order of the seed.
func chosen(t testing.TB, r *rand.Rand) []disturbance {
	t.Helper()
	faults := disturbances()
	if *only != "" {
		names := strings.Split(*only, ",")
		faults = slices.DeleteFunc(faults, func(d disturbance) bool { return !slices.Contains(names, d.name) })
		if len(faults) != len(names) {
			t.Fatalf("%d of the faults %s are known", len(faults), *only)
		}
	}
	r.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	return faults
}

func runSchedule(t *testing.T, v variant, seed uint64, faults []disturbance) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("again: go test ./test/chaos -run '^TestSchedule$' -args -seed %d", seed)
		}
	}()
	lasts, timeout := shortFault, shortTimeout
	if long() {
		lasts, timeout = longFault, longTimeout
	}
	b := newBench(t, options{variant: v, timeout: timeout, offset: true})
	r := rand.New(rand.NewPCG(seed, 1))

	var step atomic.Int64
	step.Store(-1)
	stop := b.traffic(seed, func() string {
		i := step.Load()
		if i < 0 {
			return "before"
		}
		return faults[i].name
	})
	back := make([]time.Duration, len(faults))
	for i, d := range faults {
		step.Store(int64(i))
		end := d.begin(b, r)
		time.Sleep(lasts)
		end()
		from := time.Now()
		b.served()
		back[i] = time.Since(from)
		if t.Failed() {
			t.Errorf("while %s", d.name)
			break
		}
	}
	stop()
	b.settle()
	accounts, err := readAOF(b.server.Dir, b.ledger.requests)
	if err != nil {
		t.Fatal(err)
	}
	total, wrong := b.ledger.compare(accounts)
	report(t, wrong)
	report(t, b.inconsistent(accounts))
	report(t, b.sentTwice())
	for i, d := range faults {
		words := b.ledger.words(d.name + "/")
		if long() {
			t.Logf("%-20s decided again after %v; %s", d.name, back[i].Round(100*time.Microsecond), counted(words))
		}
		// An evaluation may have begun before its phase ended.
		reach := faults[i:min(i+2, len(faults))]
		for w := range words {
			if strings.HasPrefix(w, "Incompatible") && !slices.ContainsFunc(reach, func(d disturbance) bool { return d.gives == w }) {
				t.Errorf("%s while %s", w, d.name)
			}
		}
	}
	t.Logf("%s: %d faults, %d evaluations of %d keys: allowed %d, denied %d, unavailable %d, indeterminate %d, incompatible %d; spent %d",
		v.name, len(faults), total.evaluations, total.keys, total.allowed, total.denied, total.unavailable, total.indeterminate,
		total.incompatible, total.spent)
}

// traffic lets callers ask until the returned function is called. Each picks an algorithm, a limit, a
// subject of the current phase and a cost; some go away before they are answered.
func (b *bench) traffic(seed uint64, phase func() string) (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 100+uint64(caller)))
			algorithms := ratelimit.Algorithms()
			for ctx.Err() == nil {
				b.ask(r, request{
					algorithm: algorithms[r.IntN(len(algorithms))],
					limit:     []int64{deep, deep, deep, shallow}[r.IntN(4)],
					subject:   fmt.Sprintf("%s/%d", phase(), r.IntN(2)),
					cost:      1 + r.Int64N(maxCost),
				})
				time.Sleep(time.Duration(r.IntN(int(2 * time.Millisecond))))
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// ask is one evaluation of a caller who may lose patience.
func (b *bench) ask(r *rand.Rand, what request) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	defer cancel()
	if r.IntN(10) == 0 {
		defer time.AfterFunc(time.Duration(r.IntN(int(b.timeout()))), cancel).Stop()
	}
	b.evaluateWithin(ctx, what, 2*b.timeout())
}

// report shows the first of the faults that were found.
func report(t testing.TB, faults []error) {
	t.Helper()
	const most = 10
	for i, fault := range faults {
		if i == most {
			t.Errorf("and %d more", len(faults)-most)
			break
		}
		t.Error(fault)
	}
}

// inconsistent compares the server's state with the one that its append-only file leaves.
func (b *bench) inconsistent(accounts map[string]*account) []error {
	b.t.Helper()
	var faults []error
	for key, r := range b.ledger.requests {
		a := accounts[key]
		if a == nil {
			a = &account{}
		}
		if err := a.same(b.t.Context(), b.admin, key); err != nil {
			faults = append(faults, fmt.Errorf("state of %s, limit %d, subject %s: %w", r.algorithm, r.limit, r.subject, err))
		}
	}
	return faults
}

// sentTwice compares the evaluations that passed the proxy with those that callers asked for: each is
// sent once by digest, and once by source after the server answered that it does not know the program.
func (b *bench) sentTwice() []error {
	b.t.Helper()
	var faults []error
	for key, entries := range b.ledger.entries {
		r, unknown := b.ledger.requests[key], b.proxy.noScripts(key)
		// Where nothing was sent after a NOSCRIPT, the caller is told that nothing was spent.
		if passed, most := b.proxy.count("EVALSHA", key), sum(entries).sent+unknown; passed > most {
			faults = append(faults, fmt.Errorf("%s, limit %d, subject %s: %d evaluations were sent by digest for %d callers",
				r.algorithm, r.limit, r.subject, passed, most))
		}
		if passed := b.proxy.count("EVAL", key); passed > unknown {
			faults = append(faults, fmt.Errorf("%s, limit %d, subject %s: %d evaluations were sent by source after %d NOSCRIPT",
				r.algorithm, r.limit, r.subject, passed, unknown))
		}
	}
	return faults
}
