package lanes

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

const (
	addrEnv  = "EDGELIMIT_TEST_REDIS_ADDR"
	imageEnv = "EDGELIMIT_TEST_REDIS_IMAGE"

	// defaultImage is the lowest Redis version that the program manifests name.
	defaultImage = "redis:7.4-alpine"
)

var startDefaultOnce = sync.OnceValues(startDefault)

// Default is the Redis that the tests of this process share, started with the
// first call: the address that the user names, else a container, else a
// redis-server process.
func Default(tb testing.TB) *Server {
	tb.Helper()
	requireMain(tb)
	server, err := startDefaultOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return server
}

// All is every shared server that this machine gives: Default and Debian70. A
// test that holds for Redis in general runs against each of them.
func All(tb testing.TB) []*Server {
	tb.Helper()
	return []*Server{Default(tb), Debian70(tb)}
}

func startDefault() (*Server, error) {
	if addr := os.Getenv(addrEnv); addr != "" {
		if err := answers(addr, nil); err != nil {
			return nil, &missingError{what: "Redis", tried: []string{fmt.Sprintf("%s=%s: %v", addrEnv, addr, err)}}
		}
		server, err := describe("address", addr, addrEnv)
		if err != nil {
			return nil, err
		}
		announce(server.String())
		return server, nil
	}

	image, asked := os.Getenv(imageEnv), true
	if image == "" {
		image, asked = defaultImage, false
	}
	server, err := startContainer("container", image, asked, "trixie")
	if err == nil {
		announce(server.String())
		return server, nil
	}
	tried := []string{"a container: " + err.Error()}
	if asked {
		// Whoever names an image wants that one and no other.
		return nil, &missingError{what: "Redis from image " + image, tried: tried}
	}
	announce("lane container is not available here: " + firstLine(err) + "; using a process")

	server, err = startShared("process", "")
	if err != nil {
		return nil, &missingError{what: "Redis", tried: append(tried, "a redis-server process: "+err.Error())}
	}
	announce(server.String())
	return server, nil
}

// startShared runs a redis-server that lasts as long as the test process.
func startShared(lane, binary string) (*Server, error) {
	d, err := launch(Options{Binary: binary}, "")
	if err != nil {
		return nil, err
	}
	server, err := describe(lane, d.addr, d.binary)
	if err != nil {
		d.end()
		return nil, err
	}
	return server, nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
