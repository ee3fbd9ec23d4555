package envoyrls

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

// Service answers ShouldRateLimit. Its constructor is New.
type Service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer

	config    Config
	logger    *slog.Logger
	clock     func() time.Time
	overrides *overrides
	replacing sync.Mutex
	current   atomic.Pointer[generation]
}

var _ ratelimitv3.RateLimitServiceServer = (*Service)(nil)

// New makes a service with its first generation, or says everything that is wrong with config.
func New(config Config) (*Service, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := &Service{
		config: config, logger: config.Logger, clock: config.Clock,
		overrides: newOverrides(config.Ports, config.CleanupGrace, config.MaxClockRegression),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	// What a request may bring along is judged here once, not with the first of them.
	if _, err := s.overrides.policy(override{requests: 1, unit: rules.UnitSecond, multiplier: 1}); err != nil {
		return nil, err
	}
	return s, s.Replace(config.Rules)
}

// Replace makes other rules the current ones: calls that begin after it are answered by them alone, and
// calls that began before it by the ones before alone. Where it fails, nothing changes.
func (s *Service) Replace(loaded *rules.Rules) error {
	if loaded == nil {
		return errors.New("envoyrls: no rules")
	}
	s.replacing.Lock()
	defer s.replacing.Unlock()
	g, err := newGeneration(loaded, s.config.Ports)
	if err != nil {
		return err
	}
	s.current.Store(g)
	return nil
}

// Rules are the current ones.
func (s *Service) Rules() *rules.Rules { return s.current.Load().rules }

// ShouldRateLimit answers one request.
func (s *Service) ShouldRateLimit(ctx context.Context, request *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	descriptors, err := s.readRequest(request)
	if err != nil {
		return nil, err
	}
	questions, err := s.resolve(s.current.Load(), request.GetDomain(), descriptors)
	if err != nil {
		return nil, err
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.config.DefaultDeadline)
		defer cancel()
	}
	s.evaluate(ctx, questions)
	return s.answer(request, questions)
}
