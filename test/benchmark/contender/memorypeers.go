package contender

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	golimiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledmemory "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

// Clock is the reference in memory: what decides must know the time.
func Clock() Contender {
	return Contender{
		Name: ClockName, Module: "std", Role: Reference, Algorithm: "time.Now, and no decision", Fixed: true,
		Note: "what decides must read it once",
		Open: func(context.Context, Setting) (Decider, error) { return &clock{}, nil },
	}
}

type clock struct{ noClose }

func (*clock) Decide(context.Context, int) (bool, error) { return !time.Now().IsZero(), nil }

// errMissing cannot come up: every key was put in place beforehand.
var errMissing = errors.New("contender: a key without a limiter")

// XTime is golang.org/x/time/rate.
func XTime() Contender {
	return Contender{
		Name: "x/time/rate", Module: "golang.org/x/time", Role: Peer, Algorithm: "token bucket",
		Note: "one limiter for each key, in a sync.Map; never reclaimed",
		Open: func(_ context.Context, setting Setting) (Decider, error) {
			d := &xTime{names: keyNames(setting, "xtime")}
			for _, name := range d.names {
				d.limiters.Store(name, rate.NewLimiter(rate.Limit(MemoryLimit/MemoryPeriod.Seconds()), MemoryLimit))
			}
			return d, nil
		},
	}
}

type xTime struct {
	noClose
	names    []string
	limiters sync.Map
}

func (d *xTime) Decide(_ context.Context, key int) (bool, error) {
	value, _ := d.limiters.Load(d.names[key])
	limiter, ok := value.(*rate.Limiter)
	if !ok {
		return false, errMissing
	}
	return limiter.Allow(), nil
}

// Failsafe is github.com/failsafe-go/failsafe-go.
func Failsafe() Contender {
	return Contender{
		Name: "failsafe-go", Module: "github.com/failsafe-go/failsafe-go", Role: Peer, Algorithm: "bursty (a window of permits)",
		Note: "one limiter for each key, in a sync.Map; never reclaimed",
		Open: func(_ context.Context, setting Setting) (Decider, error) {
			d := &failsafe{names: keyNames(setting, "failsafe")}
			for _, name := range d.names {
				d.limiters.Store(name, ratelimiter.NewBurstyBuilder[any](MemoryLimit, MemoryPeriod).Build())
			}
			return d, nil
		},
	}
}

type failsafe struct {
	noClose
	names    []string
	limiters sync.Map
}

func (d *failsafe) Decide(_ context.Context, key int) (bool, error) {
	value, _ := d.limiters.Load(d.names[key])
	limiter, ok := value.(ratelimiter.RateLimiter[any])
	if !ok {
		return false, errMissing
	}
	return limiter.TryAcquirePermit(), nil
}

// GoLimiter is github.com/sethvargo/go-limiter.
func GoLimiter() Contender {
	return Contender{
		Name: "sethvargo/go-limiter", Module: "github.com/sethvargo/go-limiter", Role: Peer, Algorithm: "token bucket that refills at once each interval",
		Note: "room for all keys from the start",
		Open: func(_ context.Context, setting Setting) (Decider, error) {
			store, err := memorystore.New(&memorystore.Config{Tokens: MemoryLimit, Interval: MemoryPeriod, InitialAlloc: setting.Keys})
			if err != nil {
				return nil, err
			}
			return &goLimiter{store, keyNames(setting, "golimiter")}, nil
		},
	}
}

type goLimiter struct {
	store golimiter.Store
	names []string
}

func (d *goLimiter) Decide(ctx context.Context, key int) (bool, error) {
	_, _, _, ok, err := d.store.Take(ctx, d.names[key])
	return ok, err
}

func (d *goLimiter) Close() error { return d.store.Close(context.Background()) }

// ThrottledMemory is github.com/throttled/throttled in memory.
func ThrottledMemory() Contender {
	return Contender{
		Name: "throttled", Module: throttledModule, Role: Peer, Algorithm: "GCRA",
		Note: "its unlimited store: no key is reclaimed",
		Open: func(_ context.Context, setting Setting) (Decider, error) {
			state, err := throttledmemory.NewCtx(0)
			if err != nil {
				return nil, err
			}
			limiter, err := throttled.NewGCRARateLimiterCtx(state, throttled.RateQuota{
				MaxRate: throttled.PerDuration(MemoryLimit, MemoryPeriod), MaxBurst: MemoryLimit - 1,
			})
			if err != nil {
				return nil, err
			}
			return &throttledInMemory{throttledLimiter: throttledLimiter{limiter, keyNames(setting, "throttled")}}, nil
		},
	}
}

type throttledInMemory struct {
	noClose
	throttledLimiter
}

// UluleMemory is github.com/ulule/limiter in memory.
func UluleMemory() Contender {
	return Contender{
		Name: "ulule/limiter", Module: ululeModule, Role: Peer, Algorithm: "fixed window",
		Note: "its default cleaner",
		Open: func(_ context.Context, setting Setting) (Decider, error) {
			state := ululememory.NewStore()
			return &ululeInMemory{ululeLimiter: ululeLimiter{
				limiter.New(state, limiter.Rate{Limit: MemoryLimit, Period: MemoryPeriod}), keyNames(setting, "ulule"),
			}}, nil
		},
	}
}

type ululeInMemory struct {
	noClose
	ululeLimiter
}
