package breaker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/shared-contract/breaker"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// The environment of a child: where its Redis is, which namespace it shares with the others, and how
// far its clock is off.
const (
	childAddress   = "EDGELIMIT_TEST_BREAKER_ADDRESS"
	childNamespace = "EDGELIMIT_TEST_BREAKER_NAMESPACE"
	childSkew      = "EDGELIMIT_TEST_BREAKER_SKEW"
)

// sharedPolicy is that of every process: three failures in a row trip it, one probe at a time, and one
// success closes it.
func sharedPolicy() (*breaker.Policy, error) {
	return breaker.NewPolicy(breaker.PolicyConfig{
		ID: "shared", Revision: 1, Trip: breaker.ConsecutiveFailures{Threshold: 3}, OpenTimeout: 2 * time.Second,
		MaxProbes: 1, ProbeLease: 4 * time.Second, ProbeSuccesses: 1, CleanupGrace: time.Minute, MaxClockRegression: time.Second,
	})
}

// TestChild is an instance of a service in a process of its own: it answers each line of its standard
// input with one line. Its clock is a bubble's, which it moves to the time that each line begins with
// (the first holds nothing else), plus its skew, so that it really is off. Where no parent started it, it answers what it does not
// understand.
func TestChild(t *testing.T) {
	if os.Getenv(childAddress) != "" {
		synctest.Test(t, func(t *testing.T) { child(t, os.Stdin, os.Stdout) })
		return
	}
	for line, want := range map[string]string{"": "ERROR: no time", "x read": "ERROR: no time", "1 dance": "ERROR: unknown command dance"} {
		if got := (&instance{}).answer(t, line); !strings.HasPrefix(got, want) {
			t.Errorf("%q is answered by %q, want %q", line, got, want)
		}
	}
}

// instance is one child.
type instance struct {
	skew     time.Duration
	port     breaker.CircuitBreakerPort
	resource breaker.ResourceDigest
	permits  []breaker.Permit
}

func child(t *testing.T, in io.Reader, out io.Writer) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			_, _ = fmt.Fprintf(out, "ERROR: %v\n", err)
			t.Fatal(err)
		}
	}
	skew, err := time.ParseDuration(os.Getenv(childSkew))
	fail(err)
	lines := bufio.NewScanner(in)
	// A bubble's clock begins in the year 2000. It moves before there is anything that waits by it.
	lines.Scan()
	actual, err := strconv.ParseInt(lines.Text(), 10, 64)
	fail(err)
	time.Sleep(time.Until(time.UnixMilli(actual).Add(skew)))
	namespace, secret := os.Getenv(childNamespace), []byte(strings.Repeat("s", 32))
	policy, err := sharedPolicy()
	fail(err)
	set, err := breaker.NewPolicySet(policy)
	fail(err)
	digester, err := breaker.NewResourceDigester(secret)
	fail(err)
	resource, err := digester.Digest("payments")
	fail(err)
	const timeout = 5 * time.Second
	s, err := cacheredis.NewStore(cacheredis.StoreConfig{
		Address: os.Getenv(childAddress), CommandTimeout: timeout, PoolSize: 2, Namespace: namespace, Programs: store.BreakerPrograms(),
	})
	fail(err)
	defer func() { _ = s.Close() }()
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fail(s.WaitReady(ctx))
	port, err := cacheredis.NewCircuitBreaker(s, cacheredis.BreakerConfig{
		Policies: set, Namespace: namespace, Secret: secret, MaxInFlight: 16, CommandTimeout: timeout, UnavailableRetryAfter: time.Second,
	})
	fail(err)
	i := &instance{skew: skew, port: port, resource: resource}
	_, err = fmt.Fprintln(out, "READY")
	fail(err)
	for lines.Scan() {
		if _, err := fmt.Fprintln(out, i.answer(t, lines.Text())); err != nil {
			return
		}
	}
}

// answer runs one line: the real time in ms, then a command.
func (i *instance) answer(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	if len(words) < 2 {
		return "ERROR: no time and command"
	}
	actual, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return "ERROR: no time: " + words[0]
	}
	if i.port != nil {
		time.Sleep(time.Until(time.UnixMilli(actual).Add(i.skew)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	switch command, rest := words[1], words[2:]; {
	case command == "now":
		return strconv.FormatInt(time.Now().UnixMilli(), 10)
	case command == "acquire":
		outcome, err := i.port.Acquire(ctx, breaker.AcquireRequest{PolicyID: "shared", Resource: i.resource})
		switch o := outcome.(type) {
		case breaker.Permitted:
			i.permits = append(i.permits, o.Permit)
			return fmt.Sprintf("%v %d", o.Permit.Kind, len(i.permits)-1)
		case breaker.Rejected:
			return fmt.Sprintf("REJECTED %v %d", o.State, o.RetryAfter.Milliseconds())
		case breaker.Unavailable, breaker.Indeterminate, breaker.Incompatible, nil:
		}
		return fmt.Sprintf("ERROR: %+v, %v", outcome, err)
	case command == "record" && len(rest) == 2:
		n, err := strconv.Atoi(rest[0])
		result, ok := breaker.ParseResult(rest[1])
		if err != nil || !ok || n >= len(i.permits) {
			return "ERROR: record " + strings.Join(rest, " ")
		}
		outcome, err := i.port.Record(ctx, breaker.RecordRequest{Permit: i.permits[n], Result: result})
		if o, ok := outcome.(breaker.Recorded); ok {
			return fmt.Sprintf("%v %v %v", o.Status, o.Before, o.After)
		}
		return fmt.Sprintf("ERROR: %+v, %v", outcome, err)
	case command == "read":
		outcome, err := i.port.Read(ctx, breaker.ReadRequest{PolicyID: "shared", Resource: i.resource})
		if o, ok := outcome.(breaker.Observed); ok {
			return fmt.Sprintf("%v since %d failures %d probes %d", o.State, max(o.Since.UnixMilli(), 0), o.Failures, o.ProbesLeased)
		}
		return fmt.Sprintf("ERROR: %+v, %v", outcome, err)
	default:
		return "ERROR: unknown command " + command
	}
}
