package lanes

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		wire string
		want any
	}{
		{"+OK\r\n", "OK"},
		{"-ERR no\r\n", replyError("ERR no")},
		{":12\r\n", int64(12)},
		{"$3\r\na\nb\r\n", "a\nb"},
		{"$-1\r\n", nil},
		{"*2\r\n$1\r\na\r\n:1\r\n", []any{"a", int64(1)}},
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(test.wire)))
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q gave %v, %v", test.wire, got, err)
		}
	}
	for _, wire := range []string{"", "\r\n", "?1\r\n", "$x\r\n", "$5\r\nab", "$9999999999\r\n"} {
		if got, err := readReply(bufio.NewReader(strings.NewReader(wire))); err == nil {
			t.Errorf("%q gave %v", wire, got)
		}
	}
}
