package envoyrls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

const someRules = `
domain: d
descriptors:
- {key: ip, rate_limit: {unit: minute, requests_per_unit: 5, name: per_ip}}
- {key: ip, value: banned, rate_limit: {unit: hour, requests_per_unit: 0}}
- {key: user, rate_limit: {unit: minute, requests_per_unit: 2, replaces: [{name: per_ip}]}}
- {key: free, rate_limit: {unlimited: true, name: per_ip, replaces: [{name: gone}]}}
- {key: shadow, shadow_mode: true, metadata: {of: shadow}, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: quota, quota_mode: true, metadata: {of: quota, deep: {a: 1}}, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: path, value: /a/*, share_threshold: true, metadata: {deep: {a: 2, b: 3}}, rate_limit: {unit: week, requests_per_unit: 3}}
- {key: bucket, rate_limit: {unit: second, requests_per_unit: 1}, edgelimit: {algorithm: token-bucket, burst: 10, max_cost: 4}}
- {key: gone, rate_limit: {unit: minute, requests_per_unit: 1, name: gone}}
`

func brief(r *ratelimitv3.RateLimitResponse) string {
	var b strings.Builder
	b.WriteString(r.GetOverallCode().String())
	for _, s := range r.GetStatuses() {
		fmt.Fprintf(&b, " | %v", s.GetCode())
		if l := s.GetCurrentLimit(); l != nil {
			fmt.Fprintf(&b, " %s%d/", l.GetName(), l.GetRequestsPerUnit())
			if m := l.GetUnitMultiplier(); m != nil {
				fmt.Fprintf(&b, "%d", m.GetValue())
			}
			fmt.Fprint(&b, l.GetUnit())
		}
		fmt.Fprintf(&b, " %d", s.GetLimitRemaining())
		if d := s.GetDurationUntilReset(); d != nil {
			fmt.Fprintf(&b, " %v", d.AsDuration())
		}
	}
	return b.String()
}

