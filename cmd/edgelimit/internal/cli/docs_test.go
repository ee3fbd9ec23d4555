package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/console"
)

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
	for i, word := range words {
		if strings.HasPrefix(word, "http://") {
			if !strings.HasPrefix(word, "http://127.0.0.1:8080/") {
				s.t.Fatalf("%s is not the service's", word)
			}
			words[i] = strings.Replace(word, "127.0.0.1:8080", s.address, 1)
		}
	}
	var output strings.Builder
	if err := console.Curl(s.t.Context(), words, &output); err != nil {
		s.t.Fatal(err)
	}
	return output.String()
}

// TestDocuments runs every command of the documents and compares what it prints with what they show.
// Those of README.md are run by test/service, with the program itself.
func TestDocuments(t *testing.T) {
	for _, path := range []string{"docs/http-api.md", "docs/cli.md"} {
		t.Run(path, func(t *testing.T) {
			all := console.Commands(t, path)
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

func runAll(t *testing.T, all []console.Command) (faults []string) {
	t.Helper()
	address, _, stop := serving(t, nil, "--config", serviceExample)
	defer stop()
	s := &shell{t: t, address: address, scratch: t.TempDir()}
	for _, c := range all {
		if difference, differs := c.Differs(s.run(c.Text)); differs {
			faults = append(faults, fmt.Sprintf("%d: %s", c.Line, difference))
		}
	}
	return faults
}
