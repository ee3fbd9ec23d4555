package console

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Any is the output of a command whose output means nothing.
const Any = "…"

// Command is a line of a document, and what it prints.
type Command struct {
	// Line is counted from 1.
	Line   int
	Text   string
	Output string
}

// Block is a fenced block of a document.
type Block struct {
	// Line is that of the opening fence, counted from 1.
	Line int
	// Language is what the fence names, or "".
	Language string
	Text     string
}

// Blocks reads the fenced blocks of a document.
func Blocks(t testing.TB, path string) []Block {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []Block
	inside := false
	for i, line := range strings.Split(string(content), "\n") {
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && !inside:
			all = append(all, Block{Line: i + 1, Language: strings.TrimPrefix(line, "```")})
		case !fence && inside:
			all[len(all)-1].Text += line + "\n"
		case !fence && strings.Contains(line, "curl -"):
			t.Errorf("%s:%d: a curl line outside of the blocks, which no test runs", path, i+1)
		}
		inside = inside != fence
	}
	if inside {
		t.Errorf("%s: the last block has no end", path)
	}
	return all
}

// Commands reads the console blocks of a document. A curl line elsewhere is a fault: nobody would run
// it.
func Commands(t testing.TB, path string) []Command {
	t.Helper()
	var all []Command
	for _, block := range Blocks(t, path) {
		if block.Language != "console" {
			if strings.Contains(block.Text, "curl -") {
				t.Errorf("%s:%d: a curl line that no test runs", path, block.Line)
			}
			continue
		}
		began := len(all)
		for i, line := range strings.Split(strings.TrimSuffix(block.Text, "\n"), "\n") {
			if text, isCommand := strings.CutPrefix(line, "$ "); isCommand {
				all = append(all, Command{Line: block.Line + 1 + i, Text: text})
			} else if len(all) > began {
				all[len(all)-1].Output += line + "\n"
			}
		}
		if len(all) == began {
			t.Errorf("%s:%d: a console block without a command", path, block.Line)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no console blocks", path)
	}
	return all
}

// varying is what differs between two runs: times, and what is counted from them.
var varying = []struct {
	form *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`"resetAtMillis":\d{13}`), `"resetAtMillis":T`},
	{regexp.MustCompile(`"retryAfterMillis":[1-9]\d*`), `"retryAfterMillis":R`},
	{regexp.MustCompile(`full again at \S+Z`), "full again at T"},
	{regexp.MustCompile(`(?m)^Date: .*$`), "Date: D"},
	{regexp.MustCompile(`\r`), ""},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
}

// Differs compares what a command printed with what the document shows, less what differs between
// two runs, and describes a difference.
func (c Command) Differs(output string) (string, bool) {
	got, want := settle(output), settle(c.Output)
	if want == Any || got == want {
		return "", false
	}
	return c.Text + "\ngot\n" + got + "\nwant\n" + want, true
}

func settle(output string) string {
	for _, v := range varying {
		output = v.form.ReplaceAllString(output, v.with)
	}
	output = strings.TrimRight(output, "\n")
	if head, body, ok := strings.Cut(output, "\n\n"); ok && strings.HasPrefix(head, "HTTP/1.1 ") {
		lines := strings.Split(head, "\n")
		slices.Sort(lines[1:]) // the order of headers means nothing
		output = strings.Join(lines, "\n") + "\n\n" + body
	}
	return output
}
