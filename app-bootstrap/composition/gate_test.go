package composition

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// slow is a port whose evaluations end when they are told to.
type slow struct {
	entered chan struct{}
	leave   chan struct{}
}

func (s slow) Evaluate(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
	s.entered <- struct{}{}
	<-s.leave
	return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: true}}, nil
}

func TestGateDrains(t *testing.T) {
	t.Parallel()
	cfg := configure(t, memoryText)
	inner := slow{make(chan struct{}), make(chan struct{})}
	g := &gated{&gate{}, inner, cfg.Policies, time.Second}
	digester, err := ratelimit.NewSubjectDigester(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 10*time.Second)
	r := request(t, digester, "p")
	results := make(chan ratelimit.Outcome, 2)
	for range 2 {
		go func() {
			outcome, _ := g.Evaluate(ctx, r)
			results <- outcome
		}()
		<-inner.entered
	}
	ended, end := context.WithCancel(ctx)
	end()
	if err := g.gate.drain(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("drain with evaluations in flight: %v", err)
	}
	drained := make(chan error, 2)
	for range 2 {
		go func() { drained <- g.gate.drain(ctx) }()
	}
	outcome, err := g.Evaluate(ctx, r)
	if err != nil || outcome != (ratelimit.Unavailable{PolicyID: "p", RetryAfter: time.Second, Category: ratelimit.UnavailableClosed}) {
		t.Errorf("a closed gate answers %+v, %v", outcome, err)
	}
	var invalid *ratelimit.InvalidRequestError
	if _, err := g.Evaluate(ctx, ratelimit.RateLimitRequest{PolicyID: "none"}); !errors.As(err, &invalid) {
		t.Errorf("a closed gate answers what cannot be asked with %v", err)
	}
	inner.leave <- struct{}{}
	inner.leave <- struct{}{}
	for range 2 {
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if !ratelimit.Allows(<-results) {
			t.Error("an evaluation in flight was lost")
		}
	}
}
