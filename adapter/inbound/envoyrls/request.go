package envoyrls

import (
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

// descriptor is a descriptor of a request, checked.
type descriptor struct {
	entries  []rules.Entry
	hits     uint64
	override override
	hasLimit bool // the request brings a limit along
}

// readRequest holds a request to what this revision answers. Its errors name places, never what stands
// there.
func (s *Service) readRequest(request *ratelimitv3.RateLimitRequest) ([]descriptor, error) {
	if request.GetDomain() == "" {
		return nil, invalid("domain is empty")
	}
	count := len(request.GetDescriptors())
	if count == 0 {
		return nil, invalid("there is no descriptor")
	}
	if count > s.config.MaxDescriptors {
		return nil, invalid("there are %d descriptors, at most %d", count, s.config.MaxDescriptors)
	}
	// An unset hits_addend of the request is 0 on the wire.
	hits := uint64(max(1, request.GetHitsAddend()))
	descriptors := make([]descriptor, count)
	for i, d := range request.GetDescriptors() {
		if err := readDescriptor(&descriptors[i], i, d, hits); err != nil {
			return nil, err
		}
	}
	return descriptors, nil
}

func readDescriptor(into *descriptor, i int, d *commonv3.RateLimitDescriptor, hits uint64) error {
	count := len(d.GetEntries())
	switch {
	case count == 0:
		return invalid("descriptors[%d] has no entry", i)
	case count > MaxEntries:
		return invalid("descriptors[%d] has %d entries, at most %d", i, count, MaxEntries)
	case d.GetIsNegativeHits():
		return invalid("descriptors[%d].is_negative_hits is set: nothing is given back in this revision", i)
	}
	into.hits = hits
	if own := d.GetHitsAddend(); own != nil {
		if into.hits = own.GetValue(); into.hits == 0 {
			return invalid("descriptors[%d].hits_addend is 0: looking without spending is not supported in this revision", i)
		}
	}
	into.entries = make([]rules.Entry, count)
	for j, e := range d.GetEntries() {
		if e.GetKey() == "" {
			return invalid("descriptors[%d].entries[%d] has no key", i, j)
		}
		into.entries[j] = rules.Entry{Key: e.GetKey(), Value: e.GetValue()}
	}
	if limit := d.GetLimit(); limit != nil {
		into.hasLimit = true
		var ok bool
		if into.override, ok = readOverride(limit); !ok {
			return invalid("descriptors[%d].limit has no unit, or a span of time beyond 100 years", i)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
