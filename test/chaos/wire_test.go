package chaos

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxWire bounds one bulk string and one array that the proxy takes.
const maxWire = 8 << 20

// command is one command of a client as it stood on the wire.
type command struct {
	raw  []byte
	args []string
}

// name is the command's own, in upper case.
func (c command) name() string {
	if len(c.args) == 0 {
		return ""
	}
	return strings.ToUpper(c.args[0])
}

// evaluates reports whether the command runs a program on a key of state: probes of readiness do not.
func (c command) evaluates() bool { return c.key() != "" }

// key is the state key of an evaluation, "" for any other command.
func (c command) key() string {
	if len(c.args) < 4 || c.name() != "EVALSHA" && c.name() != "EVAL" || !strings.Contains(c.args[3], ":state:") {
		return ""
	}
	return c.args[3]
}

// greets reports whether the command belongs to the greeting of a connection.
func (c command) greets() bool {
	switch c.name() {
	case "HELLO", "AUTH", "SELECT", "CLIENT", "INFO", "ACL":
		return true
	}
	return false
}

// readCommand reads an array of bulk strings, as every client writes commands and as Redis writes its
// append-only file.
func readCommand(r *bufio.Reader) (command, error) {
	var c command
	n, err := readHeader(r, '*', &c.raw)
	if err != nil {
		return c, err
	}
	for range n {
		size, err := readHeader(r, '$', &c.raw)
		if err != nil {
			return c, midway(err)
		}
		body := make([]byte, size+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return c, midway(err)
		}
		c.raw = append(c.raw, body...)
		c.args = append(c.args, string(body[:size]))
	}
	return c, nil
}

// midway makes an end of the stream one that came too early.
func midway(err error) error {
	if err == io.EOF { //nolint:errorlint // Readers give it bare.
		return io.ErrUnexpectedEOF
	}
	return err
}

// readHeader reads a line of a kind and a count, and adds it to raw.
func readHeader(r *bufio.Reader, kind byte, raw *[]byte) (int, error) {
	line, err := r.ReadBytes('\n')
	*raw = append(*raw, line...)
	if err != nil {
		if len(line) > 0 {
			err = midway(err)
		}
		return 0, err
	}
	n, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
	if line[0] != kind || err != nil || n < 0 || n > maxWire {
		return 0, fmt.Errorf("%q where a line %q is expected", line, kind)
	}
	return n, nil
}

// readReply reads one RESP2 reply as it stands on the wire.
func readReply(r *bufio.Reader) ([]byte, error) {
	raw, err := r.ReadBytes('\n')
	if err != nil {
		if len(raw) > 0 {
			err = midway(err)
		}
		return raw, err
	}
	switch raw[0] {
	case '+', '-', ':':
		return raw, nil
	case '$', '*':
	default:
		return raw, fmt.Errorf("%q begins no reply", raw)
	}
	n, err := strconv.Atoi(string(bytes.TrimRight(raw[1:], "\r\n")))
	if err != nil || n > maxWire {
		return raw, fmt.Errorf("reply line %q", raw)
	}
	switch {
	case n < 0:
	case raw[0] == '$':
		body := make([]byte, n+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return raw, midway(err)
		}
		raw = append(raw, body...)
	default:
		for range n {
			item, err := readReply(r)
			raw = append(raw, item...)
			if err != nil {
				return raw, midway(err)
			}
		}
	}
	return raw, nil
}
