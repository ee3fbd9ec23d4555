package doors

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
)

func splitAddress(address string) (host, port string, err error) { return net.SplitHostPort(address) }

// Contender is the door as a run takes it. Each Open dials anew.
func (d *Door) Contender() contender.Contender {
	return contender.Contender{
		Name: d.Name, Module: d.Module, Role: d.Role, Algorithm: "fixed window", Note: d.Note,
		Open: func(_ context.Context, setting contender.Setting) (contender.Decider, error) { return d.open(setting) },
	}
}

// client asks a door.
type client struct {
	connections []*grpc.ClientConn
	services    []ratelimitv3.RateLimitServiceClient
	requests    []*ratelimitv3.RateLimitRequest
}

func (d *Door) open(setting contender.Setting) (contender.Decider, error) {
	c := &client{}
	for range runtime.GOMAXPROCS(0) {
		connection, err := grpc.NewClient("passthrough:///"+d.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.connections = append(c.connections, connection)
		c.services = append(c.services, ratelimitv3.NewRateLimitServiceClient(connection))
	}
	key := allowKey
	if setting.Kind == contender.Deny {
		key = denyKey
	}
	for i := range setting.Keys {
		c.requests = append(c.requests, &ratelimitv3.RateLimitRequest{
			Domain: domain,
			Descriptors: []*commonv3.RateLimitDescriptor{{
				Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: strconv.Itoa(i)}},
			}},
		})
	}
	return c, nil
}

// Decide asks once. Anything but OK and OVER_LIMIT is an error.
func (c *client) Decide(ctx context.Context, key int) (bool, error) {
	answer, err := c.services[key%len(c.services)].ShouldRateLimit(ctx, c.requests[key])
	if err != nil {
		return false, err
	}
	switch code := answer.GetOverallCode(); code {
	case ratelimitv3.RateLimitResponse_OK:
		return true, nil
	case ratelimitv3.RateLimitResponse_OVER_LIMIT:
		return false, nil
	case ratelimitv3.RateLimitResponse_UNKNOWN:
		fallthrough
	default:
		return false, fmt.Errorf("doors: the overall code is %v", code)
	}
}

// Close ends the connections.
func (c *client) Close() error {
	faults := make([]error, len(c.connections))
	for i, connection := range c.connections {
		faults[i] = connection.Close()
	}
	return errors.Join(faults...)
}