// TestAnswers asks one service in order. The clock stands 20 s after a minute began, and does not move.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s, c := overMemory(t, someRules, nil)
	c.advance(20 * time.Second)
	override := func(d *commonv3.RateLimitDescriptor, requests uint32, unit typev3.RateLimitUnit, multiplier uint32) *commonv3.RateLimitDescriptor {
		d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: requests, Unit: unit}
		if multiplier > 0 {
			d.Limit.UnitMultiplier = wrapperspb.UInt32(multiplier)
		}
		return d
	}
	for i, step := range []struct {
		request *ratelimitv3.RateLimitRequest
		want    string
	}{
		{request("d", of("ip", "1")), "OK | OK per_ip5/MINUTE 4 40s"},
		{request("d", of("ip", "2")), "OK | OK per_ip5/MINUTE 4 40s"},
		{&ratelimitv3.RateLimitRequest{Domain: "d", HitsAddend: 3, Descriptors: []*commonv3.RateLimitDescriptor{of("ip", "1"), withHits(of("ip", "2"), 1)}}, "OK | OK per_ip5/MINUTE 1 40s | OK per_ip5/MINUTE 3 40s"},
		// A denial spends nothing, and says what is left.
		{request("d", withHits(of("ip", "1"), 2)), "OVER_LIMIT | OVER_LIMIT per_ip5/MINUTE 1 40s"},
		{request("d", of("ip", "1")), "OK | OK per_ip5/MINUTE 0 40s"},
		{request("d", of("ip", "1")), "OVER_LIMIT | OVER_LIMIT per_ip5/MINUTE 0 40s"},
		// All are evaluated: what is allowed beside a denial is spent.
		{request("d", of("ip", "1"), of("ip", "2")), "OVER_LIMIT | OVER_LIMIT per_ip5/MINUTE 0 40s | OK per_ip5/MINUTE 2 40s"},
		// More than the limit is denied without asking, and spends nothing.
		{request("d", withHits(of("ip", "3"), 6)), "OVER_LIMIT | OVER_LIMIT per_ip5/MINUTE 0 40s"},
		{request("d", withHits(of("ip", "3"), math.MaxUint64)), "OVER_LIMIT | OVER_LIMIT per_ip5/MINUTE 0 40s"},
		{request("d", withHits(of("ip", "3"), 5)), "OK | OK per_ip5/MINUTE 0 40s"},
		{request("d", of("ip", "banned")), "OVER_LIMIT | OVER_LIMIT 0/HOUR 0 59m40s"},
		// What has no rule is not limited.
		{request("d", of("other", "x"), of("ip", "4", "deeper", "x")), "OK | OK 0 | OK 0"},
		{request("unknown", override(of("ip", "1"), 1, typev3.RateLimitUnit_DAY, 0)), "OK | OK 0"},
		{request("d", of("free", "x")), "OK | OK 4294967295"},
		// One that is replaced is not asked: nothing of it is spent.
		{request("d", of("ip", "5"), of("user", "u")), "OK | OK 0 | OK 2/MINUTE 1 40s"},
		{request("d", of("user", "u"), of("ip", "5")), "OK | OK 2/MINUTE 0 40s | OK 0"},
		{request("d", of("ip", "5")), "OK | OK per_ip5/MINUTE 4 40s"},
		// What is not limited replaces, and stays what it is when it is replaced.
		{request("d", of("free", "x"), of("gone", "x"), of("user", "v")), "OK | OK 4294967295 | OK 0 | OK 2/MINUTE 1 40s"},
		{request("d", of("shadow", "x")), "OK | OK 1/MINUTE 0 40s"},
		{request("d", of("shadow", "x")), "OK | OK 1/MINUTE 0 40s"},
		{request("d", of("quota", "x")), "OK | OK 1/MINUTE 0 40s"},
		{request("d", of("quota", "x")), "OK | OK 1/MINUTE 0 40s"},
		// One threshold for all values of a pattern, also within one request, in its order.
		{request("d", of("path", "/a/1"), of("path", "/a/2")), "OK | OK 3/WEEK 2 " + untilWeek(c) + " | OK 3/WEEK 1 " + untilWeek(c)},
		{request("d", of("path", "/a/3"), of("path", "/a/4")), "OVER_LIMIT | OK 3/WEEK 0 " + untilWeek(c) + " | OVER_LIMIT 3/WEEK 0 " + untilWeek(c)},
		{request("d", of("path", "/b")), "OK | OK 0"},
		{request("d", withHits(of("bucket", "x"), 4), withHits(of("bucket", "y"), 5)), "OVER_LIMIT | OK 1/SECOND 6 4s | OVER_LIMIT 1/SECOND 0 1s"},
		// A limit that the request brings along counts apart from the rule's and from others.
		{request("d", override(of("ip", "1"), 2, typev3.RateLimitUnit_MINUTE, 0)), "OK | OK 2/MINUTE 1 40s"},
		{request("d", override(of("ip", "1"), 3, typev3.RateLimitUnit_MINUTE, 0)), "OK | OK 3/MINUTE 2 40s"},
		{request("d", override(of("ip", "1"), 2, typev3.RateLimitUnit_MINUTE, 0)), "OK | OK 2/MINUTE 0 40s"},
		{request("d", override(of("ip", "1"), 2, typev3.RateLimitUnit_MINUTE, 0)), "OVER_LIMIT | OVER_LIMIT 2/MINUTE 0 40s"},
		{request("d", override(of("ip", "1"), 2, typev3.RateLimitUnit_SECOND, 30)), "OK | OK 2/30SECOND 1 10s"},
		{request("d", override(of("no", "rule"), 1, typev3.RateLimitUnit_YEAR, 0)), "OK | OK 1/YEAR 0 " + until(c, 365*24*time.Hour)},
		{request("d", override(of("ip", "1"), 0, typev3.RateLimitUnit_MINUTE, 0)), "OVER_LIMIT | OVER_LIMIT 0/MINUTE 0 40s"},
		{request("d", override(of("ip", "1"), math.MaxUint32, typev3.RateLimitUnit_MONTH, 0)), "OK | OK 4294967295/MONTH 4294967294 " + until(c, 30*24*time.Hour)},
	} {
		if got := brief(ask(t, s, step.request)); got != step.want {
			t.Errorf("step %d: %v\n got %s\nwant %s", i, step.request, got, step.want)
		}
	}
}

func until(c *clock, window time.Duration) string {
	return (window - time.Duration(c.read().UnixMilli()%window.Milliseconds())*time.Millisecond).String()
}

func untilWeek(c *clock) string { return until(c, 7*24*time.Hour) }

