package lanes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// runScript runs a script of test/scripts and returns the line that it prints.
func runScript(within time.Duration, name string, args ...string) (string, error) {
	dir, err := scriptsDir()
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{filepath.Join(dir, name)}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Dir(cache))
	// Its own group, so that what it started ends with it when time is up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Writer(&log)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, strings.TrimSpace(log.String()))
	}
	line := strings.TrimSpace(out.String())
	if line == "" || strings.Contains(line, "\n") {
		return "", fmt.Errorf("%s printed %q", name, line)
	}
	return line, nil
}

// scriptsDir finds test/scripts beside this file, or, in a binary that was built
// with trimmed paths, above the directory that the test runs in.
func scriptsDir() (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok {
		dir := filepath.Join(filepath.Dir(filepath.Dir(file)), "scripts")
		if _, err := os.Stat(dir); err == nil {
			return dir, nil
		}
	}
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		dir := filepath.Join(at, "test", "scripts")
		if _, err := os.Stat(filepath.Join(dir, "redis-binary.sh")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", errors.New("test/scripts of this repository was not found")
		}
		at = up
	}
}

// cacheDir is kept between runs: unpacked packages and what was found out about
// this machine.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("edgelimit-test-%d", os.Getuid()))
	}
	dir := filepath.Join(base, "edgelimit-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, nil
}
