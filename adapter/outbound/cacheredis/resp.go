package cacheredis

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// errReply is the cause of every reply that the protocol or the program does not allow.
var errReply = errors.New("cacheredis: reply out of protocol")

// serverError is an error reply, with the first word as the server sent it. It keeps no more: the
// text of an error may hold a user's name or a key.
type serverError struct{ word string }

func (e *serverError) Error() string { return "server replied " + e.word }

// parseReply reads one whole RESP2 reply: a scalar, or one array of scalars, of at most
// store.MaxReplyValues values, each text at most store.MaxTextBytes. An error reply on the top gives
// a *serverError. Anything else gives errReply; nothing panics.
func parseReply(raw []byte) (store.Reply, bool, error) {
	var reply store.Reply
	if len(raw) == 0 {
		return reply, false, errReply
	}
	if raw[0] == '-' {
		line, rest, ok := bytes.Cut(raw[1:], []byte("\r\n"))
		if !ok || len(rest) > 0 {
			return reply, false, errReply
		}
		return reply, false, &serverError{word: firstWord(line)}
	}
	if raw[0] != '*' {
		value, rest, ok := parseValue(raw)
		if !ok || len(rest) > 0 {
			return reply, false, errReply
		}
		reply.Append(value)
		return reply, false, nil
	}
	n, rest, ok := parseNumber(raw[1:])
	if !ok || n < 0 || n > store.MaxReplyValues {
		return reply, true, errReply
	}
	for range n {
		var value store.Value
		value, rest, ok = parseValue(rest)
		if !ok {
			return store.Reply{}, true, errReply
		}
		reply.Append(value)
	}
	if len(rest) > 0 {
		return store.Reply{}, true, errReply
	}
	return reply, true, nil
}

// maxWordBytes bounds the first word of an error reply that is kept.
const maxWordBytes = 32

// firstWord gives the leading upper-case word of an error line, or "" where there is none.
func firstWord(line []byte) string {
	end := 0
	for end < len(line) && end < maxWordBytes && line[end] >= 'A' && line[end] <= 'Z' {
		end++
	}
	if end < len(line) && line[end] != ' ' {
		return ""
	}
	return string(line[:end])
}

// parseNumber reads a canonical decimal integer up to CRLF.
func parseNumber(b []byte) (int64, []byte, bool) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 || len(line) > 20 {
		return 0, nil, false
	}
	digits := line
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' || digits[0] == '0' && len(line) != 1 {
		return 0, nil, false
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' || len(digits) > 19 {
			return 0, nil, false
		}
		n = n*10 + uint64(c-'0')
	}
	if n > 1<<63-1 {
		return 0, nil, false
	}
	if line[0] == '-' {
		return -int64(n), rest, true
	}
	return int64(n), rest, true
}

// parseValue reads one scalar.
func parseValue(b []byte) (store.Value, []byte, bool) {
	if len(b) == 0 {
		return store.Value{}, nil, false
	}
	switch b[0] {
	case ':':
		n, rest, ok := parseNumber(b[1:])
		return store.Integer(n), rest, ok
	case '+':
		line, rest, ok := bytes.Cut(b[1:], []byte("\r\n"))
		if !ok || len(line) > store.MaxTextBytes {
			return store.Value{}, nil, false
		}
		return store.Text(textOf(line)), rest, true
	case '$':
		n, rest, ok := parseNumber(b[1:])
		if !ok || n < -1 || n > store.MaxTextBytes {
			return store.Value{}, nil, false
		}
		if n == -1 {
			return store.Nil(), rest, true
		}
		if int64(len(rest)) < n+2 || rest[n] != '\r' || rest[n+1] != '\n' {
			return store.Value{}, nil, false
		}
		return store.Text(textOf(rest[:n])), rest[n+2:], true
	}
	return store.Value{}, nil, false
}

// textOf copies b, without an allocation for the words of the programs.
func textOf(b []byte) string {
	switch string(b) {
	case "ALLOWED":
		return "ALLOWED"
	case "DENIED":
		return "DENIED"
	}
	return string(b)
}

// encodeInteger is the decimal form of an argument.
func encodeInteger(n int64) string { return strconv.FormatInt(n, 10) }
