package lanes

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

// startContainer runs a Redis in a container that lasts as long as the test
// process. Where image cannot be pulled, and was not asked for by name, an image
// made of the Debian suite's redis-server takes its place.
func startContainer(lane, image string, asked bool, suite string) (*Server, error) {
	cli, err := engine()
	if err != nil {
		return nil, err
	}
	if err := pulled(cli, image); err != nil {
		if asked {
			return nil, err
		}
		debian, makeErr := made(cli, suite)
		if makeErr != nil {
			return nil, fmt.Errorf("%w; %w", err, makeErr)
		}
		image = debian
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	handOver := testcontainers.ContainerLifecycleHooks{
		PostCreates: []testcontainers.ContainerHook{
			func(_ context.Context, c testcontainers.Container) error { return reapLater(c.GetContainerID()) },
		},
	}
	running, err := testcontainers.Run(ctx, image,
		testcontainers.WithExposedPorts("6379/tcp"),
		testcontainers.WithCmd("redis-server", "--bind", "0.0.0.0", "--protected-mode", "no",
			"--save", "", "--appendonly", "no"),
		testcontainers.WithAdditionalLifecycleHooks(handOver),
		testcontainers.WithHostConfigModifier(func(config *container.HostConfig) {
			if isLocal(cli) {
				// The engine's default is every interface of the machine.
				config.PortBindings = network.PortMap{
					network.MustParsePort("6379/tcp"): {{HostIP: netip.MustParseAddr("127.0.0.1")}},
				}
			}
		}),
	)
	end := func() {
		if running != nil {
			_ = testcontainers.TerminateContainer(running, testcontainers.StopTimeout(2*time.Second))
		}
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("start image %s: %w", image, err)
	}
	end = atEnd(end)

	server, err := describeContainer(ctx, running, lane, image)
	if err != nil {
		end()
		return nil, fmt.Errorf("image %s: %w", image, err)
	}
	return server, nil
}

func describeContainer(ctx context.Context, running testcontainers.Container, lane, image string) (*Server, error) {
	addr, err := running.PortEndpoint(ctx, "6379/tcp", "")
	if err != nil {
		return nil, err
	}
	if err := poll(20*time.Second, nil, func() error { return answers(addr, nil) }); err != nil {
		return nil, err
	}
	server, err := describe(lane, addr, "image "+image)
	if err != nil {
		return nil, err
	}
	return server, honestTag(image, server.Version)
}

// honestTag refuses a server that is not what its image's name says: the lane
// of the lowest supported version would otherwise prove nothing.
func honestTag(image, version string) error {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if strings.Contains(tag, "7.4") && !strings.HasPrefix(version, "7.4.") {
		return fmt.Errorf("it is named 7.4 and reports version %s", version)
	}
	return nil
}
