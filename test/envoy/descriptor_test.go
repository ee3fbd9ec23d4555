package envoy

import (
	"errors"
	"slices"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

var (
	errAllowed = errors.New("it is allowed")
	errDenied  = errors.New("it is denied")
)

// descriptor is one of keys and values that no text of examples.yaml can hold.
func descriptor(entries ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for pair := range slices.Chunk(entries, 2) {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pair[0], Value: pair[1]})
	}
	return d
}
