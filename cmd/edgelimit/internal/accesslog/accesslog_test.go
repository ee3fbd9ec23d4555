package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/accesslog"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	stamp, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return stamp
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		want       accesslog.Entry
	}{
		{
			"common", `192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 203023`,
			accesslog.Entry{Host: "192.0.2.1", Time: at(t, "2015-05-17T10:05:03Z"), Request: "GET /a?b=c HTTP/1.1", Status: 200, Bytes: 203023},
		},
		{
			"combined", `2001:db8::1 id frank [01/Jan/2026:00:30:00 +0530] "POST / HTTP/2.0" 304 - "https://example.org/" "Agent/1.0 (x; y)"`,
			accesslog.Entry{
				Host: "2001:db8::1", Ident: "id", User: "frank", Time: at(t, "2025-12-31T19:00:00Z"), Request: "POST / HTTP/2.0", Status: 304,
				Combined: true, Referrer: "https://example.org/", UserAgent: "Agent/1.0 (x; y)",
			},
		},
		{
			"host name, dashes", `host.example - - [31/Dec/2025:23:59:59 -0800] "-" 408 0 "-" "-"`,
			accesslog.Entry{Host: "host.example", Time: at(t, "2026-01-01T07:59:59Z"), Status: 408, Combined: true},
		},
		{
			"escapes", `h - - [17/May/2015:10:05:03 +0000] "GET /\"a\\ \x41\t\q HTTP/1.1" - - "\x4" "\"\"\\"`,
			accesslog.Entry{
				Host: "h", Time: at(t, "2015-05-17T10:05:03Z"), Request: "GET /\"a\\ A\t\\q HTTP/1.1",
				Combined: true, Referrer: `\x4`, UserAgent: `""\`,
			},
		},
		{
			"user with spaces", `h - Frank N. Stein [17/May/2015:10:05:03 +0000] "" 200 1`,
			accesslog.Entry{Host: "h", User: "Frank N. Stein", Time: at(t, "2015-05-17T10:05:03Z"), Status: 200, Bytes: 1},
		},
		{
			"TLS on a plain port", `h - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01" 400 226 "-" "-"`,
			accesslog.Entry{Host: "h", Time: at(t, "2015-05-17T10:05:03Z"), Request: "\x16\x03\x01", Status: 400, Bytes: 226, Combined: true},
		},
	} {
		got, err := accesslog.Parse([]byte(c.line))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	e, err := accesslog.Parse([]byte(`h - - [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 1`))
	if err != nil || e.Method() != "GET" || e.Path() != "/a" {
		t.Errorf("%v: method %q, path %q", err, e.Method(), e.Path())
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const good = `h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`
	for _, line := range []string{
		``, ` `, `-`, `h`, `h -`, `h - -`, `garbage that is no log line`, `h - - 17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`,
		`h - - [17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`, `h - - [17/Foo/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`,
		`h - - [31/Feb/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, `h - - [17/May/2015:10:05:03] "GET / HTTP/1.1" 200 1`,
		`h - - [01/Jan/1970:00:00:00 +0000] "GET / HTTP/1.1" 200 1`, `h - - [01/Jan/1960:00:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`h - - [01/Jan/2200:00:00:00 +0000] "GET / HTTP/1.1" 200 1`, `h - - [17/May/2015:10:05:03 +0000] GET 200 1`,
		`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1 200 1`, `h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1\" 200 1`,
		`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1"200 1`, `h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 20 1`,
		`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" +20 1`, `h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200`,
		`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 -1`, `h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 +1`,
		`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-"`, `h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 `,
		`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-" 5`, good + ` `, good[:len(good)-1],
	} {
		if e, err := accesslog.Parse([]byte(line)); err == nil {
			t.Errorf("%q was taken as %+v", line, e)
		}
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	good := `h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`
	head, tail := `h - - [17/May/2015:10:05:03 +0000] "GET /`, ` HTTP/1.1" 200 1`
	longest := head + strings.Repeat("x", accesslog.MaxLineBytes-len(head)-len(tail)) + tail
	log := strings.Join([]string{good, "what?", good + "\r", longest, longest + "x", strings.Repeat("y", 10*accesslog.MaxLineBytes), "", good}, "\n")
	var zipped bytes.Buffer
	for _, half := range []string{log[:100], log[100:]} { // two members, as logrotate's appending leaves them
		z := gzip.NewWriter(&zipped)
		if _, err := io.WriteString(z, half); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"1 ok", "2 no", "3 ok", "4 ok", "5 no", "6 no", "7 no", "8 ok"}
	for name, stream := range map[string]io.Reader{
		"plain": strings.NewReader(log), "final newline": strings.NewReader(log + "\n"), "gzip": bytes.NewReader(zipped.Bytes()),
		"a byte at a time": iotest.OneByteReader(bytes.NewReader(zipped.Bytes())),
	} {
		r, err := accesslog.NewReader(stream)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			_, line, unparsed, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			word := "ok"
			if unparsed != nil {
				word = "no"
				if unparsed.Line != line || unparsed.Reason == "" || len(unparsed.Text) > 200 {
					t.Errorf("%s: %+v", name, unparsed)
				}
			}
			got = append(got, fmt.Sprint(line, " ", word))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	cut, err := accesslog.NewReader(bytes.NewReader(zipped.Bytes()[:zipped.Len()-9]))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, _, _, err = cut.Next()
	}
	if errors.Is(err, io.EOF) {
		t.Error("a gzip that was cut ends as if it were whole")
	}
	if _, err := accesslog.NewReader(strings.NewReader("\x1f\x8bno gzip")); err == nil {
		t.Error("a broken gzip head was taken")
	}
	if _, err := accesslog.NewReader(iotest.ErrReader(errors.New("disk"))); err == nil {
		t.Error("a broken stream was taken")
	}
}

// collect gives the times and lines in the order of a sorted stream, and those that came too late.
func collect(t *testing.T, times []int64, bounds accesslog.Bounds) (sorted, late []string) {
	t.Helper()
	next := accesslog.Sorted(slice(times), bounds, func(i accesslog.Item[struct{}]) { late = append(late, fmt.Sprint(i.Millis, "/", i.Line)) })
	for {
		item, err := next()
		if errors.Is(err, io.EOF) {
			return sorted, late
		}
		if err != nil {
			t.Fatal(err)
		}
		sorted = append(sorted, fmt.Sprint(item.Millis, "/", item.Line))
	}
}

func slice(times []int64) accesslog.Stream[struct{}] {
	line := 0
	return func() (accesslog.Item[struct{}], error) {
		if line == len(times) {
			return accesslog.Item[struct{}]{}, io.EOF
		}
		line++
		return accesslog.Item[struct{}]{Millis: times[line-1], Line: int64(line)}, nil
	}
}

func TestSorted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		times        []int64
		bounds       accesslog.Bounds
		sorted, late string
	}{
		{"nothing", nil, accesslog.Bounds{Lines: 1}, "", ""},
		{"equal times keep the file's order", []int64{5, 3, 5, 3}, accesslog.Bounds{Window: 9 * time.Millisecond, Lines: 9}, "3/2 3/4 5/1 5/3", ""},
		{"within the window", []int64{10, 5, 12, 7}, accesslog.Bounds{Window: 5 * time.Millisecond, Lines: 9}, "5/2 7/4 10/1 12/3", ""},
		{"one past the window", []int64{10, 4, 16, 3}, accesslog.Bounds{Window: 5 * time.Millisecond, Lines: 9}, "4/2 10/1 16/3", "3/4"},
		{"no window", []int64{5, 5, 4, 6}, accesslog.Bounds{Lines: 9}, "5/1 5/2 6/4", "4/3"},
		{"too few lines for the window", []int64{10, 9, 8, 7}, accesslog.Bounds{Window: time.Hour, Lines: 2}, "9/2 10/1", "8/3 7/4"},
	} {
		sorted, late := collect(t, c.times, c.bounds)
		if got := strings.Join(sorted, " "); got != c.sorted {
			t.Errorf("%s: %q, want %q", c.name, got, c.sorted)
		}
		if got := strings.Join(late, " "); got != c.late {
			t.Errorf("%s: late %q, want %q", c.name, got, c.late)
		}
	}
}

// TestSortedWithinBounds shuffles within the window: everything is given, in a stable order.
func TestSortedWithinBounds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var times []int64
		newest := int64(1000)
		for range 300 {
			now := newest + random.Int64N(20) - 10
			newest = max(newest, now)
			times = append(times, max(now, newest-10))
		}
		sorted, late := collect(t, times, accesslog.Bounds{Window: 10 * time.Millisecond, Lines: 1000})
		if len(late) > 0 {
			t.Fatalf("late: %v of %v", late, times)
		}
		lines := make([]int, len(times))
		for i := range lines {
			lines[i] = i
		}
		slices.SortStableFunc(lines, func(a, b int) int { return int(times[a] - times[b]) })
		for i, line := range lines {
			if want := fmt.Sprint(times[line], "/", line+1); sorted[i] != want {
				t.Fatalf("at %d: %s, want %s", i, sorted[i], want)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	next := accesslog.Merge(slice([]int64{1, 4, 4}), slice(nil), slice([]int64{1, 2, 9}))
	var got []string
	for item, err := next(); !errors.Is(err, io.EOF); item, err = next() {
		got = append(got, fmt.Sprint(item.Millis, "/", item.Source, "/", item.Line))
	}
	if want := "1/0/1 1/2/1 2/2/2 4/0/2 4/0/3 9/2/3"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %v", got, want)
	}
	broken := errors.New("disk")
	fails := accesslog.Merge(slice([]int64{1}), func() (accesslog.Item[struct{}], error) { return accesslog.Item[struct{}]{}, broken })
	if _, err := fails(); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	e := accesslog.Entry{Host: "2001:0DB8:0::1", User: "u", UserAgent: "a", Request: "GET /p?q HTTP/1.1"}
	for word, want := range map[string]string{"ip": "2001:db8::1", "user": "u", "user-agent": "a", "path": "/p"} {
		f, err := accesslog.ParseSubjectField(word)
		if err != nil || f.String() != word || f.Of(e) != want {
			t.Errorf("%s: %v %q", word, err, f.Of(e))
		}
	}
	for host, want := range map[string]string{"::ffff:192.0.2.1": "192.0.2.1", "host.example": "host.example", "": ""} {
		if got := accesslog.SubjectIP.Of(accesslog.Entry{Host: host}); got != want {
			t.Errorf("%q: %q", host, got)
		}
	}
	if _, err := accesslog.ParseSubjectField("invalid"); err == nil {
		t.Error("invalid was taken")
	}
	if got := accesslog.SubjectField(99).String() + accesslog.SubjectInvalid.Of(e); got != "invalid" {
		t.Errorf("%q", got)
	}
}

// FuzzParse holds a parsed line to its bounds, and to the same entry again where it is written anew.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 203023 "-" "client-1"`))
	f.Add([]byte(`h - a b [17/May/2015:10:05:03 -0730] "\"\\\x41\n" - - "\x" "-"`))
	f.Add([]byte(`h - - [17/May/2015:10:05:03.123 +0000] "" 200 1`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := accesslog.Parse(line)
		if err != nil {
			if !cmp.Equal(e, accesslog.Entry{}) && e.Request != "" {
				t.Fatalf("an error and an entry: %+v", e)
			}
			return
		}
		if ms := e.Time.UnixMilli(); ms < 1 || ms > 1<<42 || e.Bytes < 0 || e.Status < 0 || e.Status > 999 {
			t.Fatalf("out of range: %+v", e)
		}
		dash := func(s string) string {
			if s == "" {
				return "-"
			}
			return s
		}
		quote := func(s string) string {
			if s == "" || s == "-" {
				return `"-"`
			}
			return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
		}
		again := fmt.Sprintf("%s %s %s [%s] %s %03d %d", dash(e.Host), dash(e.Ident), dash(e.User), e.Time.Format("02/Jan/2006:15:04:05.000000000 -0700"), quote(e.Request), e.Status, e.Bytes)
		if e.Combined {
			again += " " + quote(e.Referrer) + " " + quote(e.UserAgent)
		}
		same, err := accesslog.Parse([]byte(again))
		if err != nil || !e.Time.Equal(same.Time) {
			t.Fatalf("%q written anew as %q: %v", line, again, err)
		}
		e.Time = same.Time
		if diff := cmp.Diff(e, same); diff != "" {
			t.Fatalf("%q written anew as %q: %s", line, again, diff)
		}
	})
}
