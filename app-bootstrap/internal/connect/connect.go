// Package connect turns the settings of a connection to a Redis into what the adapter takes. The limiter,
// the circuit breaker and the cache each have such a connection of their own; what they share is this
// mapping and nothing else.
//
// It connects to nothing and judges nothing: package config did. Its function is safe for concurrent use.
package connect

import (
	"log/slog"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// StoreConfig is the connection that settings describe, for a user of these programs. log may be nil.
func StoreConfig(redis config.Redis, key config.Key, programs []*store.Program, log *slog.Logger) cacheredis.StoreConfig {
	return cacheredis.StoreConfig{
		Address:        redis.Address,
		Username:       redis.Username,
		Password:       string(redis.Password.Reveal()),
		Database:       redis.Database,
		TLS:            redis.TLS,
		CommandTimeout: redis.CommandTimeout,
		PoolSize:       redis.PoolSize,
		Coalesce:       redis.Coalesce,
		Namespace:      key.Namespace,
		Programs:       programs,
		Logger:         log,
	}
}
