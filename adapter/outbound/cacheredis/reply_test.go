package cacheredis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func values(r store.Reply) []store.Value {
	all := make([]store.Value, r.Len())
	for i := range all {
		all[i] = r.At(i)
	}
	return all
}

func TestParseReply(t *testing.T) {
	t.Parallel()
	n, s := store.Integer, store.Text
	long := strings.Repeat("x", store.MaxTextBytes)
	for _, row := range []struct {
		raw   string
		want  []store.Value
		multi bool
	}{
		{":0\r\n", []store.Value{n(0)}, false},
		{":-1\r\n", []store.Value{n(-1)}, false},
		{":9007199254740991\r\n", []store.Value{n(1<<53 - 1)}, false},
		{":9223372036854775807\r\n", []store.Value{n(1<<63 - 1)}, false},
		{":-9223372036854775807\r\n", []store.Value{n(-1<<63 + 1)}, false},
		{"+OK\r\n", []store.Value{s("OK")}, false},
		{"+\r\n", []store.Value{s("")}, false},
		{"$0\r\n\r\n", []store.Value{s("")}, false},
		{"$-1\r\n", []store.Value{store.Nil()}, false},
		{"$2\r\n\r\n\r\n", []store.Value{s("\r\n")}, false},
		{bulk(long), []store.Value{s(long)}, false},
		{"+" + long + "\r\n", []store.Value{s(long)}, false},
		{"*0\r\n", nil, true},
		{"*1\r\n:1\r\n", []store.Value{n(1)}, true},
		{"*3\r\n$7\r\nALLOWED\r\n+DENIED\r\n$-1\r\n", []store.Value{s("ALLOWED"), s("DENIED"), store.Nil()}, true},
		{"*8\r\n" + strings.Repeat(":1\r\n", 8), []store.Value{n(1), n(1), n(1), n(1), n(1), n(1), n(1), n(1)}, true},
	} {
		reply, multi, err := parseReply([]byte(row.raw))
		if err != nil || multi != row.multi {
			t.Errorf("%.40q: multi %v, %v", row.raw, multi, err)
		}
		if diff := cmp.Diff(row.want, values(reply), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%.40q (-want +got):\n%s", row.raw, diff)
		}
	}
	for _, raw := range []string{
		"", "\r\n", ":", ":\r\n", ":1", ":1\r", ":1\n", ":1\r\n:2\r\n", ":01\r\n", ":-0\r\n", ":-\r\n", ":+1\r\n", ":1e3\r\n", ":1.5\r\n", ": 1\r\n",
		":9223372036854775808\r\n", ":-9223372036854775808\r\n", ":99999999999999999999\r\n", ":999999999999999999999\r\n",
		"+OK", "+OK\r\n+OK\r\n", "+" + long + "x\r\n",
		"$", "$\r\n", "$1\r\n", "$1\r\nx", "$1\r\nx\r", "$1\r\nx\n\n", "$1\r\nxx\r\n", "$2\r\nx\r\n", "$-2\r\n", "$-1\r\nx", bulk(long + "x"),
		"$9223372036854775807\r\nx\r\n", "$01\r\nx\r\n",
		"*", "*\r\n", "*-1\r\n", "*9\r\n" + strings.Repeat(":1\r\n", 9), "*1\r\n", "*1\r\n*0\r\n", "*1\r\n-ERR\r\n", "*0\r\n:1\r\n", "*2\r\n:1\r\n", "*1\r\n:1\r\n:1\r\n",
		"*9223372036854775807\r\n", "-ERR", "-ERR\r\n-ERR\r\n", "x\r\n", "_\r\n", ",1\r\n", "#t\r\n", "%0\r\n", "~0\r\n", ">0\r\n", "=5\r\ntxt:x\r\n", "(1\r\n",
	} {
		reply, _, err := parseReply([]byte(raw))
		if !errors.Is(err, errReply) || reply.Len() != 0 {
			t.Errorf("%.40q: %v with %d values", raw, err, reply.Len())
		}
	}
	for raw, word := range map[string]string{
		"-ERR x\r\n": "ERR", "-ERR\r\n": "ERR", "-\r\n": "", "- ERR\r\n": "", "-ERR: x\r\n": "", "-Err x\r\n": "", "-err x\r\n": "", "-OOM\tx\r\n": "",
		"-" + strings.Repeat("A", 32) + " x\r\n": strings.Repeat("A", 32), "-" + strings.Repeat("A", 33) + " x\r\n": "", "-ERR2 x\r\n": "",
	} {
		_, multi, err := parseReply([]byte(raw))
		var se *serverError
		if !errors.As(err, &se) || se.word != word || multi {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// canonical encodes a reply; every text is a bulk string.
func canonical(r store.Reply, multi bool) string {
	var b strings.Builder
	if multi {
		fmt.Fprintf(&b, "*%d\r\n", r.Len())
	}
	for _, v := range values(r) {
		switch v.Kind {
		case store.ValueInteger:
			fmt.Fprintf(&b, ":%d\r\n", v.Int)
		case store.ValueText:
			b.WriteString(bulk(v.Text))
		case store.ValueNil:
			b.WriteString("$-1\r\n")
		case store.ValueNone:
			b.WriteString("?")
		}
	}
	return b.String()
}

func FuzzParseReply(f *testing.F) {
	for _, seed := range []string{
		":1\r\n", "+OK\r\n", "$-1\r\n", "$3\r\nabc\r\n", "-ERR x\r\n", "*0\r\n", "*-1\r\n", "*2\r\n:1\r\n$1\r\nx\r\n", "*1\r\n*1\r\n:1\r\n",
		"$9223372036854775807\r\n", ":-9223372036854775808\r\n", seven("ALLOWED", 1, 1, 10, 9, 0, 1000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		reply, multi, err := parseReply(raw)
		if err != nil {
			if reply.Len() != 0 {
				t.Errorf("%q: %v with %d values", raw, err, reply.Len())
			}
			return
		}
		encoded := canonical(reply, multi)
		if !strings.Contains(string(raw), "+") && encoded != string(raw) {
			t.Errorf("%q was read as %q", raw, encoded)
		}
		again, multiAgain, err := parseReply([]byte(encoded))
		if err != nil || multiAgain != multi || again != reply {
			t.Errorf("%q: read again: %v", raw, err)
		}
	})
}

// decisionRow is a reply that the program can give, as its fields.
type decisionRow struct {
	status string
	n      [6]int64 // server now, effective now, limit, remaining, retry after, reset at
}

func (r decisionRow) reply() store.Reply {
	reply, err := store.NewReply(store.Text(r.status), store.Integer(r.n[0]), store.Integer(r.n[1]), store.Integer(r.n[2]),
		store.Integer(r.n[3]), store.Integer(r.n[4]), store.Integer(r.n[5]))
	if err != nil {
		panic(err)
	}
	return reply
}

// TestParseDecision: what the program can say under the policy (limit 10, maximum cost 5, regression
// 2 s), and every field wrong by one at its edge.
func TestParseDecision(t *testing.T) {
	t.Parallel()
	p := policy(t)
	const now = fakeNow
	const far = 2*algorithm.MaxHorizonMillis + algorithm.MaxRegressionMillis + 1
	for _, row := range []struct {
		decisionRow
		ok bool
	}{
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, 9, 0, now + 1}}, true},
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, 0, 0, now + 1}}, true},
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, 10, 0, now + 1}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, -1, 0, now + 1}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now, 9, 8, 0, now + 1}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now, 11, 9, 0, now + 1}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, 9, 1, now + 1}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, 9, 0, now}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now + 2000, 10, 9, 0, now + 2001}}, true},
		{decisionRow{"ALLOWED", [6]int64{now, now + 2000, 10, 9, 0, now + 2000}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now + 2001, 10, 9, 0, now + 3000}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now - 1, 10, 9, 0, now + 1}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, 9, 0, now + far}}, true},
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, 9, 0, now + far + 1}}, false},
		{decisionRow{"ALLOWED", [6]int64{-1, now, 10, 9, 0, now + 1}}, false},
		{decisionRow{"ALLOWED", [6]int64{now, now, 10, 9, 0, 1 << 53}}, false},
		{decisionRow{"DENIED", [6]int64{now, now, 10, 4, 1, now + 1}}, true},
		{decisionRow{"DENIED", [6]int64{now, now, 10, 0, 1, now + 1}}, true},
		{decisionRow{"DENIED", [6]int64{now, now, 10, 5, 1, now + 1}}, false},
		{decisionRow{"DENIED", [6]int64{now, now, 10, 4, 0, now + 1}}, false},
		{decisionRow{"DENIED", [6]int64{now, now, 11, 4, 1, now + 1}}, false},
		{decisionRow{"DENIED", [6]int64{now, now, 10, 4, 1, now}}, false},
		{decisionRow{"DENIED", [6]int64{now, now + 7, 10, 4, 8, now + 8}}, true},
		{decisionRow{"DENIED", [6]int64{now, now + 7, 10, 4, 7, now + 8}}, false},
		{decisionRow{"DENIED", [6]int64{now, now, 10, 4, far, now + 1}}, true},
		{decisionRow{"DENIED", [6]int64{now, now, 10, 4, far + 1, now + 1}}, false},
		{decisionRow{"CLOCK_UNSAFE", [6]int64{now, now, 10, 0, 5, now + 5}}, true},
		{decisionRow{"CLOCK_UNSAFE", [6]int64{now, now, 10, 0, 5, now + 4}}, false},
		{decisionRow{"CLOCK_UNSAFE", [6]int64{now, now, 10, 0, 0, now}}, false},
		{decisionRow{"CLOCK_UNSAFE", [6]int64{now, now, 10, 1, 5, now + 5}}, false},
		{decisionRow{"CLOCK_UNSAFE", [6]int64{now, now, 0, 0, 5, now + 5}}, false},
		{decisionRow{"CLOCK_UNSAFE", [6]int64{now, now + 1, 10, 0, 5, now + 5}}, false},
		{decisionRow{"STATE_INCOMPATIBLE", [6]int64{now, now, 0, 0, 0, 0}}, true},
		{decisionRow{"STATE_INCOMPATIBLE", [6]int64{now, now, 10, 0, 0, 0}}, false},
		{decisionRow{"STATE_INCOMPATIBLE", [6]int64{now, now, 0, 1, 0, 0}}, false},
		{decisionRow{"STATE_INCOMPATIBLE", [6]int64{now, now, 0, 0, 1, 0}}, false},
		{decisionRow{"STATE_INCOMPATIBLE", [6]int64{now, now, 0, 0, 0, 1}}, false},
		{decisionRow{"STATE_INCOMPATIBLE", [6]int64{now, now + 1, 0, 0, 0, 0}}, false},
		{decisionRow{"INVALID", [6]int64{0, 0, 0, 0, 0, 0}}, true},
		{decisionRow{"INVALID", [6]int64{now, now, 0, 0, 0, 1}}, false},
		{decisionRow{"UNSPECIFIED", [6]int64{now, now, 10, 9, 0, now + 1}}, false},
		{decisionRow{"", [6]int64{now, now, 10, 9, 0, now + 1}}, false},
		{decisionRow{"ALLOWED ", [6]int64{now, now, 10, 9, 0, now + 1}}, false},
	} {
		cost := int64(1)
		if row.status == "DENIED" {
			cost = 5
		}
		d, err := parseDecision(row.reply(), p, cost)
		if (err == nil) != row.ok {
			t.Errorf("%v: %v", row.decisionRow, err)
		}
		if err != nil {
			if !errors.Is(err, errReply) || d != (algorithm.Decision{}) {
				t.Errorf("%v: %v with %v", row.decisionRow, err, d)
			}
			continue
		}
		want := algorithm.Decision{
			ServerNowMillis: row.n[0], EffectiveNowMillis: row.n[1], Limit: row.n[2], Remaining: row.n[3], RetryAfterMillis: row.n[4], ResetAtMillis: row.n[5],
		}
		want.Status, _ = algorithm.ParseStatus(row.status)
		if d != want {
			t.Errorf("%v was read as %v", row.decisionRow, d)
		}
	}
	// What was admitted is gone from what remains, and what was denied does not fit into it.
	for cost := int64(1); cost <= 5; cost++ {
		for remaining := range int64(11) {
			_, err := parseDecision(decisionRow{"ALLOWED", [6]int64{now, now, 10, remaining, 0, now + 1}}.reply(), p, cost)
			if (err == nil) != (remaining <= 10-cost) {
				t.Errorf("cost %d was admitted with %d remaining: %v", cost, remaining, err)
			}
			_, err = parseDecision(decisionRow{"DENIED", [6]int64{now, now, 10, remaining, 1, now + 1}}.reply(), p, cost)
			if (err == nil) != (remaining < cost) {
				t.Errorf("cost %d was denied with %d remaining: %v", cost, remaining, err)
			}
		}
	}
	// Every position of another kind, and every arity.
	good := decisionRow{"ALLOWED", [6]int64{now, now, 10, 9, 0, now + 1}}
	for i := range fieldCount {
		for _, other := range []store.Value{{}, store.Nil(), store.Text("1"), store.Integer(1 << 60)} {
			all := values(good.reply())
			all[i] = other
			reply, err := store.NewReply(all...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parseDecision(reply, p, 1); err == nil {
				t.Errorf("field %d may be %v", i, other)
			}
		}
		reply, err := store.NewReply(values(good.reply())[:i]...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseDecision(reply, p, 1); err == nil {
			t.Errorf("%d fields are enough", i)
		}
	}
	if plausible(algorithm.Decision{Limit: 10, ResetAtMillis: 1}, p, 1) {
		t.Error("no status is plausible")
	}
}

// FuzzParseDecision: what is accepted fits the policy, and only ALLOWED allows.
func FuzzParseDecision(f *testing.F) {
	f.Add("ALLOWED", int64(fakeNow), int64(fakeNow), int64(10), int64(9), int64(0), int64(fakeNow+1))
	f.Add("DENIED", int64(fakeNow), int64(fakeNow+5), int64(10), int64(4), int64(6), int64(fakeNow+9))
	f.Add("CLOCK_UNSAFE", int64(5), int64(5), int64(10), int64(0), int64(7), int64(12))
	f.Add("INVALID", int64(5), int64(5), int64(0), int64(0), int64(0), int64(0))
	p := policy(f)
	f.Fuzz(func(t *testing.T, status string, a, b, c, d, e, g int64) {
		row := decisionRow{status, [6]int64{a, b, c, d, e, g}}
		decision, err := parseDecision(row.reply(), p, 1)
		if err != nil {
			return
		}
		outcome := ratelimit.Conclude(p, decision, ratelimit.SourceGlobalRedis)
		if ratelimit.Allows(outcome) != (status == "ALLOWED") {
			t.Errorf("%v gives %v", row, outcome)
		}
		if evaluated, ok := outcome.(ratelimit.Evaluated); ok {
			got := evaluated.Decision
			if got.Limit != 10 || got.Remaining < 0 || got.Remaining >= 10 || got.RetryAfter < 0 || got.Allowed != (got.RetryAfter == 0) {
				t.Errorf("%v gives %v", row, got)
			}
		}
	})
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]version{
		"7.4": {7, 4}, "7.4.1": {7, 4}, "7.4.1.2": {7, 4}, "255.255.255": {255, 255}, "8.0": {8, 0}, "7.0.15-rc1": {7, 0},
	} {
		if got, err := parseVersion(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7", "x.y", "7.x", "7.", ".4", "seven.four", "7.4rc1"} {
		if got, err := parseVersion(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	for _, row := range []struct {
		a, b version
		want bool
	}{
		{version{7, 4}, version{7, 4}, false},
		{version{7, 3}, version{7, 4}, true},
		{version{6, 9}, version{7, 4}, true},
		{version{8, 0}, version{7, 4}, false},
		{version{7, 10}, version{7, 4}, false},
	} {
		if row.a.before(row.b) != row.want {
			t.Errorf("%v before %v", row.a, row.b)
		}
	}
	for info, want := range map[string][2]string{
		"redis_version:7.4.1\r\n":                                   {"redis", "7.4.1"},
		"# Server\r\nredis_version:7.4.1\r\nos:Linux\r\n":           {"redis", "7.4.1"},
		"redis_version:7.2.4\r\nvalkey_version:8.0.2\r\n":           {"valkey", "8.0.2"},
		"valkey_version:8.0.2\r\nredis_version:7.2.4\r\n":           {"valkey", "8.0.2"},
		"redis_version:7.4.1\n":                                     {"redis", "7.4.1"},
		"":                                                          {"redis", ""},
		"redis_versions:9\r\nx redis_version:9\r\nredis_version":    {"redis", ""},
		"redis_version:\r\n":                                        {"redis", ""},
		"redis_version:7.4.1\r\nio_threads:1\r\nvalkey_version\r\n": {"valkey", ""},
	} {
		if product, text := serverIdentity(info); product != want[0] || text != want[1] {
			t.Errorf("%q: %s %q", info, product, text)
		}
	}
}
