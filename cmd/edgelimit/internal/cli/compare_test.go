package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/replay"
)

// TestGuaranteesCompareTheAlgorithms replays the sample log under every algorithm with the same
// numbers and holds the table of docs/guarantees.md to what came of it.
func TestGuaranteesCompareTheAlgorithms(t *testing.T) {
	t.Parallel()
	root := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(replayExample))))
	out := filepath.Join(t.TempDir(), "decisions.ndjson")
	compare := filepath.Join(filepath.Dir(replayExample), "compare.yaml")
	run(t, "", nil, "replay", "--config", compare, "--out", out, sampleLog).expect(t, 0, "10000 lines", "")
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	allowed := map[string]map[int64]bool{} // by policy and line
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		var l replay.Line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil || l.Decision == nil {
			t.Fatalf("%v %s", err, scanner.Text())
		}
		if allowed[l.PolicyID] == nil {
			allowed[l.PolicyID] = map[int64]bool{}
		}
		allowed[l.PolicyID][int64(l.Line)] = l.Decision.Allowed
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, numbers := range []string{"20-1m", "60-1h"} {
		exact := allowed["log-"+numbers]
		for _, name := range []string{"fixed", "counter", "bucket", "gcra", "log"} {
			denied, stricter, laxer := 0, 0, 0
			for line, ok := range allowed[name+"-"+numbers] {
				switch {
				case !ok && exact[line]:
					denied++
					stricter++
				case !ok:
					denied++
				case !exact[line]:
					laxer++
				}
			}
			row := fmt.Sprintf("| %s-%s | %d | %d | %d |", name, numbers, denied, stricter, laxer)
			if !strings.Contains(string(text), row+"\n") {
				t.Errorf("docs/guarantees.md lacks the row %s", row)
			}
		}
		for line, ok := range allowed["gcra-"+numbers] {
			if allowed["bucket-"+numbers][line] != ok {
				t.Errorf("line %d: gcra and token bucket differ", line)
			}
		}
	}
}
