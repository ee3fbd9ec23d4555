package caching

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/knadh/koanf/v2"
	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/internal/connect"
	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/cache/failopen"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// moduleName is what fx shows in its errors and events.
const moduleName = "edgelimit-cache"

// Module provides the cache of a configuration, or nothing at all where it is not enabled.
func Module(cfg config.CacheRedis) fx.Option {
	if !cfg.Enabled {
		return fx.Options()
	}
	return fx.Module(moduleName,
		fx.Supply(cfg, fx.Private),
		fx.Provide(provide),
	)
}

// FromHost is Module of what stands at app.cache.redis in the host application's own koanf; nothing
// else of it is read.
func FromHost(k *koanf.Koanf) fx.Option {
	cfg, err := config.CacheFromKoanf(k)
	if err != nil {
		return fx.Error(err)
	}
	return Module(cfg)
}

// host is what the module takes from its host's graph.
type host struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    config.CacheRedis
	Logger    *slog.Logger `optional:"true"`
}

func provide(h host) (cache.CachePort, error) {
	port, connection, err := build(h.Config, h.Logger)
	if err != nil {
		return nil, err
	}
	h.Lifecycle.Append(fx.Hook{
		OnStart: func(context.Context) error {
			connection.Start()
			return nil
		},
		OnStop: func(context.Context) error { return connection.Close() },
	})
	return port, nil
}

// build makes a cache and the connection under it, which is not started.
func build(cfg config.CacheRedis, log *slog.Logger) (cache.CachePort, *cacheredis.Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	connection, err := cacheredis.NewStore(connect.StoreConfig(cfg.Redis, cfg.Key, store.CachePrograms(), log.With("connection", "cache")))
	if err != nil {
		return nil, nil, fmt.Errorf("caching: %w", err)
	}
	plain, err := cacheredis.NewCache(connection, cacheredis.CacheConfig{
		Name:      cfg.Name,
		Namespace: cfg.Key.Namespace,
		Secret:    cfg.Key.Secret.Reveal(),
		Limits:    cache.Limits{DefaultTTL: cfg.DefaultTTL, MaxValueBytes: cfg.MaxValueBytes},
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("caching: %w", err), connection.Close())
	}
	if !cfg.FailOpen {
		return plain, connection, nil
	}
	open, err := failopen.New(plain, newFailureLog(log, time.Now).note)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("caching: %w", err), connection.Close())
	}
	return open, connection, nil
}
