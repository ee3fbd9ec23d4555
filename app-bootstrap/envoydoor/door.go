package envoydoor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls"
	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// The bounds that protect the server from slow callers. They are not configurable: a call of this
// protocol has few and short headers.
const (
	handshakeTimeout = 10 * time.Second
	maxHeaderBytes   = 16 << 10
)

// readyInterval is the time between two looks at whether the limiter can decide.
const readyInterval = 500 * time.Millisecond

// maxLoggedNotes bounds the notes of one set of rules that the log gets; policy import shows all.
const maxLoggedNotes = 20

// Parts are what a door is put together with.
type Parts struct {
	// Ports gives ports over the limiter's provider.
	Ports    envoyrls.Ports
	Digester *ratelimit.SubjectDigester
	// Ready is nil when the limiter can decide; health is SERVING then alone.
	Ready  func() error
	Logger *slog.Logger
}

// Door is the gRPC server.
type Door struct {
	config       config.EnvoyRLS
	parts        Parts
	service      *envoyrls.Service
	certificates *certificates // nil without TLS
	server       *grpc.Server
	health       *health.Server
	watcher      *watcher

	address atomic.Pointer[net.TCPAddr]
	failed  chan error

	// Of reloading.
	reloading sync.Mutex
	tried     [sha256.Size]byte // sum of the rules that were tried last
	outcome   error             // of that try
	told      map[string]string // what the log knows of each problem
	problem   atomic.Pointer[error]

	stopping   context.Context
	stop       context.CancelFunc
	background sync.WaitGroup
}

// New reads rules and certificates and makes a door that does not listen yet. It refuses an address that
// is not loopback without TLS, unless the configuration says that something in front provides it.
func New(cfg config.EnvoyRLS, parts Parts) (*Door, error) {
	if parts.Ports == nil || parts.Digester == nil || parts.Ready == nil || parts.Logger == nil {
		return nil, errors.New("envoydoor: ports, digester, readiness or logger are missing")
	}
	if !cfg.Enabled || cfg.Address == "" || cfg.MaxMessageBytes <= 0 || cfg.Rescan <= 0 || cfg.ShutdownTimeout <= 0 {
		return nil, errors.New("envoydoor: the configuration is not one that package config made")
	}
	if cfg.TLSCert == "" && !cfg.AllowPlaintext && !loopback(cfg.Address) {
		return nil, fmt.Errorf("envoydoor: %s is not loopback and there is no TLS", cfg.Address)
	}
	loaded, directory, err := Import(cfg.RulesDir, optionsOf(cfg))
	if err != nil {
		return nil, err
	}
	d := &Door{config: cfg, parts: parts, tried: sum(directory.Files), told: make(map[string]string), failed: make(chan error, 1), health: health.NewServer()}
	if d.certificates, err = newCertificates(cfg); err != nil {
		return nil, err
	}
	if d.service, err = envoyrls.New(serviceConfig(cfg, parts, loaded)); err != nil {
		return nil, err
	}
	d.stopping, d.stop = context.WithCancel(context.Background())
	d.server = d.newServer()
	d.tell(loaded, directory)
	return d, nil
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

func optionsOf(cfg config.EnvoyRLS) Options {
	return Options{MergeDomains: cfg.MergeDomains, CleanupGrace: cfg.CleanupGrace, MaxClockRegression: cfg.MaxClockRegression}
}

func serviceConfig(cfg config.EnvoyRLS, parts Parts, loaded *rules.Rules) envoyrls.Config {
	c := envoyrls.Config{
		Rules: loaded, Ports: parts.Ports, Digester: parts.Digester, Enforce: envoyrls.Enforce,
		DefaultDeadline: cfg.DefaultDeadline, MaxDescriptors: cfg.MaxDescriptors,
		Headers: envoyrls.Headers{
			Limit: cfg.Headers.Limit, Remaining: cfg.Headers.Remaining, Reset: cfg.Headers.Reset, RetryAfter: cfg.Headers.RetryAfter,
		},
		DynamicMetadata: cfg.DynamicMetadata, CleanupGrace: cfg.CleanupGrace, MaxClockRegression: cfg.MaxClockRegression,
		Logger: parts.Logger,
	}
	if cfg.Shadow {
		c.Enforce = envoyrls.Shadow
	}
	switch cfg.Failure {
	case config.EnvoyFailureError:
		c.Failure = envoyrls.FailureError
	case config.EnvoyFailureDeny:
		c.Failure = envoyrls.FailureDeny
	case config.EnvoyFailureInvalid:
	}
	return c
}

func (d *Door) newServer() *grpc.Server {
	k := d.config.Keepalive
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(d.config.MaxMessageBytes),
		grpc.MaxConcurrentStreams(d.config.MaxConcurrentStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: k.Time, Timeout: k.Timeout, MaxConnectionAge: k.MaxConnectionAge, MaxConnectionAgeGrace: k.MaxConnectionAgeGrace,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: k.MinTime, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(recovering(d.parts.Logger)),
		grpc.StreamInterceptor(ending(d.stopping)),
	}
	if d.certificates != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(d.certificates.server())))
	}
	server := grpc.NewServer(options...)
	ratelimitv3.RegisterRateLimitServiceServer(server, d.service)
	grpc_health_v1.RegisterHealthServer(server, d.health)
	if d.config.Reflection {
		reflection.Register(server)
	}
	return server
}