func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	s := service(t, config(t, someRules, portFunc(func(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		t.Error("a bad request reached the port")
		return nil, nil
	})))
	const raw = "someone@example"
	many := make([]string, 2*(envoyrls.MaxEntries+1))
	for i := range many {
		many[i] = raw
	}
	limited := func(l *commonv3.RateLimitDescriptor_RateLimitOverride) *commonv3.RateLimitDescriptor {
		d := of("ip", raw)
		d.Limit = l
		return d
	}
	negative := withHits(of("ip", raw), 1)
	negative.IsNegativeHits = true
	for _, c := range []struct {
		name    string
		request *ratelimitv3.RateLimitRequest
		want    string
	}{
		{"no request", nil, "domain is empty"},
		{"no domain", request("", of("ip", raw)), "domain is empty"},
		{"no descriptor", request("d"), "there is no descriptor"},
		{"too many descriptors", request("d", make([]*commonv3.RateLimitDescriptor, 17)...), "17 descriptors, at most 16"},
		{"an empty descriptor", request("d", of("ip", raw), nil), "descriptors[1] has no entry"},
		{"no key", request("d", of("", raw)), "descriptors[0].entries[0] has no key"},
		{"no key, nor entry", request("d", &commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{nil}}), "descriptors[0].entries[0] has no key"},
		{"too many entries", request("d", of(many...)), "descriptors[0] has 33 entries, at most 32"},
		{"looking", request("d", withHits(of("ip", raw), 0)), "descriptors[0].hits_addend is 0"},
		{"looking where there is no rule", request("x", withHits(of("none", raw), 0)), "descriptors[0].hits_addend is 0"},
		{"giving back", request("d", negative), "descriptors[0].is_negative_hits"},
		{"too long", request("d", of("ip", raw+strings.Repeat("x", ratelimit.MaxIdentityBytes))), "descriptors[0] is longer than 65536 bytes"},
		{"a limit without a unit", request("d", limited(&commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1})), "descriptors[0].limit"},
		{"of a unit that nobody knows", request("d", limited(&commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: 99})), "descriptors[0].limit"},
		{"of no time", request("d", limited(&commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: 1, UnitMultiplier: wrapperspb.UInt32(0)})), "descriptors[0].limit"},
		{"of 101 years", request("d", limited(&commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: 6, UnitMultiplier: wrapperspb.UInt32(101)})), "descriptors[0].limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			response, err := s.ShouldRateLimit(t.Context(), c.request)
			if response != nil || status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), raw) {
				t.Errorf("%v, %v; want %q", response, err, c.want)
			}
		})
	}
}

var (
	unavailable   = ratelimit.Unavailable{PolicyID: "p", RetryAfter: 1500 * time.Millisecond, Category: ratelimit.UnavailableConnection}
	indeterminate = ratelimit.Indeterminate{PolicyID: "p", RetryAfter: time.Second}
	incompatible  = ratelimit.Incompatible{PolicyID: "p", Category: ratelimit.IncompatibleState}
)

// TestFailures: what was not decided is never OK.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		outcome ratelimit.Outcome
		err     error
		panics  bool
		code    codes.Code
		reason  string
		retry   time.Duration
		denied  string // with FailureDeny
	}{
		{name: "unavailable", outcome: unavailable, code: codes.Unavailable, reason: "UNAVAILABLE CONNECTION", retry: 1500 * time.Millisecond, denied: " 2s"},
		{name: "indeterminate", outcome: indeterminate, code: codes.Unavailable, reason: "INDETERMINATE ", retry: time.Second, denied: " 1s"},
		{name: "incompatible", outcome: incompatible, code: codes.Internal, reason: "INCOMPATIBLE STATE"},
		{name: "nothing", code: codes.Internal},
		{name: "a pointer is no outcome", outcome: &ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: true}}, code: codes.Internal},
		{name: "a refusal", err: &ratelimit.InvalidRequestError{Fault: ratelimit.FaultDeadline, Reason: "r"}, code: codes.Internal},
		{name: "an allowance beside an error", outcome: allowance(5), err: errors.New("someone@example"), code: codes.Internal},
		{name: "a panic", panics: true, code: codes.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			cfg := config(t, someRules, portFunc(func(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
				if c.panics {
					panic("someone@example")
				}
				return c.outcome, c.err
			}))
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			for _, key := range []string{"ip", "shadow", "quota"} {
				response, err := service(t, cfg).ShouldRateLimit(t.Context(), request("d", of("other", "x"), of(key, "someone@example")))
				if response != nil || status.Code(err) != c.code {
					t.Fatalf("%s: %v, %v", key, response, err)
				}
				reason, retry := details(err)
				if reason != c.reason || retry != c.retry || strings.Contains(err.Error(), "someone") {
					t.Errorf("%s: %q, %v in %v", key, reason, retry, err)
				}
			}
			cfg.Failure = envoyrls.FailureDeny
			for key, limit := range map[string]string{"ip": "per_ip5", "shadow": "1", "quota": "1"} {
				want := "OVER_LIMIT | OK 0 | OVER_LIMIT " + limit + "/MINUTE 0" + c.denied
				if got := brief(ask(t, service(t, cfg), request("d", of("other", "x"), of(key, "someone@example")))); got != want {
					t.Errorf("%s: %s, want %s", key, got, want)
				}
			}
			cfg.Enforce = envoyrls.Shadow
			if got := ask(t, service(t, cfg), request("d", of("ip", "someone@example"))); got.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
				t.Errorf("in shadow, what was not decided is %v", got)
			}
			if strings.Contains(log.String(), "someone") {
				t.Errorf("the log repeats a descriptor: %s", log.String())
			}
		})
	}
}

