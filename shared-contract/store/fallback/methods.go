package fallback

import (
	"context"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Get gives a key's value; see store.Store.
func (s *Store) Get(ctx context.Context, key string) (string, error) {
	return serve(ctx, s, func(ctx context.Context, of store.Store) (string, error) { return of.Get(ctx, key) })
}

// Set stores a value; see store.Store.
func (s *Store) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	_, err := serve(ctx, s, func(ctx context.Context, of store.Store) (struct{}, error) {
		return struct{}{}, of.Set(ctx, key, value, ttl)
	})
	return err
}

// SetNX stores a value where there is none; see store.Store.
func (s *Store) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	return serve(ctx, s, func(ctx context.Context, of store.Store) (bool, error) { return of.SetNX(ctx, key, value, ttl) })
}

// GetSet stores a value and gives the one before; see store.Store.
func (s *Store) GetSet(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	return serve(ctx, s, func(ctx context.Context, of store.Store) (string, error) { return of.GetSet(ctx, key, value, ttl) })
}

// IncrBy adds to an integer; see store.Store.
func (s *Store) IncrBy(ctx context.Context, key string, delta int64, ttl time.Duration) (int64, error) {
	return serve(ctx, s, func(ctx context.Context, of store.Store) (int64, error) { return of.IncrBy(ctx, key, delta, ttl) })
}

// Del removes keys; see store.Store.
func (s *Store) Del(ctx context.Context, keys ...string) (int64, error) {
	return serve(ctx, s, func(ctx context.Context, of store.Store) (int64, error) { return of.Del(ctx, keys...) })
}

// Eval runs a program; see store.Store.
func (s *Store) Eval(ctx context.Context, program *store.Program, keys []string, args []any) (store.Reply, error) {
	return serve(ctx, s, func(ctx context.Context, of store.Store) (store.Reply, error) {
		return of.Eval(ctx, program, keys, args)
	})
}

// Ping asks whether the store that serves answers; see store.Store.
func (s *Store) Ping(ctx context.Context) error {
	_, err := serve(ctx, s, func(ctx context.Context, of store.Store) (struct{}, error) { return struct{}{}, of.Ping(ctx) })
	return err
}
