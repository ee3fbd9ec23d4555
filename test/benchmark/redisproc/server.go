package redisproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/test/benchmark/process"
)

// The environment.
const (
	AddressVariable = "EDGELIMIT_TEST_REDIS_ADDR"
	BinaryVariable  = "EDGELIMIT_TEST_REDIS_SERVER"
)

// startTimeout bounds how long a server may take to answer.
const startTimeout = 10 * time.Second

// Server is a Redis server, with a connection of the benchmark's own to it.
type Server struct {
	Address string
	Command string // that started it, or what else it is
	Version string // "redis 7.0.15"

	admin   *redis.Client
	process *process.Process // nil for a server of the user's
	ended   <-chan struct{}  // closed once the process is gone
	dir     string
}

// Start gives a server that answers.
func Start(ctx context.Context) (*Server, error) {
	if address := os.Getenv(AddressVariable); address != "" {
		s := &Server{Address: address, Command: "a server that was running (" + AddressVariable + ")", admin: adminOf(address)}
		if err := s.greet(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	binary := os.Getenv(BinaryVariable)
	if binary == "" {
		binary = "redis-server"
	}
	path, err := exec.LookPath(binary)
	if err != nil {
		return nil, fmt.Errorf("redisproc: no Redis: install redis-server (Debian: apt-get install redis-server), or set %s or %s: %w",
			BinaryVariable, AddressVariable, err)
	}
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "edgelimit-benchmark-")
	if err != nil {
		return nil, err
	}
	s := &Server{Address: address, Command: `redis-server --bind 127.0.0.1 --save "" --appendonly no`, dir: dir}
	s.process, err = process.Start(path, []string{
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", dir, "--daemonize", "no",
	}, nil)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.ended = s.process.Ended()
	s.admin = adminOf(s.Address)
	if err := s.greet(ctx); err != nil {
		err = errors.Join(err, s.Close()) // The process has ended, so its output is complete.
		return nil, fmt.Errorf("redisproc: %s did not start: %w\n%s", path, err, s.process.Output())
	}
	return s, nil
}

func adminOf(address string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address, PoolSize: 1, ReadTimeout: time.Minute})
}

// greet waits until the server answers and reads its version.
func (s *Server) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		info, err := s.info(ctx, "server")
		if err == nil {
			s.Version = "redis " + info["redis_version"]
			if valkey := info["valkey_version"]; valkey != "" {
				s.Version = "valkey " + valkey
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.ended: // nil, so never ready, for a server of the user's
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Close ends the connection, and the server if it was started here.
func (s *Server) Close() error {
	err := s.admin.Close()
	if s.process == nil {
		return err
	}
	s.process.Stop()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Own reports whether the server was started here, so that everything in it may be removed.
func (s *Server) Own() bool { return s.process != nil }

// Clear removes everything from a server that was started here, and what keys begin with bench or
// edgelimit:bench from another.
func (s *Server) Clear(ctx context.Context) error {
	if s.Own() {
		return s.admin.FlushAll(ctx).Err()
	}
	for _, pattern := range []string{"bench:*", "rate:bench:*", "edgelimit:bench-*"} {
		keys := s.admin.Scan(ctx, 0, pattern, 1000).Iterator()
		for keys.Next(ctx) {
			if err := s.admin.Unlink(ctx, keys.Val()).Err(); err != nil {
				return err
			}
		}
		if err := keys.Err(); err != nil {
			return err
		}
	}
	return nil
}