func details(err error) (reason string, retry time.Duration) {
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason = d.GetReason() + " " + d.GetMetadata()["category"]
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration()
		}
	}
	return reason, retry
}

func allowance(remaining int64) ratelimit.Outcome {
	return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: true, Limit: 5, Remaining: remaining, ResetAt: time.UnixMilli(1)}}
}

// TestADenialBesideAFailure: what is denied stays denied, whichever comes first.
func TestADenialBesideAFailure(t *testing.T) {
	t.Parallel()
	denial := ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Limit: 5, RetryAfter: time.Second, ResetAt: time.UnixMilli(1)}}
	cfg := config(t, someRules, portFunc(func(_ context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		if strings.Contains(string(r.PolicyID), "user") {
			return denial, nil
		}
		return unavailable, nil
	}))
	s := service(t, cfg)
	for _, r := range []*ratelimitv3.RateLimitRequest{
		request("d", of("bucket", "1"), of("user", "1")), request("d", of("user", "1"), of("bucket", "1")),
	} {
		response := ask(t, s, r)
		if response.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
			t.Errorf("%v", response)
		}
		got := []ratelimitv3.RateLimitResponse_Code{response.GetStatuses()[0].GetCode(), response.GetStatuses()[1].GetCode()}
		if got[0]+got[1] != ratelimitv3.RateLimitResponse_OVER_LIMIT+ratelimitv3.RateLimitResponse_UNKNOWN {
			t.Errorf("codes %v", got)
		}
	}
	// A denial that does not count does not hide the failure.
	if _, err := s.ShouldRateLimit(t.Context(), request("d", of("shadow", "1"), of("bucket", "1"))); status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
	cfg.Enforce = envoyrls.Shadow
	if _, err := service(t, cfg).ShouldRateLimit(t.Context(), request("d", of("user", "1"), of("bucket", "1"))); status.Code(err) != codes.Unavailable {
		t.Errorf("in shadow: %v", err)
	}
}

