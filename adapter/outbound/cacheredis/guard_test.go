package cacheredis

import (
	"strings"
	"testing"
)

// guarded gives what the guard says of raw in parts of the given size.
func guarded(raw []byte, size int) bool {
	var g replyGuard
	for len(raw) > 0 {
		n := min(size, len(raw))
		if g.check(raw[:n]) != nil {
			return false
		}
		raw = raw[n:]
	}
	return true
}

func TestReplyGuard(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"": true, "+OK\r\n": true, "+\r\n": true, ":1\r\n": true, "-ERR x\r\n": true, "$-1\r\n": true, "*-1\r\n": true, "*0\r\n": true, "$0\r\n\r\n": true,
		"$3\r\n\nHT\r\n+OK\r\n":                                true, // What a bulk string holds is its own.
		"$3\r\nabcde+OK\r\n":                                   true, // Its CRLF is judged by the parser.
		"+" + strings.Repeat("x", 100) + "\r\n:1\r\n":          true, // Longer than what is kept.
		"$1048000\r\n" + strings.Repeat("x", 1048000) + "\r\n": true, // As much as there is room for.
		"*1024\r\n":                            true,  //
		"+":                                    true,  // Not yet anything.
		"$12":                                  true,  //
		"*1025\r\n":                            false, //
		"$1048577\r\n":                         false, //
		"$-2\r\n":                              false, //
		"*-2\r\n":                              false, //
		"$\r\n":                                false, //
		"$01\r\n":                              false, //
		"$1 \r\n":                              false, //
		"$1\r\r\n":                             false, //
		"$" + strings.Repeat("1", 30) + "\r\n": false, //
		"\r\n":                                 false, //
		"\n":                                   false, //
		"+OK\n":                                false, //
		"+\n":                                  false, //
		"H":                                    false, //
		"_\r\n":                                false, //
		">1\r\n":                               false, //
		"$1\r\nx\r\nx":                         false, //
		strings.Repeat("+\r\n", maxReplyBytes/3+1): false, //
	} {
		for _, size := range []int{1, 2, 3, 7, 1 << 21} {
			if got := guarded([]byte(raw), size); got != want {
				t.Errorf("%.30q in parts of %d: %v", raw, size, got)
			}
		}
	}
}

// FuzzReplyGuard: the guard refuses no reply that the parser reads, and says the same however the
// bytes arrive.
func FuzzReplyGuard(f *testing.F) {
	for _, seed := range []string{":1\r\n", "$3\r\na\nb\r\n", "*2\r\n:1\r\n$-1\r\n", "+\n", "$1\r\r\n", seven("ALLOWED", 1, 1, 10, 9, 0, 1000)} {
		f.Add([]byte(seed), 1)
	}
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		whole := guarded(raw, max(1, len(raw)))
		if parts := guarded(raw, max(1, size)); parts != whole {
			t.Errorf("%q: %v whole, %v in parts of %d", raw, whole, parts, size)
		}
		_, _, err := parseReply(raw)
		lines := strings.ReplaceAll(string(raw), "\r\n", "")
		if err == nil && !whole && !strings.Contains(lines, "\n") {
			t.Errorf("%q is a reply and was refused", raw)
		}
	})
}
