package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/console"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// reader does what README.md says, as its reader would: in a shell, from the root of the repository.
// Only the addresses are others, since those of the document may be taken.
type reader struct {
	t         *testing.T
	scratch   string // stands for bin, where decisions go
	variables []string
	running   *exec.Cmd // make run
	log       string    // its log
	address   string    // stands for 127.0.0.1:8080
}

// newReader also sees to it that there is a curl.
func newReader(t *testing.T, redis, decisions string) *reader {
	t.Helper()
	r := &reader{t: t, scratch: decisions}
	for _, variable := range environ(
		"EDGELIMIT_APP__SERVICE__HTTP_ADDRESS=127.0.0.1:0",
		"EDGELIMIT_APP__RATE_LIMIT__REDIS__ADDRESS="+redis,
		// A machine under test is slower than one in service.
		"EDGELIMIT_APP__RATE_LIMIT__REDIS__COMMAND_TIMEOUT=10s",
		"EDGELIMIT_APP__SERVICE__DEFAULT_DEADLINE=15s", "EDGELIMIT_APP__SERVICE__MAX_DEADLINE=20s",
	) {
		// make must not take what another make gave to these tests for its own.
		if name, _, _ := strings.Cut(variable, "="); !strings.HasPrefix(name, "MAKE") && name != "MFLAGS" && name != "CONFIG" {
			r.variables = append(r.variables, variable)
		}
	}
	if _, err := exec.LookPath("curl"); err != nil {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		tools := t.TempDir()
		text := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asCurl, self)
		if err := os.WriteFile(filepath.Join(tools, "curl"), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		r.variables = append(r.variables, "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return r
}

func (r *reader) shell(text string) (string, error) {
	command := exec.CommandContext(r.t.Context(), "bash", "-c", text)
	command.Dir, command.Env = root, r.variables
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("%s: %w\n%s\n%s", text, err, output, stderr.Bytes())
	}
	return string(output), nil
}

// follow runs one command and gives what it printed.
func (r *reader) follow(text string) string {
	r.t.Helper()
	switch {
	case strings.HasPrefix(text, "make run"):
		r.serve(text)
		return ""
	case strings.HasPrefix(text, "export "):
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "export "), "=")
		value, err := r.shell(text + `; printf %s "$` + name + `"`)
		if err != nil {
			r.t.Fatal(err)
		}
		r.variables = append(r.variables, name+"="+value)
		return ""
	}
	text = strings.ReplaceAll(text, "127.0.0.1:8080", r.address)
	for _, file := range []string{"memory.ndjson", "redis.ndjson"} {
		text = strings.ReplaceAll(text, "bin/"+file, filepath.Join(r.scratch, file))
	}
	output, err := r.shell(text)
	if err != nil {
		r.t.Error(err)
	}
	return output
}

// serve runs what stays in the foreground of the first terminal, and ends what was there before.
func (r *reader) serve(text string) {
	r.t.Helper()
	r.interrupt()
	r.log = filepath.Join(r.t.TempDir(), "make.log")
	log, err := os.Create(r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	r.running = exec.Command("bash", "-c", text)
	r.running.Dir, r.running.Env = root, r.variables
	r.running.Stdout, r.running.Stderr = log, log
	if err := lanes.Spawn(r.running); err != nil {
		r.t.Fatal(err)
	}
	r.address = ""
	// It builds first, which takes a minute or two where nothing was built before.
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		output, err := os.ReadFile(r.log)
		if err != nil {
			r.t.Fatal(err)
		}
		if m := listening.FindSubmatch(output); m != nil {
			r.address = string(m[1])
			break
		}
		if time.Now().After(deadline) || bytes.Contains(output, []byte("***")) {
			r.t.Fatalf("%s does not listen:\n%s", text, output)
		}
	}
	eventually(r.t, "readyz", func() error {
		answer, err := plain.Get("http://" + r.address + "/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != 200 {
			return errors.New(answer.Status)
		}
		return nil
	})
}

// interrupt is Ctrl-C: every process of the terminal gets it.
func (r *reader) interrupt() {
	r.t.Helper()
	if r.running == nil {
		return
	}
	if err := syscall.Kill(-r.running.Process.Pid, syscall.SIGINT); err != nil {
		r.t.Error(err)
	}
	_ = r.running.Wait() // make calls an interrupt an error
	r.running = nil
	if output, err := os.ReadFile(r.log); err != nil || !bytes.Contains(output, []byte("msg=stopped")) {
		r.t.Errorf("Ctrl-C did not end it in order: %v\n%s", err, output)
	}
}

