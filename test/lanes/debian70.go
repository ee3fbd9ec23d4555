package lanes

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

var startDebian70Once = sync.OnceValues(startDebian70)

// Debian70 is the second lane: Redis 7.0, which Debian 12 ships, shared by the
// tests of this process. It runs as a process, and on a machine whose packages
// hold another version as a container.
func Debian70(tb testing.TB) *Server {
	tb.Helper()
	requireMain(tb)
	server, err := startDebian70Once()
	if err != nil {
		tb.Fatal(err)
	}
	return server
}

func startDebian70() (*Server, error) {
	const lane, wanted = "debian70", "7.0."
	var tried []string
	for _, find := range []func() (string, error){installedServer, unpackedServer} {
		binary, err := find()
		if err != nil {
			tried = append(tried, "a process: "+err.Error())
			continue
		}
		if version, err := binaryVersion(binary); err != nil || !strings.HasPrefix(version.number, wanted) {
			tried = append(tried, fmt.Sprintf("a process of %s: version %q, %v", binary, version.number, err))
			continue
		}
		server, err := startShared(lane, binary)
		if err != nil {
			tried = append(tried, "a process: "+err.Error())
			continue
		}
		announce(server.String())
		return server, nil
	}
	server, err := startContainer(lane, "redis:7.0-alpine", false, "bookworm")
	if err != nil {
		return nil, &missingError{what: "Redis 7.0", tried: append(tried, "a container: "+err.Error())}
	}
	if !strings.HasPrefix(server.Version, wanted) {
		return nil, fmt.Errorf("lanes: %v is no Redis 7.0", server)
	}
	announce(server.String())
	return server, nil
}
