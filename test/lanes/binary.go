package lanes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	serverEnv   = "EDGELIMIT_TEST_REDIS_SERVER"
	noSystemEnv = "EDGELIMIT_TEST_NO_SYSTEM_REDIS"
)

// serverBinary is the redis-server that processes run when a test names none:
// the one that the user names, the one in PATH, or Debian's package unpacked.
var serverBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(serverEnv); path != "" {
		if _, err := binaryVersion(path); err != nil {
			return "", fmt.Errorf("%s: %w", serverEnv, err)
		}
		return path, nil
	}
	path, err := installedServer()
	if err == nil {
		return path, nil
	}
	unpacked, unpackErr := unpackedServer()
	if unpackErr != nil {
		return "", fmt.Errorf("%w; %w", err, unpackErr)
	}
	return unpacked, nil
})

// installedServer is the redis-server in PATH.
func installedServer() (string, error) {
	if os.Getenv(noSystemEnv) != "" {
		return "", fmt.Errorf("%s is set", noSystemEnv)
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("redis-server in PATH: %w", err)
	}
	return filepath.Abs(path)
}

// unpackedServer is the redis-server of the machine's Debian release, unpacked
// into the cache without installing it.
var unpackedServer = sync.OnceValues(func() (string, error) {
	return runScript(5*time.Minute, "redis-binary.sh", "redis-server")
})

// faketimeLibrary is libfaketime as installed, or unpacked in the same way.
var faketimeLibrary = sync.OnceValues(func() (string, error) {
	if os.Getenv(noSystemEnv) == "" {
		for _, pattern := range []string{
			"/usr/lib/*/faketime/libfaketimeMT.so.1",
			"/usr/lib*/faketime/libfaketimeMT.so.1",
			"/usr/local/lib/faketime/libfaketimeMT.so.1",
			"/usr/lib/*/faketime/libfaketime.so.1",
			"/usr/lib*/faketime/libfaketime.so.1",
		} {
			if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
				return found[0], nil
			}
		}
	}
	return runScript(5*time.Minute, "redis-binary.sh", "libfaketime")
})

// version is what a redis-server binary says of itself.
type version struct{ product, number string }

// binaryVersion reads "Redis server v=7.0.15 sha=..." or Valkey's like.
func binaryVersion(path string) (version, error) {
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return version{}, fmt.Errorf("%s --version: %w", path, err)
	}
	words := strings.Fields(string(out))
	for _, word := range words {
		if number, ok := strings.CutPrefix(word, "v="); ok {
			return version{product: strings.ToLower(words[0]), number: number}, nil
		}
	}
	return version{}, fmt.Errorf("%s --version said %q", path, out)
}
