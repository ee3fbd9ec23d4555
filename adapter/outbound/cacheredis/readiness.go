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

// probe runs one program on a scratch key of its own, reads back that the key has a finite lifetime,
// and removes it.
func (s *Store) probe(ctx context.Context, descriptor *store.Program) error {
	probe := probeOf(descriptor)
	var random [16]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails.
	key := fmt.Sprintf("%s:%s:%s:%s:%s:%x", keyPrefix, s.readiness.namespace, capabilityRate, descriptor.ID(), kindProbe, random)
	err := s.timed(ctx, func(ctx context.Context) error {
		reply, err := s.eval(ctx, descriptor, []string{key}, probe.args)
		if err != nil {
			return err
		}
		if reply.At(0) != probe.first {
			return fmt.Errorf("replied %v on a new key, want %v", reply.At(0), probe.first)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = s.timed(ctx, func(ctx context.Context) error {
		reply, _, failure := s.command(ctx, "pttl", []any{"PTTL", key})
		if failure != nil {
			return failure
		}
		if ttl := reply.At(0); ttl.Kind != store.ValueInteger || ttl.Int <= 0 {
			return errors.New("left a key without a finite lifetime")
		}
		return nil
	})
	removed := s.timed(ctx, func(ctx context.Context) error {
		if _, _, failure := s.command(ctx, "del", []any{"DEL", key}); failure != nil {
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

// probeCase is how a program is tried: arguments that make it write, and the first value of its reply.
type probeCase struct {
	args  []any
	first store.Value
}

// probeOf gives the trial of a program, or nil where there is none.
func probeOf(descriptor *store.Program) *probeCase {
	allowed := store.Text("ALLOWED")
	switch descriptor {
	case store.RateFixedWindowV1:
		return &probeCase{[]any{"1:fw:1:probe", int64(1), int64(1000), int64(0), int64(0), int64(1), int64(0)}, allowed}
	case store.RateSlidingCounterV1:
		return &probeCase{[]any{"1:sc:1:probe", int64(1), int64(1000), int64(0), int64(0), int64(1), int64(0)}, allowed}
	case store.RateTokenBucketV1:
		return &probeCase{[]any{"1:tb:1:probe", int64(1), int64(1), int64(1000), int64(0), int64(0), int64(1), int64(0)}, allowed}
	case store.StoreIncrByV1:
		return &probeCase{[]any{int64(1), int64(1000)}, store.Integer(1)}
	}
	return nil
}
