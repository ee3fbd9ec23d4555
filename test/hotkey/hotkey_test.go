package hotkey

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/lanes"
	"github.com/edgelimit/edgelimit/test/model"
)

var duration = flag.Duration("duration", 2*time.Second, "how long each algorithm is loaded")

const (
	callers = 64
	timeout = 5 * time.Second
)

func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }

// models are policies of which some requests are admitted and more are denied, in every second.
func models() []*model.Model {
	clock := algorithm.Clock{GraceMillis: 60_000, MaxRegressionMillis: 2000}
	return []*model.Model{
		model.FixedWindow(algorithm.FixedWindow{Limit: 251, WindowMillis: 700, Clock: clock}, "1:fw:1:hot"),
		model.SlidingCounter(algorithm.SlidingCounter{Limit: 251, WindowMillis: 700, Clock: clock}, "1:sc:1:hot"),
		model.TokenBucket(algorithm.TokenBucket{Capacity: 120, RefillTokens: 251, RefillPeriodMillis: 700, Clock: clock}, "1:tb:1:hot"),
		model.GCRA(algorithm.GCRA{Limit: 251, PeriodMillis: 700, Burst: 120, Clock: clock}, "1:gc:1:hot"),
		model.SlidingLog(algorithm.SlidingLog{Limit: 23, WindowMillis: 70, Clock: clock}, "1:sl:1:hot"),
	}
}

// answer is when and how one call was decided.
type answer struct {
	at      int64
	allowed bool
}

// TestHotKey: 64 goroutines, one key. All calls cost 1, so those of one millisecond are alike and
// their order does not matter: the model admits as many of them as the server did.
func TestHotKey(t *testing.T) {
	server := lanes.Default(t)
	namespace := fmt.Sprintf("hotkey-%d-%d", os.Getpid(), time.Now().UnixNano())
	s, err := cacheredis.NewStore(cacheredis.StoreConfig{
		Address: server.Addr, CommandTimeout: timeout, PoolSize: 32, Namespace: namespace, Programs: store.RatePrograms(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range models() {
		t.Run(m.Program.Name, func(t *testing.T) {
			answers := load(t, s, m, namespace+":"+m.Program.Name)
			admitted := 0
			for _, a := range answers {
				if a.allowed {
					admitted++
				}
			}
			if want := exact(answers, m); admitted != want {
				t.Errorf("%d of %d were admitted, the model admits %d", admitted, len(answers), want)
			}
			if admitted == 0 || admitted == len(answers) {
				t.Errorf("%d of %d were admitted: the load says nothing", admitted, len(answers))
			}
			t.Logf("%s %s: %d calls, %d admitted", server.Product, server.Version, len(answers), admitted)
		})
	}
}

// load calls the program from many goroutines for the duration and gives all answers.
func load(t *testing.T, s store.Store, m *model.Model, key string) []answer {
	t.Helper()
	end := time.Now().Add(*duration)
	results := make([][]answer, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for time.Now().Before(end) {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				reply, err := s.Eval(ctx, m.Program, []string{key}, m.Args(1, 0))
				cancel()
				if err != nil {
					t.Errorf("eval: %v", err)
					return
				}
				status, now := reply.At(0).Text, reply.At(1).Int
				if status != "ALLOWED" && status != "DENIED" {
					t.Errorf("replied %s", status)
					return
				}
				results[i] = append(results[i], answer{at: now, allowed: status == "ALLOWED"})
			}
		})
	}
	group.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if _, err := s.Del(ctx, key); err != nil {
		t.Errorf("remove: %v", err)
	}
	return slices.Concat(results...)
}

// exact is how many of the calls the model admits, in the order of their times.
func exact(answers []answer, m *model.Model) int {
	slices.SortFunc(answers, func(a, b answer) int { return int(a.at - b.at) })
	admitted := 0
	var state model.Hash
	for _, a := range answers {
		result := m.Call(state, a.at, 1, false)
		state = result.After
		if result.Reply[0] == "ALLOWED" {
			admitted++
		}
	}
	return admitted
}
