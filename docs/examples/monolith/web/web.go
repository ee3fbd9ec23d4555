// Package web serves the routes that the other modules contribute. Its Limit stands between a route
// and the limiter.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/knadh/koanf/v2"
	"go.uber.org/fx"
)

// Module serves HTTP from start to stop.
var Module = fx.Module("web", fx.Provide(newServer), fx.Invoke(func(*Server) {}))

// Route is what a module contributes to the group "routes".
type Route struct {
	Pattern string // as http.ServeMux takes it
	Handler http.Handler
}

// Server is the application's listener.
type Server struct {
	server   *http.Server
	listener net.Listener
	address  string
	log      *slog.Logger
	done     chan struct{}
}

type params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    *koanf.Koanf
	Logger    *slog.Logger
	Routes    []Route `group:"routes"`
}

func newServer(p params) *Server {
	mux := http.NewServeMux()
	for _, r := range p.Routes {
		mux.Handle(r.Pattern, r.Handler)
	}
	s := &Server{
		server:  &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
		address: p.Config.String("http.address"), log: p.Logger, done: make(chan struct{}),
	}
	p.Lifecycle.Append(fx.Hook{OnStart: s.start, OnStop: s.stop})
	return s
}

func (s *Server) start(ctx context.Context) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	s.listener = l
	s.log.Info("serving", "address", l.Addr().String())
	go func() {
		defer close(s.done)
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serving ended", "error", err)
		}
	}()
	return nil
}

func (s *Server) stop(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	<-s.done
	return err
}

// Address is where the server listens after start.
func (s *Server) Address() string { return s.listener.Addr().String() }
