package lua

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// header is what a program says of itself in its first comment lines.
type header struct {
	single map[string]string // name, version, purpose, keys, args, reply, writes, ttl, complexity, redis
	lists  map[string][]string
}

var headerLine = regexp.MustCompile(`^-- ([a-z]+): (.+)$`)

// parseHeader reads `-- word: value`, and below it indented lines that belong to it, up to the line
// `--`.
func parseHeader(t *testing.T, file string) header {
	t.Helper()
	h := header{single: make(map[string]string), lists: make(map[string][]string)}
	word := ""
	for i, line := range strings.Split(file, "\n") {
		if i == 0 {
			if line != "#!lua" {
				t.Fatalf("the first line is %q, want exactly #!lua", line)
			}
			continue
		}
		if line == "--" {
			return h
		}
		if item, ok := strings.CutPrefix(line, "--   "); ok && word != "" {
			h.lists[word] = append(h.lists[word], item)
			continue
		}
		match := headerLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("line %d of the header is %q", i+1, line)
		}
		word = match[1]
		if _, twice := h.single[word]; twice {
			t.Fatalf("%s stands twice", word)
		}
		h.single[word] = match[2]
	}
	t.Fatal("the header has no end")
	return h
}

// parseFields reads lines of the form `name kind [unit range] [words]`, where the range of a text is
// its length. An integer with words is answered as one of those where there is none.
func parseFields(t *testing.T, lines []string) []store.Field {
	t.Helper()
	fields := make([]store.Field, 0, len(lines))
	for _, line := range lines {
		parts := strings.Fields(line)
		if len(parts) < 3 {
			t.Fatalf("field %q", line)
		}
		f := store.Field{Name: parts[0]}
		switch parts[1] {
		case "integer":
			f.Kind = store.FieldInteger
		case "text":
			f.Kind = store.FieldText
		default:
			t.Fatalf("field %q is of no kind", line)
		}
		rest := parts[2:]
		if len(rest) > 1 {
			low, high, ranged := strings.Cut(rest[1], "..")
			if !ranged {
				t.Fatalf("field %q", line)
			}
			f.Unit, f.Min, f.Max = rest[0], number(t, low), number(t, high)
			rest = rest[2:]
		}
		if len(rest) > 0 {
			f.Word = strings.Split(rest[0], "|")
			rest = rest[1:]
		}
		if len(rest) > 0 || f.Kind == store.FieldInteger && f.Unit == "" {
			t.Fatalf("field %q", line)
		}
		fields = append(fields, f)
	}
	return fields
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHeaders: what a program's header says is what its descriptor and the manifest say.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, p := range Programs() {
		d := p.Descriptor
		t.Run(d.ID(), func(t *testing.T) {
			t.Parallel()
			h := parseHeader(t, read(d.ID()+".lua"))
			for word, want := range map[string]string{
				"name": d.Name, "version": fmt.Sprint(d.Version), "keys": fmt.Sprint(d.Keys), "args": fmt.Sprint(len(d.Args)),
				"reply": fmt.Sprint(len(d.Reply)), "redis": p.LowestRedis,
			} {
				if h.single[word] != want {
					t.Errorf("%s is %q, want %q", word, h.single[word], want)
				}
			}
			for _, word := range []string{"purpose", "writes", "ttl", "complexity"} {
				if h.single[word] == "" {
					t.Errorf("no %s", word)
				}
			}
			if len(h.single) != 10 {
				t.Errorf("%d words in the header, this test knows 10", len(h.single))
			}
			if len(h.lists["keys"]) != d.Keys {
				t.Errorf("%d keys are described, want %d", len(h.lists["keys"]), d.Keys)
			}
			if diff := cmp.Diff(d.Args, parseFields(t, h.lists["args"])); diff != "" {
				t.Errorf("args (-descriptor +header):\n%s", diff)
			}
			if diff := cmp.Diff(d.Reply, parseFields(t, h.lists["reply"])); diff != "" {
				t.Errorf("reply (-descriptor +header):\n%s", diff)
			}
			for i, f := range d.Args {
				if f.Name == store.ClockArgument && i != len(d.Args)-1 {
					t.Error("the clock is not the last argument")
				}
			}
			if !usesPrelude(t, d) {
				return // What a scalar program checks, and how, is its own.
			}
			// The header's bounds are those that the program checks.
			byUint := strings.Contains(p.Source, "local function uint(")
			for i, f := range d.Args {
				if f.Kind != store.FieldInteger || f.Name == "cost" {
					continue
				}
				checks := boundChecks(f)
				if byUint {
					checks = []string{regexp.QuoteMeta(fmt.Sprintf("local %s = uint(ARGV[%d], %d, %d)\n", f.Name, i+1, f.Min, f.Max))}
				}
				for _, check := range checks {
					if !regexp.MustCompile(check).MatchString(codeOf(p.Source)) {
						t.Errorf("the program has nothing of the form %s", check)
					}
				}
			}
			arity := fmt.Sprintf("#KEYS == %d and #argv == %d\n", d.Keys, len(d.Args))
			if byUint {
				arity = fmt.Sprintf("#KEYS ~= %d or #ARGV ~= %d ", d.Keys, len(d.Args))
			}
			if !strings.Contains(p.Source, arity) {
				t.Errorf("the program does not check %q", arity)
			}
			if d.ClockIndex() != len(d.Args)-1 {
				t.Error("a program that reads the clock does not take one")
			}
		})
	}
}

// boundChecks are what a program that holds its arguments together has for each of them: it is among the
// digits and not empty, it has 16 digits at most, and the bounds of its header. The greatest integer may
// be a bound on a sum or a product that holds it.
func boundChecks(f store.Field) []string {
	name := `\b` + f.Name + `\b`
	checks := []string{
		`(?m)^  (and )?([a-z_]+ \.\. )*` + name + `( \.\. [a-z_]+)*$`,
		name + ` == ''`,
		`#` + f.Name + ` > 16\b`,
		name + `[^\n]* > ` + fmt.Sprintf("(%d|%d)", f.Max, f.Max-1) + `\b`,
	}
	if f.Min > 0 {
		checks = append(checks, name+fmt.Sprintf(" < %d", f.Min)+`\b`)
	}
	return checks
}
