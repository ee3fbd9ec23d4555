package memory_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/memory"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
)

// charge makes one guarded call. ctx has a deadline.
func charge(ctx context.Context, port breaker.CircuitBreakerPort, resource breaker.ResourceDigest, call func(context.Context) error) error {
	outcome, err := breaker.Do(ctx, port, breaker.AcquireRequest{PolicyID: "payments", Resource: resource}, call)
	switch o := outcome.(type) {
	case breaker.Protected:
		return err // the call's own
	case breaker.Unprotected:
		fmt.Printf("made without a breaker: %+v\n", o.Reason)
		return err // the call's own
	case breaker.Blocked:
		return fmt.Errorf("payments are not asked for %v: %w", o.Rejected.RetryAfter, err)
	case nil: // The request itself was wrong; nothing ran.
	}
	return err
}

func ExampleCircuitBreaker() {
	policy, err := breaker.NewPolicy(breaker.PolicyConfig{
		ID: "payments", Revision: 1,
		Trip:        breaker.ConsecutiveFailures{Threshold: 3},
		OpenTimeout: 30 * time.Second,
		MaxProbes:   1, ProbeLease: 10 * time.Second, ProbeSuccesses: 2,
		CleanupGrace: time.Minute, MaxClockRegression: 2 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	policies, err := breaker.NewPolicySet(policy)
	if err != nil {
		panic(err)
	}
	digester, err := breaker.NewResourceDigester([]byte("a secret of 32 bytes or more, from a file"))
	if err != nil {
		panic(err)
	}
	resource, err := digester.Digest("payments.example.org")
	if err != nil {
		panic(err)
	}
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	port, err := memory.NewCircuitBreaker(memory.BreakerConfig{
		Policies: policies, MaxKeys: 1000, UnavailableRetryAfter: time.Second, Clock: func() time.Time { return now },
	})
	if err != nil {
		panic(err)
	}

	broken := func(context.Context) error { return errors.New("broken") }
	works := func(context.Context) error { return nil }
	at := func(seconds int, call func(context.Context) error) {
		now = now.Truncate(time.Minute).Add(time.Duration(seconds) * time.Second)
		ctx, cancel := context.WithDeadline(context.Background(), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
		defer cancel()
		fmt.Printf("%2d s: %v\n", seconds, charge(ctx, port, resource, call))
	}
	at(0, broken)
	at(1, broken)
	at(2, broken)
	at(3, works)
	at(31, works)
	at(32, works)
	at(33, works)
	at(34, works)

	// Output:
	//  0 s: broken
	//  1 s: broken
	//  2 s: broken
	//  3 s: payments are not asked for 29s: breaker: payments is open, retry after 29s
	// 31 s: payments are not asked for 1s: breaker: payments is open, retry after 1s
	// 32 s: <nil>
	// 33 s: <nil>
	// 34 s: <nil>
}
