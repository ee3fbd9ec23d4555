package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

//go:embed config.yaml
var settings []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "127.0.0.1:8090"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, address string) error {
	k := koanf.New(".")
	if err := k.Load(rawbytes.Provider(settings), yaml.Parser()); err != nil {
		return err
	}
	cfg, err := config.RateLimitFromKoanf(k)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	limiter, err := composition.NewLimiter(ctx, cfg, composition.Telemetry{Logger: logger})
	if err != nil {
		return err
	}
	handler, err := routes(limiter, logger)
	if err != nil {
		return errors.Join(err, limiter.Close(ctx))
	}
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(ending), limiter.Close(ending))
}

// routes puts a limit in front of each route.
func routes(limiter *composition.Limiter, logger *slog.Logger) (http.Handler, error) {
	// Nobody is believed about a client's address. Behind a proxy this would be its network:
	// httpedge.ParseTrustedProxies([]string{"10.0.0.0/8"}).
	address, err := httpedge.ClientAddress(httpedge.AddressConfig{Header: httpedge.AddressHeaderForwardedFor, IPv6Prefix: 64})
	if err != nil {
		return nil, err
	}
	key, err := httpedge.APIKey("X-API-Key")
	if err != nil {
		return nil, err
	}
	door := httpedge.Config{
		Limiter:  limiter,
		Policies: limiter.Policies(),
		Digester: limiter.Digester(),
		Deadline: 200 * time.Millisecond,
		Headers:  httpedge.DefaultHeaders(),
		Mode:     httpedge.ModeEnforce,
	}
	// Each door is the usual one with what it changes.
	login := door
	login.Policy, login.Subject = httpedge.OnePolicy("login"), address

	api := door
	api.Policy, api.Subject = httpedge.OnePolicy("api"), httpedge.FirstOf(key, address)
	api.Cost = func(r *http.Request) int64 { // /api/items?count=5 costs 5
		count, err := strconv.ParseInt(r.URL.Query().Get("count"), 10, 64)
		if err != nil {
			return 1
		}
		return count
	}

	search := door
	search.Policy, search.Subject, search.Mode = httpedge.OnePolicy("search"), address, httpedge.ModeShadow
	search.Observe = func(_ *http.Request, report httpedge.Report) {
		if report.Verdict != httpedge.VerdictAllow {
			logger.Info("search would have been limited", "verdict", report.Verdict.String())
		}
	}

	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern string
		door    httpedge.Config
		handler http.HandlerFunc
	}{
		{"POST /login", login, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "welcome") }},
		{"GET /api/items", api, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "items") }},
		{"GET /search", search, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "found") }},
	} {
		limit, err := httpedge.NewMiddleware(route.door)
		if err != nil {
			return nil, err
		}
		mux.Handle(route.pattern, limit(route.handler))
	}
	return mux, nil
}
