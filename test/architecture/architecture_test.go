package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// modulePackages is every package of the module and of all that it needs, from
// one call of go list.
var modulePackages = sync.OnceValues(func() ([]listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps,TestImports,XTestImports", module+"/...")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, failure.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
})

func TestEveryImportFollowsTheRules(t *testing.T) {
	t.Parallel()
	packages, err := modulePackages()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range check(packages, rules) {
		t.Error(v)
	}
}

func TestSharedContractNeedsNoModule(t *testing.T) {
	t.Parallel()
	packages, err := modulePackages()
	if err != nil {
		t.Fatal(err)
	}
	standard := map[string]bool{"C": true, "unsafe": true}
	for _, p := range packages {
		standard[p.ImportPath] = standard[p.ImportPath] || p.Standard
	}
	contract := module + "/shared-contract/"
	seen := 0
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, contract) || strings.HasPrefix(p.ImportPath, contract+"contracttest") {
			continue
		}
		seen++
		for _, dependency := range p.Deps {
			if !standard[dependency] && !strings.HasPrefix(dependency, contract) {
				t.Errorf("%s depends on %s", p.ImportPath, dependency)
			}
		}
	}
	if seen == 0 {
		t.Error("go list shows no package of shared-contract")
	}
}

// Every rule must have packages to speak of, or a renamed room would make it
// pass for ever.
func TestEveryRuleSpeaksOfPackagesThatExist(t *testing.T) {
	t.Parallel()
	packages, err := modulePackages()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		found := false
		for _, p := range packages {
			found = found || matchesAny(p.ImportPath, r.who, p.ImportPath, nil)
		}
		if !found {
			t.Errorf("no package matches %v of the rule %q", r.who, r.name)
		}
		if r.why == "" || r.scope == 0 {
			t.Errorf("the rule %q lacks its reason or its scope", r.name)
		}
	}
}
