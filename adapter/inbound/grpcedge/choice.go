package grpcedge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// PolicyFunc says under which policy a call counts. method is as gRPC writes it, /shop.v1.Orders/Place.
// An ID that there is no policy of closes the door with INTERNAL. It runs on the call's goroutine.
type PolicyFunc func(ctx context.Context, method string) ratelimit.PolicyID

// OnePolicy is the same policy for every call.
func OnePolicy(id ratelimit.PolicyID) PolicyFunc {
	return func(context.Context, string) ratelimit.PolicyID { return id }
}

// PolicyByMethod is a policy for each method, and another for all that the table does not name.
func PolicyByMethod(table map[string]ratelimit.PolicyID, otherwise ratelimit.PolicyID) PolicyFunc {
	own := maps.Clone(table)
	return func(_ context.Context, method string) ratelimit.PolicyID {
		if id, there := own[method]; there {
			return id
		}
		return otherwise
	}
}

// SubjectFunc says whom a call counts for. Where it gives an error the call is refused with
// INVALID_ARGUMENT; one of NoSubject and BadSubject has its reason shown, the text of another is not.
type SubjectFunc func(ctx context.Context, method string) (Subject, error)

// ClientAddress limits by client address: the peer's, or the one that a trusted proxy tells in the
// metadata that the configuration names. Its subjects are those of httpedge.
func ClientAddress(config AddressConfig) (SubjectFunc, error) {
	if err := config.Check(); err != nil {
		return nil, fmt.Errorf("grpcedge: %w", err)
	}
	key := config.Header.String()
	return func(ctx context.Context, _ string) (Subject, error) {
		from := ""
		if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
			from = p.Addr.String()
		}
		subject, _, err := config.Subject(from, metadata.ValueFromIncomingContext(ctx, key))
		return subject, err
	}, nil
}

// APIKey limits by the value of a metadata key, which a call must have exactly once and not empty, of
// at most MaxSubjectBytes. It does not judge the key: an authentication in front does. Its subjects are
// those of httpedge.APIKey.
func APIKey(key string) (SubjectFunc, error) {
	if !validKey(key) {
		return nil, errors.New("grpcedge: APIKey: the key is none of gRPC's metadata: 1..128 of a-z 0-9 . _ -, not beginning with grpc- and not ending with -bin")
	}
	missing := NoSubject("the metadata " + key + " is missing")
	twice := BadSubject("the metadata " + key + " is there more than once")
	long := BadSubject(fmt.Sprintf("the metadata %s is longer than %d bytes", key, MaxSubjectBytes))
	return func(ctx context.Context, _ string) (Subject, error) {
		values := metadata.ValueFromIncomingContext(ctx, key)
		switch {
		case len(values) == 0 || len(values) == 1 && values[0] == "":
			return Subject{}, missing
		case len(values) > 1:
			return Subject{}, twice
		case len(values[0]) > MaxSubjectBytes:
			return Subject{}, long
		}
		return RawSubject("header:" + key + ":" + values[0]), nil
	}, nil
}

func validKey(key string) bool {
	if key == "" || len(key) > 128 || strings.HasPrefix(key, "grpc-") || strings.HasSuffix(key, "-bin") {
		return false
	}
	for i := range len(key) {
		if c := key[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && strings.IndexByte("._-", c) < 0 {
			return false
		}
	}
	return true
}

// Method limits a method as a whole, whoever calls.
func Method(_ context.Context, method string) (Subject, error) {
	return RawSubject("method:" + method), nil
}
