package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
)

// Entry is one line. Text fields have their escapes undone, and a field that the server wrote as -
// is empty.
type Entry struct {
	// Host is the client: an IPv4 or IPv6 address or a host name, as the log has it.
	Host string
	// Ident is what identd said of the client, nearly always nothing.
	Ident string
	// User is who was authenticated.
	User string
	// Time is when the request was logged.
	Time time.Time
	// Request is the request line.
	Request string
	// Status is the response's status, 0 where there was none.
	Status int
	// Bytes is the size of the response's body, 0 where there was none.
	Bytes int64
	// Combined says whether the line has the two fields below.
	Combined  bool
	Referrer  string
	UserAgent string
}

// Method is the request's method, empty where the request line is not of three words.
func (e Entry) Method() string { method, _ := e.requestWords(); return method }

// Path is the request's target without its query, empty where the request line is not of three words.
func (e Entry) Path() string {
	_, target := e.requestWords()
	path, _, _ := strings.Cut(target, "?")
	return path
}

func (e Entry) requestWords() (method, target string) {
	words := strings.Fields(e.Request)
	if len(words) != 3 {
		return "", ""
	}
	return words[0], words[1]
}

// timeLayout is Apache's %t.
const timeLayout = "02/Jan/2006:15:04:05 -0700"

// Parse reads a line without its end. Its error says what is wrong and repeats nothing of the line.
func Parse(line []byte) (Entry, error) {
	var e Entry
	host, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(host) == 0 || host[0] == '"' || host[0] == '[' {
		return e, errors.New("no host at the beginning")
	}
	ident, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok || len(ident) == 0 {
		return e, errors.New("no ident after the host")
	}
	// A user's name may have spaces, so it goes up to the time.
	user, rest, ok := bytes.Cut(rest, []byte(" ["))
	if !ok || len(user) == 0 {
		return e, errors.New("no user and [time] after the ident")
	}
	stamp, rest, ok := bytes.Cut(rest, []byte("] "))
	if !ok {
		return e, errors.New("the [time] has no end")
	}
	e.Host, e.Ident, e.User = absent(host), absent(ident), absent(user)
	var err error
	if e.Time, err = parseTime(string(stamp)); err != nil {
		return Entry{}, err
	}
	request, rest, err := quoted(rest)
	if err != nil {
		return Entry{}, fmt.Errorf("request: %w", err)
	}
	e.Request = request
	status, rest, _ := bytes.Cut(rest, []byte(" "))
	if e.Status, err = parseStatus(string(status)); err != nil {
		return Entry{}, err
	}
	size, rest, more := bytes.Cut(rest, []byte(" "))
	if e.Bytes, err = parseBytes(string(size)); err != nil {
		return Entry{}, err
	}
	if !more {
		return e, nil
	}
	e.Combined = true
	if e.Referrer, rest, err = quoted(rest); err != nil {
		return Entry{}, fmt.Errorf("referrer: %w", err)
	}
	if e.UserAgent, rest, err = quoted(rest); err != nil {
		return Entry{}, fmt.Errorf("user agent: %w", err)
	}
	if len(rest) > 0 {
		return Entry{}, errors.New("something follows the user agent")
	}
	return e, nil
}

// absent reads - as nothing.
func absent(field []byte) string {
	if string(field) == "-" {
		return ""
	}
	return string(field)
}

func parseTime(stamp string) (time.Time, error) {
	t, err := time.Parse(timeLayout, stamp)
	if err != nil {
		return time.Time{}, errors.New("the [time] is not of the form 02/Jan/2006:15:04:05 -0700")
	}
	if ms := t.UnixMilli(); ms < 1 || ms > algorithm.MaxNowMillis {
		return time.Time{}, errors.New("the [time] is outside of 1970..2109")
	}
	return t, nil
}

func parseStatus(text string) (int, error) {
	if text == "-" {
		return 0, nil
	}
	status, err := strconv.ParseUint(text, 10, 16)
	if err != nil || len(text) != 3 {
		return 0, errors.New("the status is not of three digits")
	}
	return int(status), nil
}

func parseBytes(text string) (int64, error) {
	if text == "-" {
		return 0, nil
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 0 || text[0] == '+' || text[0] == '-' {
		return 0, errors.New("the size is not a number")
	}
	return size, nil
}

// quoted reads a field in double quotes and the space after it, which only the last field lacks.
func quoted(text []byte) (field string, rest []byte, err error) {
	if len(text) == 0 || text[0] != '"' {
		return "", nil, errors.New("no quote at its beginning")
	}
	end, escaped := 1, false
	for ; end < len(text) && text[end] != '"'; end++ {
		if text[end] == '\\' {
			end++
			escaped = true
		}
	}
	if end >= len(text) {
		return "", nil, errors.New("no quote at its end")
	}
	inner, rest := text[1:end], text[end+1:]
	if len(rest) > 0 {
		if rest[0] != ' ' || len(rest) == 1 {
			return "", nil, errors.New("no space and field after it")
		}
		rest = rest[1:]
	}
	if escaped {
		inner = unescape(inner)
	}
	return absent(inner), rest, nil
}

// unescape undoes what Apache and nginx write: \" \\ \xhh and the control characters of C. Any other
// pair stays as it is.
func unescape(text []byte) []byte {
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			plain = append(plain, text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case '"', '\\':
			plain = append(plain, c)
		case 'n':
			plain = append(plain, '\n')
		case 'r':
			plain = append(plain, '\r')
		case 't':
			plain = append(plain, '\t')
		case 'b':
			plain = append(plain, '\b')
		case 'f':
			plain = append(plain, '\f')
		case 'v':
			plain = append(plain, '\v')
		case 'x':
			if i+2 < len(text) {
				if b, err := strconv.ParseUint(string(text[i+1:i+3]), 16, 8); err == nil {
					plain = append(plain, byte(b))
					i += 2
					continue
				}
			}
			plain = append(plain, '\\', c)
		default:
			plain = append(plain, '\\', c)
		}
	}
	return plain
}
