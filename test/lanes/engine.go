package lanes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

const noDockerEnv = "EDGELIMIT_TEST_NO_DOCKER"

// engine is the client of a Docker Engine that answers.
var engine = sync.OnceValues(func() (cli client.APIClient, err error) {
	if os.Getenv(noDockerEnv) != "" {
		return nil, fmt.Errorf("%s is set", noDockerEnv)
	}
	// The reaper of this package removes containers by their ID and needs no
	// image of its own, which a machine without a registry could not pull.
	setenvIfUnset("TESTCONTAINERS_RYUK_DISABLED", "true")
	if _, err := os.Stat("/.dockerenv"); err == nil {
		// In a container the engine's gateway is taken for the host; an engine
		// that runs beside the tests publishes on loopback.
		setenvIfUnset("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
	log.SetDefault(log.NewNoopLogger())

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		// An engine that is named and does not answer is not replaced by one
		// that happens to be there.
		named, err := client.New(client.FromEnv)
		if err != nil {
			return nil, fmt.Errorf("DOCKER_HOST=%s: %w", host, err)
		}
		defer func() { _ = named.Close() }()
		if _, err := named.Ping(ctx, client.PingOptions{}); err != nil {
			return nil, fmt.Errorf("DOCKER_HOST=%s: %w", host, err)
		}
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("docker: %v", r)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	cli = provider.Client()
	if _, err := cli.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	if _, err := cli.Info(ctx, client.InfoOptions{}); err != nil {
		return nil, errors.Join(errors.New("docker info"), err)
	}
	return cli, nil
})

// isLocal tells whether the engine's published ports are this machine's own.
func isLocal(cli client.APIClient) bool {
	return strings.HasPrefix(cli.DaemonHost(), "unix://")
}

func setenvIfUnset(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		_ = os.Setenv(name, value)
	}
}
