package cacheredis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// How often readiness looks: while the server was not found usable, between two failures of an
// established one, and while all is well.
const (
	probeRetryMin  = 50 * time.Millisecond
	probeRetryMax  = 500 * time.Millisecond
	healthInterval = time.Second
)

// notReady is why the store is not ready; a nil cause means that it is.
type notReady struct{ cause error }

// readiness is what is known of the server.
type readiness struct {
	namespace string
	// passed is set once every program has run on this server, and never cleared: a server that is
	// lost later gives each evaluation its own, honest outcome.
	passed   atomic.Bool
	reason   atomic.Pointer[notReady]
	server   atomic.Pointer[string]
	noScript atomic.Int64
}

func (r *readiness) sawServer(product, version string) {
	text := product + " " + version
	if old := r.server.Load(); old == nil || *old != text {
		r.server.Store(&text)
	}
}

// Ready is nil when the server was found usable and answered lately, and otherwise says why not.
func (s *Store) Ready() error { return s.readiness.reason.Load().cause }

// Server is product and version of the server last connected to, such as "redis 7.4.1", or "".
func (s *Store) Server() string {
	if text := s.readiness.server.Load(); text != nil {
		return *text
	}
	return ""
}

// WaitReady waits until Ready is nil or ctx ends, and then gives the reason.
func (s *Store) WaitReady(ctx context.Context) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		reason := s.Ready()
		if reason == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return reason
		case <-ticker.C:
		}
	}
}

