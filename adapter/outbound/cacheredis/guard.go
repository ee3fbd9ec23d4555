package cacheredis

import "bytes"

// Bounds of what a connection takes for the reply to one write. Every program answers less, and so
// does every command of a greeting.
const (
	maxReplyBytes    = 1 << 20
	maxReplyElements = 1 << 10 // of one array
	maxReplyArrays   = 1 << 10 // and so the depth of nesting
)

// replyGuard looks at replies before go-redis reads them. go-redis makes room for as many bytes as a
// reply announces, and panics or takes all memory where a server announces nonsense; and its errors
// about malformed replies do not tell whether they were to a greeting or to a command. The guard
// lets RESP2 within bounds pass and nothing else. What a value may be is not judged here.
type replyGuard struct {
	total  int      // bytes since the last write
	arrays int      // array headers since the last write
	skip   int64    // bytes of a bulk string still to come, with its CRLF
	line   [24]byte // the beginning of the line that is being read; a count with its CRLF fits
	kept   int      // bytes of line in use
	last   byte     // the byte before the next one
}

// check takes the next bytes and reports errReply where they cannot be a reply.
func (g *replyGuard) check(b []byte) error {
	g.total += len(b)
	if g.total > maxReplyBytes {
		return errReply
	}
	for len(b) > 0 {
		if g.skip > 0 {
			n := min(g.skip, int64(len(b)))
			g.skip -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n') + 1
		part := b
		if end > 0 {
			part = b[:end]
		}
		g.kept += copy(g.line[g.kept:], part)
		b = b[len(part):]
		if end == 0 {
			g.last = part[len(part)-1]
			break
		}
		if len(part) > 1 {
			g.last = part[len(part)-2]
		}
		if !g.endOfLine() {
			return errReply
		}
		g.kept, g.last = 0, 0
	}
	// A first byte that begins no reply is refused without waiting for its line.
	if g.kept > 0 && bytes.IndexByte([]byte("+-:$*"), g.line[0]) < 0 {
		return errReply
	}
	return nil
}

// endOfLine judges the line that has just ended.
func (g *replyGuard) endOfLine() bool {
	if g.last != '\r' || g.kept < 3 {
		return false
	}
	switch g.line[0] {
	case '+', '-', ':':
		return true
	case '$':
		n, rest, ok := parseNumber(g.line[1:g.kept])
		if !ok || len(rest) > 0 || n < -1 || n > maxReplyBytes {
			return false
		}
		if n >= 0 {
			g.skip = n + 2
		}
		return true
	case '*':
		n, rest, ok := parseNumber(g.line[1:g.kept])
		g.arrays++
		return ok && len(rest) == 0 && n >= -1 && n <= maxReplyElements && g.arrays <= maxReplyArrays
	}
	return false
}
