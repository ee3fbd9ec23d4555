package contract

import (
	"context"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/shared-contract/store/fallback"
	"github.com/edgelimit/edgelimit/test/lanes"
)

func withFallback(t testing.TB, primary, secondary store.Store, change ...func(c *fallback.Config)) *fallback.Store {
	t.Helper()
	config := fallback.Config{HoldOff: 10 * time.Millisecond, ProbeTimeout: 10 * time.Millisecond}
	for _, f := range change {
		f(&config)
	}
	s, err := fallback.New(primary, secondary, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newMemoryStore(t testing.TB) *memory.Store {
	t.Helper()
	s, err := memory.NewStore(memory.StoreConfig{MaxKeys: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFallbackStoreUp runs the suite of a store over the decorator while its primary, the real Redis of
// each lane, is there: it adds nothing and takes nothing away.
func TestFallbackStoreUp(t *testing.T) {
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend {
				backend := newBench(t, server.Addr).storeBackend(t)
				backend.Store = withFallback(t, backend.Store, newMemoryStore(t), func(c *fallback.Config) {
					c.OnSwitch = func(s fallback.Switch) { t.Errorf("switched to %v: %v", s.To, s.Cause) }
				})
				const reason = "the clock of this server is the machine's; TestStoreUnderASetClock sets one"
				backend.ExactExpiry = false
				backend.Missing = map[contracttest.StoreCapability]string{
					contracttest.StoreSetTime: reason, contracttest.StoreExactExpiry: reason,
				}
				return backend
			})
		})
	}
}

// TestFallbackStoreDown runs it while the primary refuses every connection: what serves is the memory
// store, to the contract's last word.
func TestFallbackStoreDown(t *testing.T) {
	contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend {
		b := newMemoryBench(t)
		prefixed := func(f func(tx *memory.Tx, key string) error) func(t testing.TB, key string) {
			return func(t testing.TB, key string) { b.at(t, key, f) }
		}
		return &contracttest.StoreBackend{
			Store:  withFallback(t, unreachable{}, b.store),
			Source: store.SourceGlobalRedis, Clock: store.ClockServer, Now: b.now, SetTime: b.setTime, ExactExpiry: true, RaisesErrors: true,
			TTL: func(t testing.TB, key string) (ttl int64) {
				b.at(t, key, func(tx *memory.Tx, key string) error { ttl = tx.PTTL(key); return nil })
				return ttl
			},
			PutHash: prefixed(func(tx *memory.Tx, key string) error { return tx.HashSet(key, "foreign", "1") }),
			PutText: func(t testing.TB, key, value string) {
				b.at(t, key, func(tx *memory.Tx, key string) error { return tx.SetStringKeepTTL(key, value) })
			},
			Missing: map[contracttest.StoreCapability]string{
				contracttest.StoreNeighbour: "a memory store shares its state with no other",
			},
		}
	})
}

// unreachable is a Redis that nobody listens for.
type unreachable struct{ store.Store }

func (unreachable) fail() error {
	return &store.Error{Op: "dial", Certainty: store.NotSent, Code: store.CodeConnect}
}
func (unreachable) Source() store.Source                          { return store.SourceGlobalRedis }
func (unreachable) Clock() store.ClockSource                      { return store.ClockServer }
func (unreachable) Close() error                                  { return nil }
func (u unreachable) Ping(context.Context) error                  { return u.fail() }
func (u unreachable) Get(context.Context, string) (string, error) { return "", u.fail() }
func (u unreachable) Set(context.Context, string, string, time.Duration) error {
	return u.fail()
}

func (u unreachable) SetNX(context.Context, string, string, time.Duration) (bool, error) {
	return false, u.fail()
}

func (u unreachable) GetSet(context.Context, string, string, time.Duration) (string, error) {
	return "", u.fail()
}

func (u unreachable) IncrBy(context.Context, string, int64, time.Duration) (int64, error) {
	return 0, u.fail()
}
func (u unreachable) Del(context.Context, ...string) (int64, error) { return 0, u.fail() }
func (u unreachable) Eval(context.Context, *store.Program, []string, []any) (store.Reply, error) {
	return store.Reply{}, u.fail()
}

// TestFallbackThroughAnOutage kills a real Redis under load and starts it again: every call but those
// under way is served, one switch each way is told, and the primary serves again by itself.
func TestFallbackThroughAnOutage(t *testing.T) {
	server := lanes.StartProcess(t, lanes.Options{})
	b := newBench(t, server.Addr)
	primary := b.newStore(t, "edgelimit:"+b.namespace+":", func(c *cacheredis.StoreConfig) { c.CommandTimeout = time.Second })
	switches := make(chan fallback.Switch, 100)
	s := withFallback(t, primary, newMemoryStore(t), func(c *fallback.Config) {
		c.OnSwitch = func(s fallback.Switch) { switches <- s }
	})
	set := func() (fallback.Side, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ctx, mark := fallback.WithMark(ctx)
		err := s.Set(ctx, "k", "v", time.Minute)
		return mark.Served(), err
	}
	if side, err := set(); side != fallback.SidePrimary || err != nil {
		t.Fatalf("served by %v, %v", side, err)
	}
	server.Kill()
	uncertain := 0
	for end := time.Now().Add(patience); ; {
		side, err := set()
		if side == fallback.SideSecondary {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if uncertain++; time.Now().After(end) {
			t.Fatalf("the secondary never served: %v", err)
		}
	}
	if uncertain > 1 {
		t.Errorf("%d calls failed before the secondary served", uncertain)
	}
	for range 100 {
		if side, err := set(); side != fallback.SideSecondary || err != nil {
			t.Fatalf("served by %v, %v", side, err)
		}
	}
	server.Restart()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		side, err := set()
		if err != nil {
			t.Fatalf("on the way back: %v", err)
		}
		if side == fallback.SidePrimary {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the primary never served again")
		}
	}
	for _, want := range []fallback.Side{fallback.SideSecondary, fallback.SidePrimary} {
		if got := <-switches; got.To != want {
			t.Errorf("switched to %v (%v), want %v", got.To, got.Cause, want)
		}
	}
	if len(switches) > 0 {
		t.Errorf("%d more switches", len(switches))
	}
}
