package contract

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/contracttest"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// faultVariable names the deliberate fault of a store in a subprocess.
const faultVariable = "EDGELIMIT_STORE_FAULT"

// TestFaultyStore runs the suite of a store over a memory store with the fault that the environment
// names, or with none.
func TestFaultyStore(t *testing.T) {
	fault := os.Getenv(faultVariable)
	contracttest.RunStore(t, func(t testing.TB) *contracttest.StoreBackend {
		b := newMemoryBench(t)
		return &contracttest.StoreBackend{
			Store:  &faulty{Store: b.store, fault: fault},
			Source: store.SourceLocalMemory, Clock: store.ClockServer, Now: b.now, SetTime: b.setTime, ExactExpiry: true, RaisesErrors: true,
			Neighbour: func(t testing.TB) store.Store {
				if fault == "prefix-ignored" {
					return b.store
				}
				return newMemoryStore(t)
			},
			TTL: func(t testing.TB, key string) (ttl int64) {
				b.at(t, key, func(tx *memory.Tx, key string) error { ttl = tx.PTTL(key); return nil })
				return ttl
			},
			PutHash: func(t testing.TB, key string) {
				b.at(t, key, func(tx *memory.Tx, key string) error { return tx.HashSet(key, "foreign", "1") })
			},
			PutText: func(t testing.TB, key, value string) {
				b.at(t, key, func(tx *memory.Tx, key string) error { return tx.SetStringKeepTTL(key, value) })
			},
		}
	})
}

// faulty is a store with one deliberate fault.
type faulty struct {
	store.Store
	fault string
}

func (f *faulty) deadline(ctx context.Context) context.Context {
	if f.fault == "deadline-ignored" || f.fault == "cancel-ignored" && ctx.Err() != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		time.AfterFunc(time.Minute, cancel)
		return ctx
	}
	return ctx
}

func (f *faulty) Get(ctx context.Context, key string) (string, error) {
	value, err := f.Store.Get(f.deadline(ctx), key)
	switch {
	case f.fault == "not-found-wrapped" && err != nil:
		return value, fmt.Errorf("get: %w", err)
	case f.fault == "not-found-is-empty" && err == store.ErrNotFound: //nolint:errorlint // It comes bare.
		return "", nil
	case f.fault == "cut-at-nul":
		value, _, _ = strings.Cut(value, "\x00")
	case f.fault == "key-in-error" && err != nil:
		return value, &store.Error{Op: "get " + key, Certainty: store.NotSent, Code: store.CodeInvalidArgument}
	}
	return value, err
}

func (f *faulty) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	switch f.fault {
	case "ttl-rounded":
		ttl = ttl.Truncate(time.Second) + time.Second
	case "ttl-cut":
		ttl = max(min(ttl, store.MaxTTL), time.Millisecond).Truncate(time.Millisecond)
	case "value-cut":
		value = value[:min(len(value), store.MaxTextBytes)]
	case "key-cut":
		key = key[:min(len(key), store.MaxKeyBytes)]
	case "set-keeps":
		_, err := f.SetNX(ctx, key, value, ttl)
		return err
	}
	return f.Store.Set(ctx, key, value, ttl)
}

func (f *faulty) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	switch f.fault {
	case "setnx-overwrites":
		return true, f.Store.Set(ctx, key, value, ttl)
	case "setnx-races":
		if _, err := f.Store.Get(ctx, key); err == nil {
			return false, nil
		}
		time.Sleep(time.Millisecond)
		return true, f.Store.Set(ctx, key, value, ttl)
	}
	return f.Store.SetNX(ctx, key, value, ttl)
}

func (f *faulty) GetSet(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	if f.fault == "getset-races" {
		before, err := f.Store.Get(ctx, key)
		time.Sleep(10 * time.Microsecond)
		if failed := f.Store.Set(ctx, key, value, ttl); failed != nil {
			return "", failed
		}
		return before, err
	}
	return f.Store.GetSet(ctx, key, value, ttl)
}

func (f *faulty) IncrBy(ctx context.Context, key string, delta int64, ttl time.Duration) (int64, error) {
	sum, err := f.Store.IncrBy(ctx, key, delta, ttl)
	switch {
	case f.fault == "incrby-renews" && err == nil:
		return sum, f.Store.Set(ctx, key, fmt.Sprint(sum), ttl)
	case f.fault == "incrby-saturates" && err != nil && delta > 0:
		return 1<<53 - 1, nil
	case f.fault == "incrby-lenient" && err != nil:
		return f.lenient(ctx, key, delta, ttl, err)
	case f.fault == "incrby-doubles" && sum > 1<<52:
		sum &^= 1
	case f.fault == "code-confused" && err != nil:
		return 0, &store.Error{Op: "incrby", Certainty: store.Refused, Code: store.CodeOutOfRange}
	}
	return sum, err
}

