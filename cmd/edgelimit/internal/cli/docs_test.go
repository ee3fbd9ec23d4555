package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// command is a line of a document, and what it prints.
type command struct {
	line   int
	text   string
	output string
}

// commands reads the console blocks of a document. A line that begins with "$ " is a command.
func commands(t *testing.T, path string) []command {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []command
	language := ""
	for i, line := range strings.Split(string(content), "\n") {
		switch text, isCommand := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			if language != "" {
				language = ""
			} else if language = strings.TrimPrefix(line, "```"); language == "" {
				language = "none"
			}
		case language == "console" && isCommand:
			all = append(all, command{line: i + 1, text: text})
		case language == "console" && len(all) > 0:
			all[len(all)-1].output += line + "\n"
		case strings.Contains(line, "curl -"):
			t.Errorf("%s:%d: a curl line that no test runs", path, i+1)
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

// shell runs the few forms of commands that the documents use, without a shell and without curl, so
// that the test runs wherever Go does.
type shell struct {
	t       *testing.T
	address string // stands for 127.0.0.1:8080
	scratch string // where decisions.ndjson goes
	code    int    // of the last edgelimit
}

var loop = regexp.MustCompile(`^for i in ([0-9 ]+); do (.*); done$`)

func (s *shell) run(text string) string {
	s.t.Helper()
	if m := loop.FindStringSubmatch(text); m != nil {
		output := ""
		for range strings.Fields(m[1]) {
			output += s.run(m[2])
		}
		return output
	}
	stdin := ""
	if echoed, piped, ok := strings.Cut(text, " | "); ok && strings.HasPrefix(echoed, "echo ") {
		stdin, text = strings.TrimPrefix(echoed, "echo ")+"\n", piped
	}
	words := split(text)
	switch {
	case text == "echo $?":
		return fmt.Sprintln(s.code)
	case words[0] == "edgelimit":
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "decisions.ndjson", filepath.Join(s.scratch, "decisions.ndjson"))
		}
		r := run(s.t, stdin, nil, words[1:]...)
		s.code = r.code
		if r.code == 0 {
			return r.stdout
		}
		return r.stdout + r.stderr
	case words[0] == "curl":
		return s.curl(words[1:])
	case text == "head -n 1 decisions.ndjson":
		content, err := os.ReadFile(filepath.Join(s.scratch, "decisions.ndjson"))
		if err != nil {
			s.t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(content), "\n")
		return first
	}
	s.t.Fatalf("no such command here: %s", text)
	return ""
}

// split takes a line apart as a shell would, as far as single quotes go.
func split(text string) []string {
	var words []string
	for i, piece := range strings.Split(text, "'") {
		if i%2 == 1 {
			words = append(words, piece)
		} else {
			words = append(words, strings.Fields(piece)...)
		}
	}
	return words
}

func (s *shell) curl(words []string) string {
	s.t.Helper()
	method, body, url, headers := http.MethodGet, "", "", http.Header{}
	showHead, discard := false, false
	for i := 0; i < len(words); i++ {
		switch word := words[i]; word {
		case "-s":
		case "-i":
			showHead = true
		case "-o":
			i++
			discard = words[i] == "/dev/null"
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			headers.Set(name, value)
		case "-d":
			i++
			method, body = http.MethodPost, words[i]
			if headers.Get("Content-Type") == "" {
				headers.Set("Content-Type", "application/x-www-form-urlencoded")
			}
		default:
			if !strings.HasPrefix(word, "http://127.0.0.1:8080/") || url != "" {
				s.t.Fatalf("curl has no %q here", word)
			}
			url = strings.Replace(word, "127.0.0.1:8080", s.address, 1)
		}
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header = headers
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if showHead {
		dump, err := httputil.DumpResponse(response, true)
		if err != nil {
			s.t.Fatal(err)
		}
		return string(dump)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if discard {
		return ""
	}
	return string(content)
}

// TestDocuments runs every command of the documents and compares what it prints with what they show.
func TestDocuments(t *testing.T) {
	for _, path := range []string{"docs/http-api.md", "docs/cli.md"} {
		t.Run(path, func(t *testing.T) {
			all := commands(t, path)
			// The examples count within one minute. Where that minute ends between two of them, they are
			// run again from the beginning.
			for attempt := 1; ; attempt++ {
				began := time.Now().Truncate(time.Minute)
				faults := runAll(t, all)
				if len(faults) == 0 {
					return
				}
				if time.Now().Truncate(time.Minute).Equal(began) || attempt == 3 {
					for _, fault := range faults {
						t.Errorf("%s:%s", path, fault)
					}
					return
				}
			}
		})
	}
}

func runAll(t *testing.T, all []command) (faults []string) {
	t.Helper()
	address, _, stop := serving(t, nil, "--config", serviceExample)
	defer stop()
	s := &shell{t: t, address: address, scratch: t.TempDir()}
	for _, c := range all {
		got := settle(s.run(c.text))
		if want := settle(c.output); want != "…" && got != want {
			faults = append(faults, fmt.Sprintf("%d: %s\ngot\n%s\nwant\n%s", c.line, c.text, got, want))
		}
	}
	return faults
}
