package composition

import (
	"context"
	"log/slog"

	"github.com/knadh/koanf/v2"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// moduleName is what fx shows in its errors and events.
const moduleName = "edgelimit"

// Module provides the limiter of a configuration, or nothing at all where it is not enabled.
func Module(cfg config.RateLimit) fx.Option {
	if !cfg.Enabled {
		return fx.Options()
	}
	return fx.Module(moduleName,
		fx.Supply(cfg, fx.Private),
		fx.Provide(newFromGraph, fx.Private),
		fx.Provide(provide),
	)
}

// FromHost is Module of what stands at app.rate-limit in the host application's own koanf; nothing
// else of it is read. A configuration that is wrong becomes the error of the application, before
// anything is made.
func FromHost(k *koanf.Koanf) fx.Option {
	cfg, err := config.RateLimitFromKoanf(k)
	if err != nil {
		return fx.Error(err)
	}
	return Module(cfg)
}

// host is what the module takes from its host's graph.
type host struct {
	fx.In

	Lifecycle      fx.Lifecycle
	Config         config.RateLimit
	Logger         *slog.Logger         `optional:"true"`
	MeterProvider  metric.MeterProvider `optional:"true"`
	TracerProvider trace.TracerProvider `optional:"true"`
}

func newFromGraph(h host) (*Limiter, error) {
	l, err := build(h.Config, Telemetry{Logger: h.Logger, MeterProvider: h.MeterProvider, TracerProvider: h.TracerProvider})
	if err != nil {
		return nil, err
	}
	h.Lifecycle.Append(fx.Hook{
		OnStart: func(context.Context) error {
			l.start()
			return nil
		},
		OnStop: l.Close,
	})
	return l, nil
}

// provided is what the module gives to its host's graph.
type provided struct {
	fx.Out

	Port      ratelimit.EdgeRateLimitPort
	Policies  *ratelimit.PolicySet
	Digester  *ratelimit.SubjectDigester
	Readiness Readiness
}

func provide(l *Limiter) provided {
	return provided{Port: l, Policies: l.policies, Digester: l.digester, Readiness: l}
}