// Start listens and serves in the background.
func (d *Door) Start(ctx context.Context) error {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", d.config.Address)
	if err != nil {
		return fmt.Errorf("envoydoor: %w", err)
	}
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		d.address.Store(address)
	}
	d.parts.Logger.InfoContext(ctx, "envoy door open", slog.String("address", listener.Addr().String()),
		slog.Bool("tls", d.certificates != nil), slog.Bool("mtls", d.config.TLSClientCA != ""))
	d.setHealth()
	d.watcher = newWatcher(d.config.RulesDir, d.certificates.files(), d.config.Rescan, d.parts.Logger)
	d.background.Go(func() { d.watcher.run(d.stopping, d.Reload) })
	d.background.Go(d.keepHealth)
	d.background.Go(func() {
		// After GracefulStop and Stop, Serve gives nil.
		if err := d.server.Serve(listener); err != nil && d.stopping.Err() == nil {
			d.failed <- fmt.Errorf("envoydoor: %w", err)
		}
		close(d.failed)
	})
	return nil
}

// Failed gives the error with which serving ended by itself, and is closed when it has ended.
func (d *Door) Failed() <-chan error { return d.failed }

// Address is where the door listens, nil before Start.
func (d *Door) Address() *net.TCPAddr { return d.address.Load() }

// Problem is what was wrong when rules and certificates were last read, nil where nothing was. What was
// good before it is still in use.
func (d *Door) Problem() error {
	if p := d.problem.Load(); p != nil {
		return *p
	}
	return nil
}

// Stopping reports whether Stop was called.
func (d *Door) Stopping() bool { return d.stopping.Err() != nil }

// Stop lets calls in flight end.
func (d *Door) Stop(ctx context.Context) error {
	d.parts.Logger.InfoContext(ctx, "envoy door closing", slog.Duration("timeout", d.config.ShutdownTimeout))
	d.health.Shutdown() // NOT_SERVING, and no SERVING after it
	d.stop()
	ctx, cancel := context.WithTimeout(ctx, d.config.ShutdownTimeout)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		d.server.GracefulStop()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		d.server.Stop() // which ends GracefulStop as well
		<-ended
		err = fmt.Errorf("envoydoor: calls were still in flight at the end of the shutdown timeout: %w", ctx.Err())
	}
	d.background.Wait()
	if err == nil {
		d.parts.Logger.InfoContext(ctx, "envoy door closed")
	}
	return err
}

// keepHealth follows the limiter's readiness until the door stops.
func (d *Door) keepHealth() {
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		select {
		case <-d.stopping.Done():
			return
		case <-tick.C:
			d.setHealth()
		}
	}
}

func (d *Door) setHealth() {
	status := grpc_health_v1.HealthCheckResponse_SERVING
	if d.parts.Ready() != nil {
		status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	for _, service := range []string{"", ratelimitv3.RateLimitService_ServiceDesc.ServiceName} {
		d.health.SetServingStatus(service, status)
	}
}
