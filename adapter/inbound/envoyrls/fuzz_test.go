package envoyrls_test

import (
	"context"
	"sync"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// FuzzDescriptorToPolicy: whatever a message says, it is refused as invalid or every one of its
// descriptors is mapped: to a policy of the rules or of a limit that it brought along, with a cost that
// policy takes, or to none. The same descriptor maps to the same place twice, and what the port denies is
// never OK.
func FuzzDescriptorToPolicy(f *testing.F) {
	seed := func(r *ratelimitv3.RateLimitRequest) {
		encoded, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	seed(request("d", of("ip", "1"), of("user", "u"), of("free", "")))
	seed(request("d", withHits(of("path", "/a/1"), 3), of("none", "x", "y", "z")))
	limited := of("ip", "1")
	limited.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 5, Unit: typev3.RateLimitUnit_DAY}
	seed(request("d", limited))
	seed(request("", of("", "")))
	loaded := parse(f, someRules)
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var r ratelimitv3.RateLimitRequest
		if proto.Unmarshal(encoded, &r) != nil {
			return // the server refuses it before it comes here
		}
		var mu sync.Mutex
		asked := make(map[ratelimit.RateLimitRequest]int)
		ports := &recordingPorts{evaluate: func(set *ratelimit.PolicySet, q ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[q]++
			p := set.Get(q.PolicyID)
			if p == nil || q.Cost < 1 || q.Cost > p.MaxCost() || q.Subject.IsZero() || q.EvaluationID != "" {
				t.Errorf("the port is asked %+v", q)
			}
			return ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Limit: 1, RetryAfter: 1}}, nil
		}}
		cfg := config(t, "domain: d", ports)
		cfg.Rules, cfg.DynamicMetadata = loaded, true
		cfg.Headers = envoyrls.Headers{Limit: "l", Remaining: "m", Reset: "r", RetryAfter: "a"}
		s := service(t, cfg)
		response, err := s.ShouldRateLimit(t.Context(), &r)
		if err != nil {
			if status.Code(err) != codes.InvalidArgument || len(asked) != 0 {
				t.Fatalf("%v after %d questions", err, len(asked))
			}
			return
		}
		if len(response.GetStatuses()) != len(r.GetDescriptors()) || len(r.GetDescriptors()) > cfg.MaxDescriptors {
			t.Fatalf("%v of %v", response, &r)
		}
		over := false
		for _, st := range response.GetStatuses() {
			over = over || st.GetCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT
			if st.GetCode() == ratelimitv3.RateLimitResponse_UNKNOWN {
				t.Errorf("%v", st)
			}
		}
		if over != (response.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT) {
			t.Errorf("%v", response)
		}
		first := asked
		asked = make(map[ratelimit.RateLimitRequest]int)
		again, err := s.ShouldRateLimit(t.Context(), &r)
		if err != nil || again.GetOverallCode() != response.GetOverallCode() || len(asked) != len(first) {
			t.Fatalf("again: %v, %v", again, err)
		}
		for q, n := range first {
			if asked[q] != n {
				t.Errorf("%+v was asked %d times and then %d times", q, n, asked[q])
			}
		}
	})
}

// recordingPorts tell what their ports are asked.
type recordingPorts struct {
	evaluate func(*ratelimit.PolicySet, ratelimit.RateLimitRequest) (ratelimit.Outcome, error)
}

func (p *recordingPorts) WithPolicies(set *ratelimit.PolicySet) (ratelimit.EdgeRateLimitPort, error) {
	return portFunc(func(_ context.Context, r ratelimit.RateLimitRequest) (ratelimit.Outcome, error) {
		return p.evaluate(set, r)
	}), nil
}
