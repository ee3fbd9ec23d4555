package lanes

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// wireTimeout bounds one question to a server, its connection included.
const wireTimeout = 2 * time.Second

// replyError is an error reply; the server answered, so it is alive.
type replyError string

func (e replyError) Error() string { return string(e) }

// ask sends one command on a connection of its own. The lanes speak the protocol
// themselves, so that a fault in the client under test cannot hide here.
func ask(addr string, tlsConfig *tls.Config, command ...string) (any, error) {
	conn, err := net.DialTimeout("tcp", addr, wireTimeout)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		return nil, err
	}
	if tlsConfig != nil {
		conn = tls.Client(conn, tlsConfig)
	}
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, request.String()); err != nil {
		return nil, err
	}
	reply, err := readReply(bufio.NewReader(conn))
	if err != nil {
		return nil, err
	}
	if refusal, ok := reply.(replyError); ok {
		return nil, refusal
	}
	return reply, nil
}

// readReply reads a RESP2 reply: string, replyError, int64, nil or []any.
func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("empty reply line")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return replyError(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	size, err := strconv.Atoi(rest)
	if err != nil || size > 1<<20 {
		return nil, fmt.Errorf("reply line %q", line)
	}
	if size < 0 {
		return nil, nil // the protocol's own nil
	}
	switch kind {
	case '$':
		body := make([]byte, size+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, err
		}
		return string(body[:size]), nil
	case '*':
		items := make([]any, size)
		for i := range items {
			if items[i], err = readReply(r); err != nil {
				return nil, err
			}
		}
		return items, nil
	default:
		return nil, fmt.Errorf("reply line %q", line)
	}
}

// answers tells whether a server accepts commands. A server that wants a
// password first does; one that is still loading does not.
func answers(addr string, tlsConfig *tls.Config) error {
	reply, err := ask(addr, tlsConfig, "PING")
	var refusal replyError
	switch {
	case errors.As(err, &refusal):
		if strings.HasPrefix(string(refusal), "NOAUTH") || strings.HasPrefix(string(refusal), "NOPERM") {
			return nil
		}
		return err
	case err != nil:
		return err
	case reply != "PONG":
		return fmt.Errorf("PING was answered with %v", reply)
	}
	return nil
}

// poll calls check until it succeeds, stop is closed or the time is over.
func poll(within time.Duration, stop <-chan struct{}, check func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", within, err)
		}
		select {
		case <-stop:
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}
