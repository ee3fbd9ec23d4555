package doors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/process"
)

// The rules that every door has. Any value of a key has a count of its own.
const (
	domain   = "bench"
	allowKey = "user"
	denyKey  = "spent"
	rules    = `domain: ` + domain + `
descriptors:
  - key: ` + allowKey + `
    rate_limit: {unit: minute, requests_per_unit: 1000000}
  - key: ` + denyKey + `
    rate_limit: {unit: day, requests_per_unit: 1}
`
)

// readyTimeout bounds how long a door may take to answer.
const readyTimeout = 20 * time.Second

// Names of the doors.
const (
	OwnName           = "edgelimit"
	PeerName          = "envoyproxy/ratelimit"
	PeerBufferedName  = "envoyproxy/ratelimit, REDIS_PIPELINE_WINDOW=150us"
	peerModule        = "github.com/envoyproxy/ratelimit"
	bufferedWindow    = "150us" // what its documents recommend to begin with
	ownModule         = "github.com/edgelimit/edgelimit"
	ownSecret         = "a secret of a benchmark, worth nothing" //nolint:gosec // G101: so it is.
	commandTimeout    = time.Second                              // long enough that it ends no call
	mostInFlight      = 4096
	permitAll         = 0o755
	permitFile        = 0o644
	ownConfiguration  = "edgelimit.yaml"
	rulesDirectory    = "config"
	ownConfigTemplate = `app:
  rate-limit:
    enabled: true
    provider: redis
    default-policy: unused
    redis: {address: "%s", command-timeout: %s, pool-size: %d}
    key: {namespace: bench-doors, hmac-secret: "%s"}
    admission: {max-in-flight: %d}
    policies:
      unused: {revision: 1, algorithm: fixed-window, limit: 1, window: 1m, max-cost: 1}
  service: {http-address: "%s", default-deadline: %s, log-level: warn}
  envoy-rls: {enabled: true, rules-dir: "%s", address: "%s", default-deadline: %s}
`
)

// Config is what doors are started with. Everything is required.
type Config struct {
	Own   string // path of edgelimit
	Peer  string // path of envoyproxy/ratelimit's service
	Redis string // host:port
	Dir   string // a directory of the run's own
	Pool  int    // connections of each door to Redis
}

// Door is a service that answers.
type Door struct {
	Name    string
	Module  string
	Role    contender.Role
	Note    string
	Address string // of its gRPC listener

	process *process.Process
}

// PID is the process's ID.
func (d *Door) PID() int { return d.process.PID() }

// Start starts every door and returns when all of them answer. close ends them.
func Start(ctx context.Context, config Config) (all []*Door, closeAll func(), err error) {
	closeAll = func() {
		for _, d := range all {
			d.process.Stop()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
			all, closeAll = nil, nil
		}
	}()
	if err := os.MkdirAll(filepath.Join(config.Dir, rulesDirectory), permitAll); err != nil {
		return all, closeAll, err
	}
	if err := os.WriteFile(filepath.Join(config.Dir, rulesDirectory, "bench.yaml"), []byte(rules), permitFile); err != nil {
		return all, closeAll, err
	}
	for _, start := range []func(Config) (*Door, error){
		startOwn,
		func(c Config) (*Door, error) { return startPeer(c, PeerName, "0") },
		func(c Config) (*Door, error) { return startPeer(c, PeerBufferedName, bufferedWindow) },
	} {
		d, err := start(config)
		if err != nil {
			return all, closeAll, err
		}
		all = append(all, d)
		if err := d.wait(ctx); err != nil {
			return all, closeAll, err
		}
	}
	return all, closeAll, nil
}

// wait asks until the door answers.
func (d *Door) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	decider, err := d.open(contender.Setting{Kind: contender.Allow, Keys: 1, Callers: 1})
	if err != nil {
		return err
	}
	defer func() { _ = decider.Close() }() // Nothing is under way.
	for {
		_, err := decider.Decide(ctx, 0)
		if err == nil {
			return nil
		}
		select {
		case <-d.process.Ended():
			return fmt.Errorf("doors: %s ended: %s", d.Name, d.process.Output())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("doors: %s does not answer: %s", d.Name, d.process.Output()), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// addresses gives as many as are asked for. Between two calls another program may take one; the start
// then fails, and says so.
func addresses(n int) ([]string, error) {
	all := make([]string, n)
	for i := range all {
		var err error
		if all[i], err = process.FreeAddress(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func startOwn(config Config) (*Door, error) {
	at, err := addresses(2)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(ownConfigTemplate, config.Redis, commandTimeout, config.Pool, ownSecret, mostInFlight,
		at[0], 3*commandTimeout, filepath.Join(config.Dir, rulesDirectory), at[1], 3*commandTimeout)
	file := filepath.Join(config.Dir, ownConfiguration)
	if err := os.WriteFile(file, []byte(text), permitFile); err != nil {
		return nil, err
	}
	p, err := process.Start(config.Own, []string{"serve", "--config", file}, nil)
	if err != nil {
		return nil, err
	}
	return &Door{
		Name: OwnName, Module: ownModule, Role: contender.Own, Address: at[1], process: p,
		Note: "fixed window, as its rules say; a denial writes nothing",
	}, nil
}

func startPeer(config Config, name, window string) (*Door, error) {
	at, err := addresses(3)
	if err != nil {
		return nil, err
	}
	variables := []string{
		"USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=error",
		"RUNTIME_ROOT=" + config.Dir, "RUNTIME_SUBDIRECTORY=", "RUNTIME_APPDIRECTORY=" + rulesDirectory, "RUNTIME_WATCH_ROOT=false",
		"BACKEND_TYPE=redis", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + config.Redis, "REDIS_POOL_SIZE=" + strconv.Itoa(config.Pool),
		"REDIS_PIPELINE_WINDOW=" + window, "CACHE_KEY_PREFIX=bench:" + window + ":",
	}
	for i, listener := range []string{"", "DEBUG_", "GRPC_"} {
		host, port, err := splitAddress(at[i])
		if err != nil {
			return nil, err
		}
		variables = append(variables, listener+"HOST="+host, listener+"PORT="+port)
	}
	p, err := process.Start(config.Peer, nil, variables)
	if err != nil {
		return nil, err
	}
	note := "writes to Redis as they come"
	if window != "0" {
		note = "buffers writes to Redis"
	}
	return &Door{Name: name, Module: peerModule, Role: contender.Peer, Note: note + "; writes on a denial too", Address: at[2], process: p}, nil
}
