package cacheredis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Bounds of StoreConfig.
const (
	MinCommandTimeout = time.Millisecond
	MaxCommandTimeout = 10 * time.Second
	MaxPoolSize       = 4096
	MaxDatabase       = 1<<16 - 1
)

// maxPrefixBytes bounds StoreConfig.Prefix.
const maxPrefixBytes = 128

// StoreConfig describes the connection to one Redis server. What is not marked optional is required.
type StoreConfig struct {
	// Address is host:port of one server. Cluster and Sentinel are not supported in this revision.
	Address string
	// Username and Password are optional; without a username the server's default user is meant.
	Username string
	Password string
	// Database is 0..MaxDatabase.
	Database int
	// TLS is optional; nil means plaintext.
	TLS *tls.Config
	// CommandTimeout, 1 ms..10 s, bounds waiting for a connection, dial, greeting, EVALSHA and EVAL
	// together.
	CommandTimeout time.Duration
	// PoolSize is the greatest number of connections, 1..4096.
	PoolSize int
	// CallerClock, for simulation and tests alone, gives the time in ms (1..2^42) that programs decide
	// by. Optional; nil means the server's clock.
	CallerClock func() int64
	// Coalesce lets evaluations that are under way at the same time travel together, many to a write. A
	// lone one is sent at once, as without it. Optional; false sends each by itself.
	Coalesce bool
	// Programs are what readiness runs. Optional; nil means all of the manifest.
	Programs []*store.Program
	// Prefix stands before every key of the scalar methods and of Eval. Optional, 0..128 bytes.
	Prefix string
	// Namespace is that of the scratch keys of readiness; see KeyBuilder.
	Namespace string
	// LowestVersion, for tests of a version lane, takes the place of the manifest's. Optional,
	// major.minor.
	LowestVersion string
	// Logger is optional; nil discards.
	Logger *slog.Logger
}

// Store is a store.Store over one Redis server. It dials nothing before it is used or started, and
// answers store.CodeNotReady until readiness has found the server usable.
type Store struct {
	client         *redis.Client
	dialer         *dialer
	coalescer      *coalescer // nil where each evaluation is sent by itself
	commandTimeout time.Duration
	callerClock    func() int64
	prefix         string
	programs       map[*store.Program]*program
	log            *slog.Logger
	readiness      readiness

	closeOnce sync.Once
	closed    atomic.Bool
	stop      context.CancelFunc
	stopped   sync.WaitGroup
	lifetime  context.Context //nolint:containedctx // The lifetime of the readiness goroutine.
	started   sync.Once
}

var _ store.Store = (*Store)(nil)