// lenient takes "+1" and " 1" for integers.
func (f *faulty) lenient(ctx context.Context, key string, delta int64, ttl time.Duration, failure error) (int64, error) {
	text, err := f.Store.Get(ctx, key)
	var n int64
	if _, scan := fmt.Sscanf(text, "%d", &n); err != nil || scan != nil {
		return 0, failure
	}
	return n + delta, f.Store.Set(ctx, key, fmt.Sprint(n+delta), ttl)
}

func (f *faulty) Del(ctx context.Context, keys ...string) (int64, error) {
	n, err := f.Store.Del(ctx, keys...)
	switch {
	case f.fault == "del-counts-all" && err == nil:
		return int64(len(keys)), nil
	case f.fault == "del-of-nothing" && len(keys) == 0:
		return 0, nil
	}
	return n, err
}

func (f *faulty) Eval(ctx context.Context, program *store.Program, keys []string, args []any) (store.Reply, error) {
	switch {
	case f.fault == "eval-loses" && program != nil && program.ID() == store.RateTokenBucketV1.ID():
		return f.Store.Eval(ctx, program, append([]string{fmt.Sprint(time.Now().UnixNano() / 1e6)}, keys[1:]...), args)
	case f.fault == "arguments-converted":
		converted := make([]any, len(args))
		for i, arg := range args {
			converted[i] = fmt.Sprint(arg)
		}
		args = converted
	}
	return f.Store.Eval(ctx, program, keys, args)
}

func (f *faulty) Ping(ctx context.Context) error { return f.Store.Ping(f.deadline(ctx)) }

func (f *faulty) Source() store.Source {
	if f.fault == "source" {
		return store.SourceGlobalRedis
	}
	return f.Store.Source()
}

func (f *faulty) Close() error {
	if f.fault == "close-ignored" {
		return nil
	}
	return f.Store.Close()
}

// TestStoreSuiteFindsFaults runs the subtest that is there for a fault, in a process of its own, over a
// store with that deliberate fault. It must fail.
func TestStoreSuiteFindsFaults(t *testing.T) {
	if os.Getenv(faultVariable) != "" {
		t.Fatal("a faulty process must run TestFaultyStore alone")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for fault, where := range map[string]string{
		"not-found-wrapped":   "SetReplaces",
		"not-found-is-empty":  "SetReplaces",
		"cut-at-nul":          "ValuesOfAnyBytes",
		"key-in-error":        "ErrorsHoldNoKey",
		"ttl-rounded":         "LifetimeOfEachMethod",
		"ttl-cut":             "TTLBounds",
		"value-cut":           "ValueBounds",
		"key-cut":             "KeyBounds",
		"set-keeps":           "SetReplaces",
		"setnx-overwrites":    "SetNX",
		"setnx-races":         "ConcurrentSetNX",
		"getset-races":        "ConcurrentGetSet",
		"incrby-renews":       "IncrByLifetime",
		"incrby-saturates":    "IncrByOutOfRange",
		"incrby-lenient":      "IncrByNotInteger",
		"incrby-doubles":      "IncrByEdges",
		"code-confused":       "IncrByNotInteger",
		"del-counts-all":      "DelCounts",
		"del-of-nothing":      "DelBounds",
		"eval-loses":          "ConcurrentEval",
		"arguments-converted": "EvalArguments",
		"deadline-ignored":    "NoDeadline",
		"cancel-ignored":      "EndedContexts",
		"source":              "SaysWhatItIs",
		"close-ignored":       "Closed",
		"prefix-ignored":      "PrefixesAreApart",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			command := exec.Command(self, "-test.run=^TestFaultyStore$/^"+where+"$", "-test.count=1")
			command.Env = append(os.Environ(), faultVariable+"="+fault)
			output, err := command.CombinedOutput()
			if err == nil {
				t.Fatalf("the suite passes a store with the fault %s", fault)
			}
			if strings.Contains(string(output), "panic: ") {
				t.Fatalf("the suite panics:\n%s", output)
			}
			if !strings.Contains(string(output), "--- FAIL: TestFaultyStore/"+where+" ") {
				t.Errorf("TestFaultyStore/%s does not notice the fault %s:\n%.2000s", where, fault, output)
			}
		})
	}
}