func TestShadow(t *testing.T) {
	t.Parallel()
	s, _ := overMemory(t, someRules, func(c *envoyrls.Config) { c.Enforce = envoyrls.Shadow })
	response := ask(t, s, request("d", withHits(of("ip", "1"), 6), of("ip", "banned")))
	if response.GetOverallCode() != ratelimitv3.RateLimitResponse_OK ||
		response.GetStatuses()[0].GetCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT ||
		response.GetStatuses()[1].GetCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("%v", response)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	var got time.Time
	cfg := config(t, someRules, portFunc(func(ctx context.Context, _ ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		got, _ = ctx.Deadline()
		return allowance(1), nil
	}))
	s := service(t, cfg)
	before := time.Now()
	ask(t, s, request("d", of("ip", "1")))
	if got.Before(before.Add(cfg.DefaultDeadline)) || got.After(time.Now().Add(cfg.DefaultDeadline)) {
		t.Errorf("without one: %v", got.Sub(before))
	}
	want := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), want)
	defer cancel()
	if _, err := s.ShouldRateLimit(ctx, request("d", of("ip", "1"))); err != nil || !got.Equal(want) {
		t.Errorf("its own: %v, %v", got, err)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s, c := overMemory(t, someRules, func(c *envoyrls.Config) {
		c.Headers = envoyrls.Headers{Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset", RetryAfter: "Retry-After"}
	})
	c.advance(20*time.Second + time.Millisecond)
	text := func(r *ratelimitv3.RateLimitResponse) string {
		var parts []string
		for _, h := range r.GetResponseHeadersToAdd() {
			parts = append(parts, strings.TrimPrefix(h.GetKey(), "RateLimit-")+"="+h.GetValue())
		}
		return strings.Join(parts, " ")
	}
	for i, step := range []struct {
		request *ratelimitv3.RateLimitRequest
		want    string
	}{
		{request("d", of("none", "x")), ""},
		{request("d", of("free", "x")), ""},
		{request("d", of("ip", "1"), of("bucket", "1"), of("none", "x")), "Limit=5 Remaining=4 Reset=40"},
		{request("d", withHits(of("ip", "1"), 3), withHits(of("user", "1"), 2)), "Limit=2 Remaining=0 Reset=40"},
		{request("d", of("user", "1")), "Limit=2 Remaining=0 Reset=40 Retry-After=40"},
		// Of two that deny, the one that does so for longer.
		{request("d", of("user", "1"), of("ip", "banned")), "Limit=0 Remaining=0 Reset=3580"},
		{request("d", of("ip", "banned"), of("user", "1"), of("bucket", "2")), "Limit=0 Remaining=0 Reset=3580"},
	} {
		if got := text(ask(t, s, step.request)); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	for name, want := range map[string]bool{"RateLimit-Limit": true, "x": true, "": false, ":path": false, "a b": false, "a\n": false, "ä": false, strings.Repeat("x", 129): false} {
		if envoyrls.ValidHeader(name) != want {
			t.Errorf("%q", name)
		}
	}
}

func TestDynamicMetadata(t *testing.T) {
	t.Parallel()
	s, _ := overMemory(t, someRules, func(c *envoyrls.Config) { c.DynamicMetadata = true })
	overridden := withHits(of("ip", "1", "empty", ""), 2)
	overridden.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 9, Unit: typev3.RateLimitUnit_HOUR}
	r := request("d", of("quota", "x"), of("path", "/a/1"), overridden)
	r.HitsAddend = 1
	const sent = `{"descriptors":[{"entries":["quota=x"]},{"entries":["path=/a/1"]},{"entries":["ip=1","empty="],"hitsAddend":2,"limit":"9/HOUR"}],"domain":"d","hitsAddend":1,`
	for i, want := range []string{
		// The first to say something about a key says it.
		sent + `"metadata":{"deep":{"a":1,"b":3},"of":"quota"},"quotaModeEnabled":true}`,
		sent + `"metadata":{"deep":{"a":2,"b":3}},"quotaModeEnabled":true,"quotaModeViolations":[0]}`,
	} {
		got, err := ask(t, s, r).GetDynamicMetadata().MarshalJSON()
		if err != nil || strings.ReplaceAll(string(got), ", ", ",") != want && strings.ReplaceAll(strings.ReplaceAll(string(got), ", ", ","), ": ", ":") != want {
			t.Errorf("%d: %v\n got %s\nwant %s", i, err, got, want)
		}
	}
	got := ask(t, s, request("d", of("shadow", "1"))).GetDynamicMetadata().AsMap()
	if got["quotaModeEnabled"] != false || got["hitsAddend"] != nil || got["metadata"] == nil {
		t.Errorf("%v", got)
	}
	plain, _ := overMemory(t, someRules, nil)
	if m := ask(t, plain, r).GetDynamicMetadata(); m != nil {
		t.Errorf("nobody asked for %v", m)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := envoyrls.New(envoyrls.Config{Headers: envoyrls.Headers{Reset: "a b"}})
	for _, want := range []string{"no rules", "no ports", "no digester", "failure mode", "enforcement", "default deadline", "max descriptors", `"a b"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	cfg := config(t, someRules, newMemoryPorts(t, time.Now))
	cfg.MaxClockRegression = cfg.CleanupGrace + time.Second
	if _, err := envoyrls.New(cfg); err == nil || !strings.Contains(err.Error(), "CleanupGrace") {
		t.Errorf("a grace below the regression: %v", err)
	}
	refusing := config(t, someRules, refusingPorts{})
	if _, err := envoyrls.New(refusing); !errors.Is(err, errRefused) {
		t.Errorf("%v", err)
	}
	if err := service(t, config(t, someRules, newMemoryPorts(t, time.Now))).Replace(nil); err == nil {
		t.Error("no rules replace rules")
	}
	for mode, want := range map[envoyrls.FailureMode]string{envoyrls.FailureError: "error", envoyrls.FailureDeny: "deny", 9: "INVALID"} {
		if mode.String() != want {
			t.Errorf("%v", mode)
		}
	}
}

var errRefused = errors.New("refused")

type refusingPorts struct{}

func (refusingPorts) WithPolicies(*ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	return nil, errRefused
}
