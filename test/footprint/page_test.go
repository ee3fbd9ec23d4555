package footprint

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/test/lanes"
)

var (
	update = flag.Bool("update", false, "write the measured tables into docs/guarantees.md")
	keys   = flag.Int("keys", 100, "keys over which a mean is taken")
)

func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }

var page = filepath.Join("..", "..", "docs", "guarantees.md")

// table gives the rows between two marks of the page, without its head.
func table(t *testing.T, name string) []string {
	t.Helper()
	_, rows, _ := split(t, name)
	lines := strings.Split(strings.TrimSpace(rows), "\n")
	if len(lines) < 3 {
		t.Fatalf("%s has no table %s", page, name)
	}
	return lines[2:]
}

func split(t *testing.T, name string) (before, rows, after string) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(string(content), begin)
	rows, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no marks %q and %q", page, begin, end)
	}
	return before + begin, rows, end + after
}

// rewrite puts a table into the page.
func rewrite(t *testing.T, name, head string, rows []string) {
	t.Helper()
	before, _, after := split(t, name)
	rule := strings.Repeat("| --- ", strings.Count(head, "|")-1) + "|"
	text := head + "\n" + rule + "\n" + strings.Join(rows, "\n") + "\n"
	if err := os.WriteFile(page, []byte(before+text+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