// watch probes until the server is usable, then asks regularly whether it answers, until ctx ends.
func (s *Store) watch(ctx context.Context) {
	retry := probeRetryMin
	s.readiness.reason.Store(&notReady{errors.New("no server was reached yet")})
	for {
		err := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		before := s.Ready()
		s.readiness.reason.Store(&notReady{err})
		wait := healthInterval
		if err != nil {
			wait = retry
			retry = min(2*retry, probeRetryMax)
		} else {
			retry = probeRetryMin
		}
		s.report(before, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// report logs each change of readiness once.
func (s *Store) report(before, now error) {
	switch {
	case now == nil && before != nil:
		s.log.Info("redis is ready", "server", s.Server())
	case now != nil && (before == nil || before.Error() != now.Error()):
		s.log.Warn("redis is not ready", "reason", now.Error())
	}
}

// look is one probe, or one ping once the probe has passed.
func (s *Store) look(ctx context.Context) error {
	if s.readiness.passed.Load() {
		err := s.timed(ctx, s.Ping)
		var failure *store.Error
		if errors.As(err, &failure) && failure.Code == store.CodePoolExhausted {
			return s.Ready() // All connections are at work, which says nothing about the server.
		}
		return err
	}
	programs := make([]*store.Program, 0, len(s.programs))
	for descriptor := range s.programs {
		programs = append(programs, descriptor)
	}
	slices.SortFunc(programs, func(a, b *store.Program) int { return strings.Compare(a.Name, b.Name) })
	for _, descriptor := range programs {
		if err := s.probe(ctx, descriptor); err != nil {
			return fmt.Errorf("program %s: %w", descriptor.ID(), err)
		}
	}
	s.readiness.passed.Store(true)
	return nil
}

// probe runs one program on a scratch key of its own, reads back that what it leaves has a finite
// lifetime, and removes it.
func (s *Store) probe(ctx context.Context, descriptor *store.Program) error {
	probe := probeOf(descriptor)
	var random [16]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails.
	// An ACL may give a user the keys of one capability alone.
	key := fmt.Sprintf("%s:%s:%s:%s:%s:%x", keyPrefix, s.readiness.namespace, probe.capability, descriptor.ID(), kindProbe, random)
	physical := s.prefix + key // Eval puts the prefix before its keys, command does not.
	if probe.seed != "" {
		err := s.timed(ctx, func(ctx context.Context) error {
			if _, _, failure := s.command(ctx, "set", []any{"SET", physical, probe.seed, "NX", "PX", probeLifetime.Milliseconds()}); failure != nil {
				return failure
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := s.timed(ctx, func(ctx context.Context) error {
		reply, err := s.eval(ctx, descriptor, []string{key}, probe.args)
		if err != nil {
			return err
		}
		if reply.At(0) != probe.first {
			return fmt.Errorf("replied %v on a scratch key, want %v", reply.At(0), probe.first)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = s.timed(ctx, func(ctx context.Context) error {
		reply, _, failure := s.command(ctx, "pttl", []any{"PTTL", physical})
		if failure != nil {
			return failure
		}
		return probe.after.check(reply.At(0))
	})
	removed := s.timed(ctx, func(ctx context.Context) error {
		if _, _, failure := s.command(ctx, "del", []any{"DEL", physical}); failure != nil {
			return failure
		}
		return nil
	})
	return errors.Join(err, removed)
}

// timed runs one command of readiness under the command timeout.
func (s *Store) timed(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.commandTimeout)
	defer cancel()
	return f(ctx)
}

// probeLifetime is that of what a probe puts at its scratch key beforehand.
const probeLifetime = 10 * time.Second

// residue is what a program must leave at the scratch key of its probe.
type residue uint8

const (
	_ residue = iota // the invalid zero value
	// residueExpires is a key with a finite lifetime.
	residueExpires
	// residueNone is no key.
	residueNone
)

// check judges the reply to PTTL.
func (r residue) check(ttl store.Value) error {
	switch {
	case r == residueExpires && ttl.Kind == store.ValueInteger && ttl.Int > 0:
		return nil
	case r == residueNone && ttl == store.Integer(-2):
		return nil
	case r == residueNone:
		return errors.New("left a key that it should have removed")
	}
	return errors.New("left a key without a finite lifetime")
}

// probeCase is how a program is tried: arguments that make it do what it is for, so that a user who may
// not do it is found before the first call.
type probeCase struct {
	capability string      // of the scratch key
	seed       string      // what stands at the key beforehand; "" is nothing
	args       []any       // of the program
	first      store.Value // the first value of its reply
	after      residue     // what it leaves
}

// probeToken is that of the entry that probes of cache programs find.
const probeToken = cache.Token("probe-probe-probe-prob")

// breakerProbeToken is that of the permit that probes of breaker programs are asked with.
const breakerProbeToken = "00000000000000000000000000000000"

// breakerProbe is a policy that two failures trip, for a second each, then a program's own arguments
// and the clock.
func breakerProbe(own ...any) []any {
	args := []any{
		"1:cb:1:probe", int64(2), int64(0), int64(0), int64(0), int64(0), int64(1000), int64(1), int64(1000), int64(1), int64(0), int64(0),
	}
	return append(append(args, own...), int64(0))
}

// probeOf gives the trial of a program, or nil where there is none.
func probeOf(descriptor *store.Program) *probeCase {
	rate := func(args ...any) *probeCase {
		return &probeCase{capability: capabilityRate, args: args, first: store.Text("ALLOWED"), after: residueExpires}
	}
	entry := encodeEntry(probeToken, "probe")
	switch descriptor {
	case store.RateFixedWindowV1:
		return rate("1:fw:1:probe", int64(1), int64(1000), int64(0), int64(0), int64(1), int64(0))
	case store.RateSlidingCounterV1:
		return rate("1:sc:1:probe", int64(1), int64(1000), int64(0), int64(0), int64(1), int64(0))
	case store.RateTokenBucketV1:
		return rate("1:tb:1:probe", int64(1), int64(1), int64(1000), int64(0), int64(0), int64(1), int64(0))
	case store.RateGCRAV1:
		return rate("1:gc:1:probe", int64(1), int64(1000), int64(1), int64(0), int64(0), int64(1), int64(0))
	case store.RateSlidingLogV1:
		return rate("1:sl:1:probe", int64(1), int64(1000), int64(0), int64(0), int64(1), int64(0))
	case store.BreakerAcquireV1:
		return &probeCase{
			capability: capabilityBreaker, args: breakerProbe(breakerProbeToken), first: store.Text("CALL"), after: residueNone,
		}
	case store.BreakerRecordV1:
		return &probeCase{
			capability: capabilityBreaker, args: breakerProbe("CALL", breakerProbeToken, int64(0), algorithm.MaxNowMillis, "FAILURE"),
			first: store.Text("COUNTED"), after: residueExpires,
		}
	case store.BreakerReadV1:
		return &probeCase{capability: capabilityBreaker, args: breakerProbe(), first: store.Text("READ"), after: residueNone}
	case store.StoreIncrByV1:
		return &probeCase{capability: capabilityStore, args: []any{int64(1), int64(1000)}, first: store.Integer(1), after: residueExpires}
	case store.CacheReplaceV1:
		return &probeCase{
			capability: capabilityCache, seed: entry, args: []any{string(probeToken), entry, probeLifetime.Milliseconds()},
			first: store.Text("APPLIED"), after: residueExpires,
		}
	case store.CacheDeleteV1:
		return &probeCase{
			capability: capabilityCache, seed: entry, args: []any{string(probeToken)},
			first: store.Text("APPLIED"), after: residueNone,
		}
	}
	return nil
}
