package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

// The bounds that protect the server from slow callers. They are not configurable: a request of this
// API is a few hundred bytes.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeAllowance    = 10 * time.Second // beyond the greatest deadline
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// Server serves a handler.
type Server struct {
	config   config.Service
	server   *http.Server
	logger   *slog.Logger
	address  atomic.Pointer[net.TCPAddr]
	stopping atomic.Bool
	failed   chan error
}

// NewServer makes a server that does not listen yet. It refuses an address that is not loopback
// without TLS, unless the configuration says that something in front provides it.
func NewServer(cfg config.Service, handler http.Handler, logger *slog.Logger) (*Server, error) {
	if handler == nil || logger == nil {
		return nil, errors.New("service: the handler or the logger is missing")
	}
	if cfg.HTTPAddress == "" || cfg.MaxDeadline <= 0 || cfg.ShutdownTimeout <= 0 {
		return nil, errors.New("service: the configuration is not one that package config made")
	}
	if cfg.TLS == nil && !cfg.AllowPlaintext && !loopback(cfg.HTTPAddress) {
		return nil, fmt.Errorf("service: %s is not loopback and there is no TLS", cfg.HTTPAddress)
	}
	return &Server{
		config: cfg,
		logger: logger,
		failed: make(chan error, 1),
		server: &http.Server{
			Handler:           handler,
			TLSConfig:         cfg.TLS.Clone(),
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      readTimeout + cfg.MaxDeadline + writeAllowance,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          errorLog(logger),
		},
	}, nil
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// Start listens and serves in the background.
func (s *Server) Start(ctx context.Context) error {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", s.config.HTTPAddress)
	if err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		s.address.Store(address)
	}
	s.logger.InfoContext(ctx, "listening", slog.String("address", listener.Addr().String()), slog.Bool("tls", s.config.TLS != nil))
	go s.serve(listener)
	return nil
}

func (s *Server) serve(listener net.Listener) {
	var err error
	if s.config.TLS != nil {
		err = s.server.ServeTLS(listener, "", "")
	} else {
		err = s.server.Serve(listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		s.failed <- fmt.Errorf("service: %w", err)
	}
	close(s.failed)
}

// Failed gives the error with which serving ended by itself, and is closed when it has ended.
func (s *Server) Failed() <-chan error { return s.failed }

// Address is where the server listens, nil before Start.
func (s *Server) Address() *net.TCPAddr { return s.address.Load() }

// Stopping reports whether Stop was called.
func (s *Server) Stopping() bool { return s.stopping.Load() }

// Stop lets requests in flight end.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.logger.InfoContext(ctx, "stopping", slog.Duration("timeout", s.config.ShutdownTimeout))
	ctx, cancel := context.WithTimeout(ctx, s.config.ShutdownTimeout)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("service: requests were still in flight at the end of the shutdown timeout: %w", err), s.server.Close())
	}
	s.logger.InfoContext(ctx, "stopped")
	return nil
}
