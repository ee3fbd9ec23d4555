package envoydoor

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/knadh/koanf/v2"
	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls"
	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// moduleName is what fx shows in its errors and events.
const moduleName = "edgelimit-envoy"

type dependencies struct {
	fx.In

	Lifecycle fx.Lifecycle
	Limiter   ratelimit.EdgeRateLimitPort
	Digester  *ratelimit.SubjectDigester
	Readiness composition.Readiness
	Logger    *slog.Logger `optional:"true"`
}

// Module provides a *Door and starts it with the application, or nothing at all where it is not enabled.
// It needs what composition.Module provides. The door starts after the limiter and stops before it.
func Module(cfg config.EnvoyRLS) fx.Option {
	if !cfg.Enabled {
		return fx.Options()
	}
	return fx.Module(moduleName,
		fx.Provide(func(d dependencies) (*Door, error) { return assemble(cfg, d) }),
		fx.Invoke(func(*Door) {}),
	)
}

// FromHost is Module of what stands at app.envoy-rls in the host application's own koanf. The host has
// composition.FromHost as well.
func FromHost(k *koanf.Koanf) fx.Option {
	_, cfg, err := config.EnvoyRLSFromKoanf(k)
	if err != nil {
		return fx.Error(err)
	}
	return Module(cfg)
}

func assemble(cfg config.EnvoyRLS, d dependencies) (*Door, error) {
	ports, ok := d.Limiter.(envoyrls.Ports)
	if !ok {
		return nil, fmt.Errorf("envoydoor: the limiter of type %T gives no ports of other policies", d.Limiter)
	}
	logger := d.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	door, err := New(cfg, Parts{Ports: ports, Digester: d.Digester, Ready: d.Readiness.Ready, Logger: logger})
	if err != nil {
		return nil, err
	}
	d.Lifecycle.Append(fx.Hook{
		OnStart: func(ctx context.Context) error { return door.Start(ctx) },
		OnStop:  func(ctx context.Context) error { return door.Stop(ctx) },
	})
	return door, nil
}