// TestReadme does everything that README.md says, and holds it to print what README.md shows.
func TestReadme(t *testing.T) {
	path := filepath.Join(root, "README.md")
	commands := console.Commands(t, path)
	server := lanes.Default(t)
	removeAfter(t, server.Addr, "example") // of the configuration that README.md uses
	// The examples count within one minute. Where it ends between two of them, all is done again.
	for attempt := 1; ; attempt++ {
		decisions := t.TempDir()
		r := newReader(t, server.Addr, decisions)
		t.Cleanup(r.interrupt)
		var faults []string
		began := minute()
		for _, c := range commands {
			output := r.follow(c.Text)
			if strings.HasPrefix(c.Text, "make run") && len(faults) == 0 {
				began = minute() // the build is no part of what counts
			}
			if difference, differs := c.Differs(output); differs {
				faults = append(faults, fmt.Sprintf("%s:%d: %s", path, c.Line, difference))
				if !minute().Equal(began) {
					break
				}
			}
		}
		r.interrupt()
		if len(faults) > 0 && !minute().Equal(began) && attempt < 3 {
			continue
		}
		for _, fault := range faults {
			t.Error(fault)
		}
		workedExample(t, path, filepath.Join(decisions, "memory.ndjson"))
		return
	}
}

func minute() time.Time { return time.Now().Truncate(time.Minute) }

// row is one of the worked example: minute, requests, and what five policies admitted.
var row = regexp.MustCompile(`(?m)^\| (\d\d:\d\d) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$`)

// workedExample holds the table of the worked example to the decisions of the replay.
func workedExample(t *testing.T, path, decisions string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	type cell struct{ subject, minute, policy string }
	admitted, requests, denied := map[cell]int{}, map[cell]int{}, map[string]int{}
	most := ""
	for lines := scan(t, decisions); lines.Scan(); {
		var l struct {
			TimeMillis              int64
			PolicyID, SubjectDigest string
			Decision                decision
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if at := time.UnixMilli(l.TimeMillis).UTC(); at.Format(time.DateOnly) == "2015-05-18" && at.Hour() < 12 {
			c := cell{l.SubjectDigest, at.Format("15:04"), l.PolicyID}
			requests[c]++
			if l.Decision.Allowed {
				admitted[c]++
			}
		}
		if l.PolicyID == "bursts" && !l.Decision.Allowed {
			if denied[l.SubjectDigest]++; denied[l.SubjectDigest] > denied[most] {
				most = l.SubjectDigest
			}
		}
	}
	for _, shown := range row.FindAllStringSubmatch(string(text), -1) {
		for i, policy := range []string{"per-minute", "bursts", "bursts-gcra", "per-hour", "per-hour-exact"} {
			c := cell{most, shown[1], policy}
			if fmt.Sprint(requests[c]) != shown[2] || fmt.Sprint(admitted[c]) != shown[3+i] {
				t.Errorf("%v: %d requests, %d admitted, README.md shows %s and %s", c, requests[c], admitted[c], shown[2], shown[3+i])
			}
			delete(requests, c)
		}
	}
	for c := range requests {
		if c.subject == most {
			t.Errorf("%v is not shown", c)
		}
	}
}

// TestReadmeBlocks holds the blocks of README.md that are no commands: code and configuration are those
// of the example that is run, and the rooms are there.
func TestReadmeBlocks(t *testing.T) {
	t.Parallel()
	example := filepath.Join(root, "docs", "examples", "monolith")
	sources := func(pattern ...string) (all string) {
		for _, p := range pattern {
			files, err := filepath.Glob(filepath.Join(example, p))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %v", p, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				all += string(text)
			}
		}
		return all
	}
	count := map[string]int{}
	for _, block := range console.Blocks(t, filepath.Join(root, "README.md")) {
		count[block.Language]++
		switch block.Language {
		case "console": // TestReadme
		case "yaml":
			if !strings.Contains(sources("config.yaml"), block.Text) {
				t.Errorf("line %d: not in config.yaml", block.Line)
			}
		case "go":
			if !strings.Contains(sources("main.go", "*/*.go"), block.Text) {
				t.Errorf("line %d: not in the example", block.Line)
			}
		case "text":
			for line := range strings.Lines(block.Text) {
				room := strings.Fields(line)[0]
				if info, err := os.Stat(filepath.Join(root, room)); err != nil || !info.IsDir() {
					t.Errorf("line %d: there is no %s", block.Line, room)
				}
			}
		default:
			t.Errorf("line %d: nobody runs a block of %q", block.Line, block.Language)
		}
	}
	if count["console"] < 4 || count["yaml"] == 0 || count["go"] == 0 || count["text"] == 0 {
		t.Errorf("blocks: %v", count)
	}
}
