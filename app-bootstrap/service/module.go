package service

import (
	"context"
	"errors"
	"log/slog"

	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpapi"
	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// errStopping is what /readyz says while the service stops.
var errStopping = errors.New("the service is stopping")

type dependencies struct {
	fx.In

	Lifecycle fx.Lifecycle
	Limiter   ratelimit.EdgeRateLimitPort
	Policies  *ratelimit.PolicySet
	Digester  *ratelimit.SubjectDigester
	Readiness composition.Readiness
	Logger    *slog.Logger
}

// Module provides a *Server and starts it with the application. It needs what composition.Module
// provides and a *slog.Logger. The server starts after the limiter and stops before it.
func Module(cfg config.Service, defaultPolicy ratelimit.PolicyID) fx.Option {
	return fx.Module("service",
		fx.Provide(func(d dependencies) (*Server, error) { return assemble(cfg, defaultPolicy, d) }),
		fx.Invoke(func(*Server) {}),
	)
}

func assemble(cfg config.Service, defaultPolicy ratelimit.PolicyID, d dependencies) (*Server, error) {
	var server *Server
	handler, err := httpapi.New(httpapi.Config{
		Limiter:       d.Limiter,
		Policies:      d.Policies,
		DefaultPolicy: defaultPolicy,
		Digester:      d.Digester,
		Ready: func() error {
			if server.Stopping() {
				return errStopping
			}
			return d.Readiness.Ready()
		},
		Logger:          d.Logger,
		MaxBodyBytes:    cfg.MaxBodyBytes,
		DefaultDeadline: cfg.DefaultDeadline,
		MaxDeadline:     cfg.MaxDeadline,
	})
	if err != nil {
		return nil, err
	}
	if handler, err = withForwardAuth(cfg, d, handler); err != nil {
		return nil, err
	}
	if server, err = NewServer(cfg, handler, d.Logger); err != nil {
		return nil, err
	}
	d.Lifecycle.Append(fx.Hook{
		OnStart: func(ctx context.Context) error { return server.Start(ctx) },
		OnStop:  func(ctx context.Context) error { return server.Stop(ctx) },
	})
	return server, nil
}
