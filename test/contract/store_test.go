package contract

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/test/embedded"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestStoreOverEmbeddedRedis runs the suite of a store over the Redis store on a Redis in this process.
func TestStoreOverEmbeddedRedis(t *testing.T) {
	contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend {
		server := embedded.Start(t, start)
		now := start
		backend := newBench(t, server.Addr()).storeBackend(t)
		backend.RaisesErrors = false
		backend.Missing = map[contracttest.StoreCapability]string{
			contracttest.StoreRaise: "miniredis puts ERR before every error that a program raises",
		}
		backend.Now = func() time.Time { return now }
		backend.SetTime = func(to time.Time) {
			now = to
			server.SetTime(to)
		}
		return backend
	})
}

// TestStoreUnderASetClock runs it on a real Redis whose own clock is set.
func TestStoreUnderASetClock(t *testing.T) {
	server := lanes.StartFaketime(t)
	contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend {
		server.SetTime(start)
		backend := newBench(t, server.Addr).storeBackend(t)
		backend.Serial = true
		backend.Now, backend.SetTime = server.Now, server.SetTime
		return backend
	})
}

// TestStoreOverRedis runs it on the real Redis of each lane, whose clock cannot be set.
func TestStoreOverRedis(t *testing.T) {
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend {
				backend := newBench(t, server.Addr).storeBackend(t)
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

// TestDelAcrossSlots: on a server in cluster mode one DEL cannot name keys of different slots; Del can.
func TestDelAcrossSlots(t *testing.T) {
	server := lanes.StartProcess(t, lanes.Options{Args: []string{"--cluster-enabled", "yes"}})
	b := newBench(t, server.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.client.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for {
		info, err := b.client.ClusterInfo(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info, "cluster_state:ok") {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	// The control: the server does refuse it.
	if err := b.client.Do(ctx, "DEL", "key:0", "key:1").Err(); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT") {
		t.Fatalf("DEL of two slots gives %v", err)
	}
	s := b.newStore(t, "edgelimit:"+b.namespace+":")
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprint("key:", i))
		if err := s.Set(ctx, keys[i], "v", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Del(ctx, append(keys, "nothing")...); err != nil || n != 100 {
		t.Errorf("Del gives %d, %v, want 100", n, err)
	}
	for _, key := range keys {
		if stored, err := s.SetNX(ctx, key, "v", time.Minute); err != nil || !stored {
			t.Errorf("%s is still there: %v", key, err)
		}
	}
}
