package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// line is a row as docs/failure-modes.md has it.
func (row certainty) line() string {
	kind, category, _ := strings.Cut(row.outcome, " ")
	outcome := kind
	if category != "" && kind != "Evaluated" {
		outcome += " `" + category + "`"
	}
	return fmt.Sprintf("| %s | %s | %d | %d |", row.says, outcome, row.spent, row.passed)
}

// TestPage holds the table of docs/failure-modes.md to the rows of this suite: each is there, and there
// is no other. So what the page says of a fault is what happened when it was made.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "failure-modes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| fault | outcome | spent | arrived |\n| --- | --- | --- | --- |\n")
	if !found {
		t.Fatal("the page has no table of outcomes")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	have := strings.Split(strings.TrimSpace(table), "\n")
	var want []string
	for _, row := range slices.Concat(atProxy(), []certainty{handshake}, byServer(), byCluster()) {
		want = append(want, row.line())
	}
	for _, line := range want {
		if !slices.Contains(have, line) {
			t.Errorf("the page has no row\n%s", line)
		}
	}
	for _, line := range have {
		if !slices.Contains(want, line) {
			t.Errorf("no test makes the fault of\n%s", line)
		}
	}
	for _, d := range disturbances() {
		if !strings.Contains(string(text), "`"+d.name+"`") {
			t.Errorf("the page does not name the fault %s of the schedule", d.name)
		}
	}
}
