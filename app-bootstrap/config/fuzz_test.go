package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzConfig holds Load to a report or to a configuration that is in range, whatever the file and
// the environment say. No file beside the fuzzed one is read.
func FuzzConfig(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, "RATE_LIMIT__ENABLED", "true")
	}
	f.Add([]byte("1: {2: 3}\n? [a]\n: b\n"), "RATE_LIMIT__POLICIES__P__LIMIT", "9")
	f.Fuzz(func(t *testing.T, content []byte, name, value string) {
		d := newDecoder(strict)
		d.read = func(string, int64) ([]byte, error) { return nil, errors.New("not read") }
		c, err := d.load(Source{File: "fuzz.yaml", Environ: []string{EnvironmentPrefix + name + "=" + value}}, content)
		if err != nil {
			var report *Error
			if !errors.As(err, &report) || len(report.Faults) == 0 {
				t.Fatalf("error is a %T: %v", err, err)
			}
			for _, fault := range report.Faults {
				if fault.Path == "" || fault.Problem == "" || strings.ContainsAny(fault.String(), "\n\r") {
					t.Fatalf("fault %q", fault)
				}
			}
			return
		}
		if problem := outOfRange(c); problem != "" {
			t.Fatal(problem)
		}
	})
}