// NewStore validates the configuration, all faults at once. It dials nothing.
func NewStore(config StoreConfig) (*Store, error) {
	var faults []error
	refuse := func(format string, args ...any) { faults = append(faults, fmt.Errorf("cacheredis: "+format, args...)) }
	if host, port, err := net.SplitHostPort(config.Address); err != nil || host == "" {
		refuse("address %q is not host:port", config.Address)
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		refuse("address %q has no port 1..65535", config.Address)
	}
	if config.CommandTimeout < MinCommandTimeout || config.CommandTimeout > MaxCommandTimeout {
		refuse("command timeout is %v, want %v..%v", config.CommandTimeout, MinCommandTimeout, MaxCommandTimeout)
	}
	if config.PoolSize < 1 || config.PoolSize > MaxPoolSize {
		refuse("pool size is %d, want 1..%d", config.PoolSize, MaxPoolSize)
	}
	if config.Database < 0 || config.Database > MaxDatabase {
		refuse("database is %d, want 0..%d", config.Database, MaxDatabase)
	}
	if len(config.Prefix) > maxPrefixBytes {
		refuse("prefix of %d bytes, at most %d", len(config.Prefix), maxPrefixBytes)
	}
	if config.Username != "" && config.Password == "" {
		refuse("a username without a password")
	}
	if err := checkNamespace(config.Namespace); err != nil {
		faults = append(faults, err)
	}
	lowestText := config.LowestVersion
	if lowestText == "" {
		lowestText = lua.LowestRedis
	}
	lowest, err := parseVersion(lowestText)
	if err != nil {
		refuse("lowest version: %w", err)
	}
	valkey, err := parseVersion(LowestValkey)
	if err != nil {
		refuse("lowest version of valkey: %w", err)
	}
	programs := config.Programs
	if programs == nil {
		programs = store.Programs()
	}
	s := &Store{
		commandTimeout: config.CommandTimeout,
		callerClock:    config.CallerClock,
		prefix:         config.Prefix,
		programs:       make(map[*store.Program]*program),
		log:            config.Logger,
	}
	if len(programs) == 0 {
		refuse("no programs")
	}
	for _, descriptor := range programs {
		if descriptor == nil {
			refuse("a program that is nil")
			continue
		}
		program, ok := lua.Find(descriptor)
		if !ok {
			refuse("no program %s in the manifest", descriptor.ID())
			continue
		}
		if probeOf(descriptor) == nil {
			refuse("no probe for program %s", descriptor.ID())
		}
		s.programs[descriptor] = newProgram(program)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var tlsConfig *tls.Config
	if config.TLS != nil {
		tlsConfig = config.TLS.Clone()
		if tlsConfig.ServerName == "" {
			tlsConfig.ServerName, _, _ = net.SplitHostPort(config.Address) // Judged above.
		}
	}
	s.dialer = &dialer{address: config.Address, timeout: config.CommandTimeout - config.CommandTimeout/10, tls: tlsConfig}
	g := &greeter{username: config.Username, lowest: lowest, valkey: valkey, seen: s.readiness.sawServer}
	s.client = redis.NewClient(&redis.Options{
		Addr:     config.Address,
		Username: config.Username,
		Password: config.Password,
		DB:       config.Database,
		Dialer:   s.dialer.dial,
		// RESP2: programs answer the same in both, and without push messages a connection carries
		// nothing but replies.
		Protocol:  2,
		OnConnect: g.onConnect,
		// Nothing is ever sent twice.
		MaxRetries:    -1,
		DialerRetries: 1,
		// A little less than the whole, so that a call that waits for these in vain says for which.
		DialTimeout:      config.CommandTimeout - config.CommandTimeout/10,
		PoolTimeout:      config.CommandTimeout - config.CommandTimeout/10,
		PoolSize:         config.PoolSize,
		PipelinePoolSize: -1,
		// The context's deadline alone bounds a command. A timeout of the client's own would be counted
		// from a clock that it reads up to 50 ms late.
		ContextTimeoutEnabled:    true,
		ReadTimeout:              -1,
		WriteTimeout:             -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: disabledNotifications(),
	})
	if config.Coalesce {
		s.coalescer = newCoalescer(s.client, config.CommandTimeout)
	}
	s.lifetime, s.stop = context.WithCancel(context.Background())
	s.readiness.namespace = config.Namespace
	s.readiness.reason.Store(&notReady{errors.New("not started")})
	return s, nil
}

// Eval runs a program; see store.Store.
func (s *Store) Eval(ctx context.Context, program *store.Program, keys []string, args []any) (store.Reply, error) {
	if !s.usable() {
		return store.Reply{}, s.unusable(operation(program))
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.eval(ctx, program, keys, args)
}

// Ping asks whether the server answers; see store.Store.
func (s *Store) Ping(ctx context.Context) error {
	reply, _, failure := s.command(ctx, "ping", []any{"PING"})
	if failure != nil {
		return failure
	}
	if reply.Len() != 1 || reply.At(0) != store.Text("PONG") {
		return unexpectedReply("ping")
	}
	return nil
}

// Source is store.SourceGlobalRedis.
func (s *Store) Source() store.Source { return store.SourceGlobalRedis }

// Clock is store.ClockServer, or store.ClockCaller in a simulation.
func (s *Store) Clock() store.ClockSource {
	if s.callerClock != nil {
		return store.ClockCaller
	}
	return store.ClockServer
}

// Start begins to look for a usable server and returns at once; Ready tells what came of it. It
// does nothing the second time.
func (s *Store) Start() {
	s.started.Do(func() {
		if s.closed.Load() {
			return
		}
		s.stopped.Add(1)
		go func() {
			defer s.stopped.Done()
			s.watch(s.lifetime)
		}()
	})
}

// Close ends the readiness goroutine and all connections. Commands in flight fail. It does nothing
// the second time.
func (s *Store) Close() error {
	var err error
	s.closeOnce.Do(func() {
		s.closed.Store(true)
		s.started.Do(func() {}) // A Start that comes later does nothing.
		s.stop()
		s.stopped.Wait()
		s.readiness.reason.Store(&notReady{errors.New("closed")})
		err = s.client.Close()
		if s.coalescer != nil {
			s.coalescer.close()
		}
	})
	return err
}

// clockArgument is what a program's clock argument is set to.
func (s *Store) clockArgument() (int64, bool) {
	if s.callerClock == nil {
		return 0, true
	}
	now := s.callerClock()
	return now, now >= 1 && now <= algorithm.MaxNowMillis
}
