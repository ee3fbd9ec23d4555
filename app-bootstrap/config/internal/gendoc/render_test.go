package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile(filepath.Join("..", "..", "testdata", "ok_full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), string(render(config.Reference(), string(example)))); diff != "" {
		t.Errorf("docs/configuration.md is not what go generate writes (-page +generated):\n%s", diff)
	}
}

func TestEveryEntryHasASection(t *testing.T) {
	t.Parallel()
	for _, e := range config.Reference() {
		if sectionOf(e.Path) < 0 {
			t.Errorf("%s is in no section of the page", e.Path)
		}
		if e.Type == "" || e.Default == "" || e.Description == "" {
			t.Errorf("%s lacks its type, default or description: %+v", e.Path, e)
		}
	}
}
