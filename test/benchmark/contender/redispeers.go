package contender

import (
	"context"
	"errors"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

// RedisRate is github.com/go-redis/redis_rate.
func RedisRate() Contender {
	return Contender{
		Name: RedisRateName, Module: "github.com/go-redis/redis_rate/v10", Role: Peer, Algorithm: "GCRA",
		Note: "one program; floating-point state",
		Open: func(_ context.Context, setting Setting) (Decider, error) {
			limit, period := limits(setting)
			client := newClient(setting)
			return &redisRate{
				client: client, limiter: redis_rate.NewLimiter(client),
				limit: redis_rate.Limit{Rate: limit, Burst: limit, Period: period},
				keys:  keyNames(setting, "redisrate"),
			}, nil
		},
	}
}

type redisRate struct {
	client  *redis.Client
	limiter *redis_rate.Limiter
	limit   redis_rate.Limit
	keys    []string
}

func (d *redisRate) Decide(ctx context.Context, key int) (bool, error) {
	result, err := d.limiter.Allow(ctx, d.keys[key], d.limit)
	if err != nil {
		return false, err
	}
	return result.Allowed > 0, nil
}

func (d *redisRate) Close() error { return d.client.Close() }

const throttledModule = "github.com/throttled/throttled/v2"

// Throttled is github.com/throttled/throttled over Redis.
func Throttled() Contender {
	return Contender{
		Name: "throttled", Module: throttledModule, Role: Peer, Algorithm: "GCRA",
		Note: "reads with the time, then swaps by a program: two round trips for an allowance, one for a denial",
		Open: func(_ context.Context, setting Setting) (Decider, error) {
			client := newClient(setting)
			state, err := throttledredis.NewCtx(client, "")
			if err != nil {
				return nil, errors.Join(err, client.Close())
			}
			limit, period := limits(setting)
			limiter, err := throttled.NewGCRARateLimiterCtx(state, throttled.RateQuota{
				MaxRate: throttled.PerDuration(limit, period), MaxBurst: limit - 1,
			})
			if err != nil {
				return nil, errors.Join(err, client.Close())
			}
			return &throttledRedis{throttledLimiter{limiter, keyNames(setting, "throttled")}, client}, nil
		},
	}
}

// throttledLimiter decides over whatever store it was made with.
type throttledLimiter struct {
	limiter *throttled.GCRARateLimiterCtx
	keys    []string
}

func (d *throttledLimiter) Decide(ctx context.Context, key int) (bool, error) {
	limited, _, err := d.limiter.RateLimitCtx(ctx, d.keys[key], 1)
	return !limited && err == nil, err
}

type throttledRedis struct {
	throttledLimiter
	client *redis.Client
}

func (d *throttledRedis) Close() error { return d.client.Close() }

const ululeModule = "github.com/ulule/limiter/v3"

// Ulule is github.com/ulule/limiter over Redis.
func Ulule() Contender {
	return Contender{
		Name: "ulule/limiter", Module: ululeModule, Role: Peer, Algorithm: "fixed window",
		Note: "one program; writes on a denial too",
		Open: func(_ context.Context, setting Setting) (Decider, error) {
			client := newClient(setting)
			state, err := ululeredis.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: "bench"})
			if err != nil {
				return nil, errors.Join(err, client.Close())
			}
			limit, period := limits(setting)
			return &ululeRedis{ululeLimiter{
				limiter.New(state, limiter.Rate{Limit: int64(limit), Period: period}), keyNames(setting, "ulule"),
			}, client}, nil
		},
	}
}

// ululeLimiter decides over whatever store it was made with.
type ululeLimiter struct {
	limiter *limiter.Limiter
	keys    []string
}

func (d *ululeLimiter) Decide(ctx context.Context, key int) (bool, error) {
	result, err := d.limiter.Get(ctx, d.keys[key])
	return !result.Reached && err == nil, err
}

type ululeRedis struct {
	ululeLimiter
	client *redis.Client
}

func (d *ululeRedis) Close() error { return d.client.Close() }
