package lanes

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Server is a Redis that the tests of one process share. Tests use unique
// namespaces in it and never flush it.
type Server struct {
	// Addr is its host:port.
	Addr string
	// Lane is how it was obtained: "address", "container", "process" or "debian70".
	Lane string
	// Product is "redis" or "valkey".
	Product string
	// Version is the product's own version, e.g. "7.0.15".
	Version string
	// Detail is where it came from: the image, the binary, or the variable.
	Detail string
}

// String is the line that a lane prints.
func (s *Server) String() string {
	return fmt.Sprintf("lane %s: %s %s (%s)", s.Lane, s.Product, s.Version, s.Detail)
}

// describe asks a server what it is.
func describe(lane, addr, detail string) (*Server, error) {
	reply, err := ask(addr, nil, "INFO", "server")
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", addr, err)
	}
	text, ok := reply.(string)
	if !ok {
		return nil, fmt.Errorf("ask %s for its version: INFO gave %T", addr, reply)
	}
	s := &Server{Addr: addr, Lane: lane, Product: "redis", Detail: detail}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			if s.Version == "" {
				s.Version = value
			}
		case "valkey_version":
			// Valkey reports the Redis it forked from as redis_version.
			s.Product, s.Version = "valkey", value
		}
	}
	if s.Version == "" {
		return nil, errors.New("INFO server names no version")
	}
	return s, nil
}

var announced sync.Map

// announce prints a line once in a test process.
func announce(line string) {
	if _, seen := announced.LoadOrStore(line, true); !seen {
		fmt.Fprintln(os.Stderr, line)
	}
}
