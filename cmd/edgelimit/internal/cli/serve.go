package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
	"github.com/edgelimit/edgelimit/app-bootstrap/service"
)

const (
	startTimeout = 15 * time.Second
	// stopAllowance is what closing the limiter may take after the last request has ended.
	stopAllowance = 5 * time.Second
)

func (t *terminal) serve() *cobra.Command {
	command := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Serve the JSON API until SIGTERM or SIGINT",
		Long: `Serve the JSON API (docs/http-api.md) until SIGTERM or SIGINT. Requests in flight then end, within
app.service.shutdown-timeout. The log goes to the standard error stream. With app.envoy-rls, Envoy is
answered as well (docs/envoy.md).

Another address than loopback needs --tls-cert and --tls-key, or --allow-plaintext where something in
front provides TLS.`,
		Args: usageArgs(cobra.NoArgs),
	}
	file := configFlag(command)
	flags := command.Flags()
	flags.String("http-address", "", "HOST:PORT to listen on, instead of "+keyAddress+" (default 127.0.0.1:8080); port 0 takes a free one")
	flags.String("tls-cert", "", "PEM certificate, instead of "+keyTLSCert)
	flags.String("tls-key", "", "PEM private key, instead of "+keyTLSKey)
	flags.Bool("allow-plaintext", false, "listen without TLS on another address than loopback, instead of "+keyPlain)
	command.RunE = func(command *cobra.Command, _ []string) error {
		cfg, err := t.load(command, *file, map[string]string{
			"http-address": keyAddress, "tls-cert": keyTLSCert, "tls-key": keyTLSKey, "allow-plaintext": keyPlain,
		})
		if err != nil {
			return err
		}
		return t.runService(command.Context(), cfg)
	}
	return command
}

func (t *terminal) logger(cfg config.Service) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == config.LogFormatJSON {
		return slog.New(slog.NewJSONHandler(t.stderr, options))
	}
	return slog.New(slog.NewTextHandler(t.stderr, options))
}

// runService serves until the context ends or serving fails.
func (t *terminal) runService(ctx context.Context, cfg config.Config) error {
	if err := envoydoor.Judge(cfg.EnvoyRLS); err != nil {
		return usage(err) // before fx, which would wrap it in the whole graph
	}
	logger := t.logger(cfg.Service)
	stopTimeout := cfg.Service.ShutdownTimeout + cfg.EnvoyRLS.ShutdownTimeout + stopAllowance
	var server *service.Server
	var door *envoydoor.Door
	populateDoor := fx.Options()
	if cfg.EnvoyRLS.Enabled {
		populateDoor = fx.Populate(&door)
	}
	app := fx.New(
		fx.Supply(logger),
		fx.WithLogger(func() fxevent.Logger { return quietEvents(logger) }),
		fx.StartTimeout(startTimeout),
		fx.StopTimeout(stopTimeout),
		composition.Module(cfg.RateLimit),
		service.Module(cfg.Service, cfg.RateLimit.DefaultPolicy),
		envoydoor.Module(cfg.EnvoyRLS),
		fx.Populate(&server),
		populateDoor,
	)
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := app.Start(starting); err != nil {
		return err
	}
	var failure error
	var doorFailed <-chan error // never, where there is no door
	if door != nil {
		doorFailed = door.Failed()
	}
	select {
	case <-ctx.Done():
	case failure = <-server.Failed():
	case failure = <-doorFailed:
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(failure, app.Stop(stopping))
}

// quietEvents writes what fx does at the debug level: it is of interest to nobody who runs the
// service. What fails comes back as an error anyway.
func quietEvents(logger *slog.Logger) fxevent.Logger {
	events := &fxevent.SlogLogger{Logger: logger}
	events.UseLogLevel(slog.LevelDebug)
	events.UseErrorLevel(slog.LevelDebug)
	return events
}
