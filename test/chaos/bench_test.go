package chaos

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// patience bounds what only a machine under load can delay.
const patience = 60 * time.Second

// longest is 100 years, the longest window: it does not end while a test runs.
const longest = 3_155_760_000_000 * time.Millisecond

// Limits of the policies: deep is never spent by a test, shallow soon is.
const (
	deep    = 10_000
	shallow = 8
	maxCost = 3
)

// maxRegression is what the policies tolerate of a clock that steps back.
const maxRegression = 2 * time.Second

// tags are the algorithms as policy IDs of this suite begin.
var tags = map[ratelimit.Algorithm]string{
	ratelimit.AlgorithmFixedWindow:          "fw",
	ratelimit.AlgorithmSlidingWindowCounter: "sc",
	ratelimit.AlgorithmTokenBucket:          "tb",
	ratelimit.AlgorithmGCRA:                 "gc",
	ratelimit.AlgorithmSlidingWindowLog:     "sl",
}

// policyOf gives the policy of an algorithm and a limit. In all of them what was spent does not come
// back while a test runs: windows last 100 years, and refills are so slow that the first unit takes
// days.
func policyOf(t testing.TB, algorithm ratelimit.Algorithm, limit int64) *ratelimit.RateLimitPolicy {
	t.Helper()
	config := ratelimit.RateLimitPolicyConfig{
		ID: policyID(algorithm, limit), Revision: 1, Algorithm: algorithm, MaxCost: maxCost,
		CleanupGrace: maxRegression, MaxClockRegression: maxRegression, FailurePolicy: ratelimit.FailClosed,
	}
	switch algorithm {
	case ratelimit.AlgorithmFixedWindow:
		config.Parameters = ratelimit.FixedWindowParameters{Limit: limit, Window: longest}
	case ratelimit.AlgorithmSlidingWindowCounter:
		config.Parameters = ratelimit.SlidingWindowCounterParameters{Limit: limit, Window: longest}
	case ratelimit.AlgorithmTokenBucket:
		config.Parameters = ratelimit.TokenBucketParameters{Capacity: limit, RefillTokens: 1, RefillPeriod: refill(limit)}
	case ratelimit.AlgorithmGCRA:
		config.Parameters = ratelimit.GCRAParameters{Limit: 1, Period: refill(limit), Burst: limit}
	case ratelimit.AlgorithmSlidingWindowLog:
		config.Parameters = ratelimit.SlidingWindowLogParameters{Limit: limit, Window: longest}
	case ratelimit.AlgorithmInvalid:
		t.Fatal("no algorithm")
	}
	policy, err := ratelimit.NewRateLimitPolicy(config)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// refill is the time of one unit where a limit's worth of them takes 100 years.
func refill(limit int64) time.Duration {
	return (longest / time.Duration(limit)).Truncate(time.Millisecond)
}

func policyID(algorithm ratelimit.Algorithm, limit int64) ratelimit.PolicyID {
	return ratelimit.PolicyID(fmt.Sprintf("%s-%d", tags[algorithm], limit))
}

// policies are those of every bench: each algorithm, deep and shallow, and for telling replies apart
// each algorithm with a limit of its own.
func policies(t testing.TB) *ratelimit.PolicySet {
	t.Helper()
	var all []*ratelimit.RateLimitPolicy
	for _, algorithm := range ratelimit.Algorithms() {
		for _, limit := range []int64{deep, shallow, ownLimit(algorithm)} {
			all = append(all, policyOf(t, algorithm, limit))
		}
	}
	set, err := ratelimit.NewPolicySet(all...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// ownLimit is a limit that no other algorithm's policy has: a reply that carries it is that policy's.
func ownLimit(algorithm ratelimit.Algorithm) int64 { return 100 + int64(algorithm) }

// options say how a bench differs from the usual one.
type options struct {
	variant  variant
	timeout  time.Duration // of a command; 0 is one that a machine under load keeps
	pool     int           // 0 is 8
	inFlight int           // 0 is 256
	direct   bool          // no proxy before the server
	fragile  bool          // a server without an append-only file
	offset   bool          // a server whose clock can step
	args     []string      // of the server
	tls      *tls.Config   // the server and the test speak TLS
	store    func(*cacheredis.StoreConfig)
	cold     bool // not started
}

// Users of a server: the provider's, who may do everything until a test says otherwise, and the test's.
const (
	username      = "limiter"
	administrator = "administrator"
	password      = "a-password-of-the-fault-suite"
	secret        = "an-hmac-secret-of-the-fault-suite"
)

// bench is a provider before a server of its own, and what a test needs to disturb the two.
type bench struct {
	t       testing.TB
	options options
	server  *lanes.Process      // nil where it is shared by tests
	address string              // of the server
	clock   *lanes.OffsetServer // nil where the clock cannot step
	extra   string              // a file of settings that the server reads when it starts
	admin   *redis.Client       // directly to the server
	user    string              // the provider's; "" is the server's default user
	proxy   *proxy              // nil where the provider is connected directly
	store   *cacheredis.Store
	limiter *cacheredis.EdgeRateLimiter
	port    ratelimit.EdgeRateLimitPort
	log     *logBuffer
	digests *ratelimit.SubjectDigester
	ledger  ledger
	other   string // another node of the server's cluster
}

var namespaces atomic.Int64

// newBench starts a server, a proxy and a provider, and returns when the provider is ready.
func newBench(t testing.TB, o options) *bench {
	t.Helper()
	b := &bench{t: t, options: o, log: &logBuffer{}, extra: t.TempDir() + "/extra.conf"}
	if err := os.WriteFile(b.extra, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, user := range []string{username, administrator} {
		args = append(args, "--user", user, "on", ">"+password, "~*", "&*", "+@all")
	}
	if !o.fragile {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always",
			// The whole history stays, in the form of commands.
			"--auto-aof-rewrite-percentage", "0", "--aof-use-rdb-preamble", "no")
	}
	args = append(append(args, o.args...), "--include", b.extra)
	if o.offset {
		b.clock = lanes.StartOffset(t, args...)
		b.server = b.clock.Process
	} else {
		b.server = lanes.StartProcess(t, lanes.Options{Args: args, TLS: o.tls})
	}
	b.address = b.server.Addr
	b.admin = connect(t, b.adminOptions())
	b.user = username
	b.provide()
	return b
}

var users atomic.Int64

// beside gives a provider and a proxy of its own before the same server, which the test must leave as it
// is.
func (b *bench) beside(t testing.TB, o options) *bench {
	t.Helper()
	other := &bench{
		t: t, options: o, log: &logBuffer{}, server: b.server, clock: b.clock, address: b.address, admin: b.admin,
		user: fmt.Sprintf("%s-%d", username, users.Add(1)),
	}
	other.do("ACL", "SETUSER", other.user, "on", ">"+password, "~*", "&*", "+@all")
	other.provide()
	return other
}

// provide starts proxy and provider before the server.
func (b *bench) provide() {
	b.t.Helper()
	t, o := b.t, b.options
	address := b.address
	if !o.direct {
		b.proxy = startProxy(t, address)
		address = b.proxy.address
	}
	namespace := fmt.Sprintf("chaos-%d", namespaces.Add(1))
	storeConfig := cacheredis.StoreConfig{
		Address: address, Username: b.user, Password: password, CommandTimeout: b.timeout(), PoolSize: or(o.pool, 8),
		Programs: store.RatePrograms(), Namespace: namespace, LowestVersion: "7.0", Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	limiterConfig := cacheredis.LimiterConfig{
		Policies: policies(t), Namespace: namespace, Secret: []byte(secret), MaxInFlight: or(o.inFlight, 256),
		CommandTimeout: storeConfig.CommandTimeout, UnavailableRetryAfter: time.Second,
	}
	if b.user == "" {
		storeConfig.Password = ""
	}
	o.variant.apply(&storeConfig, &limiterConfig)
	if o.store != nil {
		o.store(&storeConfig)
	}
	var err error
	if b.store, err = cacheredis.NewStore(storeConfig); err != nil {
		t.Fatal(err)
	}
	if b.limiter, err = cacheredis.NewEdgeRateLimiter(broken(b.store), limiterConfig); err != nil {
		t.Fatal(err)
	}
	b.port = brokenPort(b.limiter)
	if b.digests, err = ratelimit.NewSubjectDigester([]byte(secret)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close() })
	if o.cold {
		return
	}
	b.store.Start()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.store.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) timeout() time.Duration { return or(b.options.timeout, 500*time.Millisecond) }

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// request is one evaluation of a subject that the test names.
type request struct {
	algorithm ratelimit.Algorithm
	limit     int64
	subject   string
	cost      int64
}

// evaluate asks once, with time enough, and notes what came of it.
func (b *bench) evaluate(r request) ratelimit.Outcome {
	b.t.Helper()
	return b.evaluateWithin(b.t.Context(), r, 20*b.timeout())
}

func (b *bench) evaluateWithin(ctx context.Context, r request, within time.Duration) ratelimit.Outcome {
	b.t.Helper()
	subject, err := b.digests.Digest(r.subject)
	if err != nil {
		b.t.Error(err)
		return nil
	}
	policy := policyID(r.algorithm, r.limit)
	outcome, err := b.port.Evaluate(ctx, ratelimit.RateLimitRequest{
		PolicyID: policy, Subject: subject, Cost: r.cost, Deadline: time.Now().Add(within),
	})
	if err != nil {
		b.t.Errorf("%+v: %v", r, err)
		return nil
	}
	b.ledger.note(b.limiter.StateKey(policy, subject), r, outcome)
	return outcome
}

// key is the state key of a request.
func (b *bench) key(r request) string {
	b.t.Helper()
	subject, err := b.digests.Digest(r.subject)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.limiter.StateKey(policyID(r.algorithm, r.limit), subject)
}

// served waits until an evaluation is decided.
func (b *bench) served() {
	b.t.Helper()
	eventually(b.t, "evaluations are decided", func() error {
		r := request{algorithm: ratelimit.AlgorithmFixedWindow, limit: deep, subject: "served", cost: 1}
		if o := b.evaluate(r); !ratelimit.Allows(o) {
			return fmt.Errorf("%s", word(o))
		}
		return nil
	})
}

// settle ends provider and proxy, and waits until the server has nothing more to do for them.
func (b *bench) settle() {
	b.t.Helper()
	if err := b.store.Close(); err != nil {
		b.t.Error(err)
	}
	if b.proxy != nil {
		b.proxy.lift()
		eventually(b.t, "the proxy's connections end", func() error {
			if n := b.proxy.open(); n > 0 {
				return fmt.Errorf("%d are there", n)
			}
			return nil
		})
	}
	eventually(b.t, "the server's connections end", func() error {
		// A new connection comes behind those that the server has not yet accepted.
		client := redis.NewClient(b.adminOptions())
		defer func() { _ = client.Close() }()
		list, err := client.Do(b.t.Context(), "CLIENT", "LIST").Text()
		if err != nil {
			return err
		}
		if n := strings.Count(list, "user="+b.user+" "); n > 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
}

// adminOptions are those of a connection of the test's own.
func (b *bench) adminOptions() *redis.Options {
	return &redis.Options{
		Addr: b.address, TLSConfig: b.options.tls, Username: administrator, Password: password, Protocol: 2,
		DisableIdentity: true, MaxRetries: -1, ReadTimeout: patience, DialerRetries: 1,
	}
}

// plainOptions are those of a connection to a server that knows no users.
func plainOptions(address string) *redis.Options {
	return &redis.Options{Addr: address, Protocol: 2, DisableIdentity: true, MaxRetries: -1}
}

// connect gives a client of the test's own.
func connect(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// do sends the server a command that must succeed.
func (b *bench) do(command ...any) any {
	b.t.Helper()
	reply, err := b.admin.Do(context.WithoutCancel(b.t.Context()), command...).Result()
	if err != nil {
		b.t.Errorf("%v: %v", command, err)
	}
	return reply
}

// spent reads what a request's key spent from the append-only file. Nothing may be under way for it.
func (b *bench) spent(r request) int64 {
	b.t.Helper()
	key := b.key(r)
	accounts, err := readAOF(b.server.Dir, map[string]request{key: r})
	if err != nil {
		b.t.Error(err)
	}
	if a := accounts[key]; a != nil {
		return a.spent()
	}
	return 0
}

// eventually polls until check gives nil, and fails the test with its last reason.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// word is an outcome in short.
func word(o ratelimit.Outcome) string {
	switch o := o.(type) {
	case ratelimit.Evaluated:
		if o.Decision.Allowed {
			return "Evaluated allowed"
		}
		return "Evaluated denied"
	case ratelimit.Unavailable:
		return "Unavailable " + o.Category.String()
	case ratelimit.Indeterminate:
		return "Indeterminate"
	case ratelimit.Incompatible:
		return "Incompatible " + o.Category.String()
	}
	return "nothing"
}

// logBuffer holds what a provider logs.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds a line.
func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
