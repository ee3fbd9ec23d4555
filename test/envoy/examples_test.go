package envoy

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/test/lanes"
)

type example struct {
	Name  string
	Rules string
	Steps []step
}

type step struct {
	Ask     []string
	Hits    uint32
	OwnHits *uint64 `yaml:"own-hits"`
	Limit   string
	Want    []string
	There   []string
	Why     string
}

func examples(t testing.TB) []example {
	t.Helper()
	content, err := os.ReadFile("testdata/examples.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	var all []example
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// request is that of a step; every descriptor of it has the step's own hits and limit.
func (s step) request(t testing.TB, domain string) *ratelimitv3.RateLimitRequest {
	t.Helper()
	r := &ratelimitv3.RateLimitRequest{Domain: domain, HitsAddend: s.Hits}
	for _, written := range s.Ask {
		d := &commonv3.RateLimitDescriptor{}
		for _, entry := range strings.Split(written, ",") {
			if key, value, ok := strings.Cut(entry, "="); ok {
				d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
			}
		}
		if s.OwnHits != nil {
			d.HitsAddend = wrapperspb.UInt64(*s.OwnHits)
		}
		if s.Limit != "" {
			requests, unit, _ := strings.Cut(s.Limit, "/")
			n, err := strconv.ParseUint(requests, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: uint32(n), Unit: typev3.RateLimitUnit(typev3.RateLimitUnit_value[unit]),
			}
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// run asks an example's requests in order and gives what differs from what it says.
func (e example) run(t *testing.T, b backend) string {
	t.Helper()
	_, client := open(t, settings(t, e.Rules), b, nil)
	domain := domainOf(t, e.Rules)
	var got, want []string
	for _, s := range e.Steps {
		response, err := call(t.Context(), client, s.request(t, domain))
		line := ""
		switch {
		case status.Code(err) == codes.InvalidArgument:
			line = "INVALID_ARGUMENT"
		case err != nil:
			t.Fatalf("%v: %v", s.Ask, err)
		default:
			line = strings.Join(brief(response), ", ")
		}
		got = append(got, strings.Join(s.Ask, " ")+": "+line)
		want = append(want, strings.Join(s.Ask, " ")+": "+strings.Join(s.Want, ", "))
	}
	return cmp.Diff(want, got)
}

// TestExamplesAreWhole: every difference of the list is one that is named, and every step that differs says
// so.
func TestExamplesAreWhole(t *testing.T) {
	t.Parallel()
	named := make(map[string]bool)
	for _, d := range rules.Differences() {
		named[d.What] = true
	}
	differing := 0
	for _, e := range examples(t) {
		if len(e.Steps) == 0 {
			t.Errorf("%s asks nothing", e.Name)
		}
		for _, s := range e.Steps {
			if (s.There == nil) != (s.Why == "") || s.Why != "" && !named[s.Why] || len(s.Want) == 0 || cmp.Equal(s.There, s.Want) {
				t.Errorf("%s: %+v", e.Name, s)
			}
			if s.There != nil {
				differing++
			}
		}
	}
	if differing == 0 {
		t.Error("nothing differs")
	}
}

// TestExamplesInMemory and those below ask all examples under a clock that stands still, so that no window
// ends between two requests.
func TestExamplesInMemory(t *testing.T) {
	t.Parallel()
	for _, e := range examples(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			if diff := e.run(t, stillMemory(t, time.Now().Truncate(time.Second))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExamplesOnRedisUnderASetClock(t *testing.T) {
	t.Parallel()
	server := lanes.StartFaketime(t)
	for _, e := range examples(t) {
		t.Run(e.Name, func(t *testing.T) {
			if diff := e.run(t, composed(t, server.Addr)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestExamplesOnRedis asks the Redis of each lane, whose clock goes on: an example in the middle of which a
// second began is asked again.
func TestExamplesOnRedis(t *testing.T) {
	t.Parallel()
	for _, server := range lanes.All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			t.Parallel()
			clock := redis.NewClient(&redis.Options{Addr: server.Addr})
			t.Cleanup(func() { _ = clock.Close() })
			second := func() time.Time {
				now, err := clock.Time(t.Context()).Result()
				if err != nil {
					t.Fatal(err)
				}
				return now.Truncate(time.Second)
			}
			for _, e := range examples(t) {
				t.Run(e.Name, func(t *testing.T) {
					for attempt := 1; ; attempt++ {
						b := composed(t, server.Addr)
						began := second()
						diff := e.run(t, b)
						if diff == "" {
							return
						}
						if second().Equal(began) || attempt == 20 {
							t.Fatalf("attempt %d (-want +got):\n%s", attempt, diff)
						}
					}
				})
			}
		})
	}
}
