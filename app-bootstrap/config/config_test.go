package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the .txt files beside bad_*.yaml; read them before you commit")

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s (%v)", pattern, err)
	}
	return files
}

func TestGoodFiles(t *testing.T) {
	t.Parallel()
	for _, file := range glob(t, "ok_*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			c, err := Load(Source{File: file})
			if err != nil {
				t.Fatal(err)
			}
			if problem := outOfRange(c); problem != "" {
				t.Error(problem)
			}
		})
	}
}

// TestBadFiles compares the whole report with the .txt file beside each bad_*.yaml.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	for _, file := range glob(t, "bad_*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			c, err := Load(Source{File: file})
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(Config{}, c, cmp.AllowUnexported(Secret{}), cmp.Comparer(Secret.Equal)); diff != "" {
				t.Errorf("a configuration beside the error: %s", diff)
			}
			var report *Error
			if !errors.As(err, &report) || len(report.Faults) == 0 {
				t.Fatalf("error is a %T without faults", err)
			}
			text := strings.ReplaceAll(err.Error(), `\\`, "/") + "\n"
			for _, secret := range []string{"hunter2", "0123456789abcdef", "12345,"} {
				if strings.Contains(text, secret) {
					t.Errorf("the report repeats a secret:\n%s", text)
				}
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
