package breaker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageShowsTestedCode: each block of docs/circuit-breaker.md is a piece of the example that runs,
// but for the line that composes a host.
func TestPageShowsTestedCode(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "circuit-breaker.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join(root, "adapter", "outbound", "memory", "breaker_example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	shown := 0
	for _, block := range blocks {
		code, _, ended := strings.Cut(block, "```")
		if !ended {
			t.Fatal("a block without an end")
		}
		if strings.HasPrefix(code, "fx.New(") {
			continue
		}
		shown++
		if !strings.Contains(string(example), code) {
			t.Errorf("not in the example:\n%s", code)
		}
	}
	if shown != 2 {
		t.Errorf("%d blocks of the example are shown, want 2", shown)
	}
	// The worked numbers are those that the example prints.
	for _, line := range []string{"retry after 29 s", "retry after 1 s"} {
		if !strings.Contains(string(page), line) || !strings.Contains(string(example), strings.Replace(line, " s", "s", 1)) {
			t.Errorf("%q is not in both", line)
		}
	}
}
