package rules_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

// FuzzParse: whatever a file holds, it is taken or refused with its name; what is taken gives every rule
// that limits a policy that the set knows, and gives the same when it is read again.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(paths) == 0 {
		f.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := []rules.File{{Name: "fuzzed.yaml", Content: content}}
		loaded, err := rules.Parse(file, options)
		if err != nil {
			var report *rules.Error
			if loaded != nil || !errors.As(err, &report) || len(report.Faults) == 0 {
				t.Fatalf("%v beside %v", loaded, err)
			}
			for _, fault := range report.Faults {
				if fault.File != "fuzzed.yaml" || fault.Problem == "" || fault.Line < 0 {
					t.Errorf("%+v", fault)
				}
			}
			return
		}
		for _, r := range loaded.All() {
			switch r.Effect {
			case rules.EffectLimit:
				if r.Policy == nil || loaded.Policies().Get(r.Policy.ID()) != r.Policy || r.Unit == rules.UnitInvalid || r.RequestsPerUnit == 0 {
					t.Errorf("%+v", r)
				}
			case rules.EffectUnlimited, rules.EffectDeny:
				if r.Policy != nil {
					t.Errorf("%+v", r)
				}
			case rules.EffectInvalid:
				t.Errorf("%+v", r)
			}
		}
		again, err := rules.Parse(file, options)
		if err != nil || show(again) != show(loaded) {
			t.Errorf("read again: %v\n%s\n%s", err, show(loaded), show(again))
		}
	})
}
