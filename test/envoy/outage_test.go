package envoy

import (
	"errors"
	"fmt"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestAnOutageIsNoAllowance: while Redis is away, calls fail or are denied as configured, and when it is
// back they are decided again, without a restart.
func TestAnOutageIsNoAllowance(t *testing.T) {
	t.Parallel()
	const rules = "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: year, requests_per_unit: 1000000}}\n- {key: a, value: banned, rate_limit: {unit: year, requests_per_unit: 0}}\n- {key: s, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 5}}\n"
	server := lanes.StartProcess(t, lanes.Options{})
	b := composed(t, server.Addr)
	_, failing := open(t, settings(t, rules), b, nil)
	denies := settings(t, rules)
	denies.Failure = config.EnvoyFailureDeny
	_, denying := open(t, denies, b, nil)
	plain := (step{Ask: []string{"a=x"}}).request(t, "d")
	decided := func(client ratelimitv3.RateLimitServiceClient) {
		t.Helper()
		eventually(t, "a decision", func() error {
			response, err := call(t.Context(), client, plain)
			if err == nil && response.GetOverallCode() != ratelimitv3.RateLimitResponse_OK {
				err = fmt.Errorf("%v", response)
			}
			return err
		})
	}
	decided(failing)
	decided(denying)
	server.Stop()
	for range 20 {
		for _, ask := range [][]string{{"a=x"}, {"s=x"}, {"other=x", "a=y"}, {"a=x", "a=y", "a=z"}} {
			response, err := call(t.Context(), failing, (step{Ask: ask}).request(t, "d"))
			if status.Code(err) != codes.Unavailable || response != nil {
				t.Fatalf("%v: %v, %v", ask, response, err)
			}
			var info *errdetails.ErrorInfo
			for _, d := range status.Convert(err).Details() {
				if i, ok := d.(*errdetails.ErrorInfo); ok {
					info = i
				}
			}
			if reason := info.GetReason(); reason != "UNAVAILABLE" && reason != "INDETERMINATE" {
				t.Errorf("%v: %v", ask, info)
			}
			response, err = call(t.Context(), denying, (step{Ask: ask}).request(t, "d"))
			if err != nil || response.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
				t.Fatalf("%v: %v, %v", ask, response, err)
			}
		}
	}
	// What needs no store is answered, and a denial stays one.
	for _, c := range []struct {
		ask  []string
		want []string
	}{
		{[]string{"other=x"}, []string{"OK", "OK"}},
		{[]string{"a=banned"}, []string{"OVER_LIMIT", "OVER_LIMIT 0/YEAR 0"}},
		{[]string{"a=x", "a=banned"}, []string{"OVER_LIMIT", "UNKNOWN 1000000/YEAR 0", "OVER_LIMIT 0/YEAR 0"}},
	} {
		response, err := call(t.Context(), failing, (step{Ask: c.ask}).request(t, "d"))
		if err != nil || fmt.Sprint(brief(response)) != fmt.Sprint(c.want) {
			t.Errorf("%v: %v, %v", c.ask, response, err)
		}
	}
	server.Restart()
	eventually(t, "ready again", func() error { return errors.Join(b.ready()) })
	decided(failing)
	decided(denying)
}
