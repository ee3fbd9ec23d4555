package rules_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

var update = flag.Bool("update", false, "write the .txt files of testdata; read them before you commit")

var options = rules.Options{CleanupGrace: 5 * time.Second, MaxClockRegression: 2 * time.Second}

func read(t testing.TB, name string) rules.File {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return rules.File{Name: name, Content: content}
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no file %s (%v)", pattern, err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

func parse(t testing.TB, files ...rules.File) *rules.Rules {
	t.Helper()
	loaded, err := rules.Parse(files, options)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func inline(content string) rules.File {
	return rules.File{Name: "inline.yaml", Content: []byte(content)}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBadFiles compares the whole report with the .txt file beside each bad_*.yaml.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	for _, name := range glob(t, "bad_*.yaml") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loaded, err := rules.Parse([]rules.File{read(t, name)}, options)
			var report *rules.Error
			if loaded != nil || !errors.As(err, &report) || len(report.Faults) == 0 {
				t.Fatalf("rules %v beside %v", loaded, err)
			}
			for _, f := range report.Faults {
				if f.File != name || f.Problem == "" {
					t.Errorf("%+v", f)
				}
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// TestGoodFiles compares rules, policies and notes with the .txt file beside each ok_*.yaml.
func TestGoodFiles(t *testing.T) {
	t.Parallel()
	for _, name := range glob(t, "ok_*.yaml") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, strings.TrimSuffix(name, ".yaml")+".txt", show(parse(t, read(t, name))))
		})
	}
}

func TestDomains(t *testing.T) {
	t.Parallel()
	one := rules.File{Name: "1.yaml", Content: []byte("domain: d\ndescriptors:\n- key: a\n  value: x*\n  rate_limit: {unit: day, requests_per_unit: 1}\n")}
	two := rules.File{Name: "2.yaml", Content: []byte("domain: d\ndescriptors:\n- key: a\n  value: xy*\n  rate_limit: {unit: day, requests_per_unit: 2}\n")}
	_, err := rules.Parse([]rules.File{one, two}, options)
	if err == nil || !strings.Contains(err.Error(), `2.yaml:1: domain: is "d", which 1.yaml has as well`) {
		t.Errorf("twice: %v", err)
	}
	merging := options
	merging.MergeDomains = true
	loaded, err := rules.Parse([]rules.File{one, two}, merging)
	if err != nil {
		t.Fatal(err)
	}
	if found := loaded.Find("d", []rules.Entry{{Key: "a", Value: "xyz"}}); found.Rule == nil || found.Rule.RequestsPerUnit != 1 {
		t.Errorf("the first file's wildcard does not win: %+v", found.Rule)
	}
	if _, err = rules.Parse([]rules.File{one, one}, merging); err == nil || !strings.Contains(err.Error(), "is a duplicate") {
		t.Errorf("one descriptor in two files: %v", err)
	}
	// Faults of all files are told at once.
	_, err = rules.Parse([]rules.File{read(t, "bad_unit.yaml"), read(t, "bad_empty_domain.yaml")}, options)
	var report *rules.Error
	if !errors.As(err, &report) || report.Faults[0].File != "bad_empty_domain.yaml" || report.Faults[len(report.Faults)-1].File != "bad_unit.yaml" {
		t.Errorf("%v", err)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		var b strings.Builder
		b.WriteString("domain: d\ndescriptors:\n")
		for i := range n {
			indent := strings.Repeat("  ", i)
			b.WriteString(indent + "- key: k\n")
			if i == n-1 {
				b.WriteString(indent + "  rate_limit: {unit: day, requests_per_unit: 1}\n")
			} else {
				b.WriteString(indent + "  descriptors:\n")
			}
		}
		return b.String()
	}
	if _, err := rules.Parse([]rules.File{inline(deep(rules.MaxDepth))}, options); err != nil {
		t.Errorf("%d deep: %v", rules.MaxDepth, err)
	}
	if _, err := rules.Parse([]rules.File{inline(deep(rules.MaxDepth + 1))}, options); err == nil || !strings.Contains(err.Error(), "more than 32 deep") {
		t.Errorf("%d deep: %v", rules.MaxDepth+1, err)
	}
	var many strings.Builder
	many.WriteString("domain: d\ndescriptors:\n")
	for i := range rules.MaxRules + 5 {
		fmt.Fprintf(&many, "- {key: k, value: v%d}\n", i)
	}
	_, err := rules.Parse([]rules.File{inline(many.String())}, options)
	if err == nil || !strings.Contains(err.Error(), "is one of more than 50000 descriptors") {
		t.Error("more than the bound of descriptors is taken")
	}
	// A few lines of aliases that stand for 10^9 nodes end quickly.
	laughs := "domain: d\ndescriptors:\n- key: a\n  metadata:\n    a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		laughs += "    " + string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	if _, err = rules.Parse([]rules.File{inline(laughs)}, options); err == nil || !strings.Contains(err.Error(), "more than 1000 values") {
		t.Errorf("aliases: %v", err)
	}
	merges := "domain: d\ndescriptors:\n- {key: a, rate_limit: &a {unit: day, requests_per_unit: 1}}\n"
	for c := 'b'; c < 'z'; c++ {
		merges += "- {key: " + string(c) + ", rate_limit: &" + string(c) + " {<<: [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 20), ",") + "]}}\n"
	}
	if _, err = rules.Parse([]rules.File{inline(merges)}, options); err == nil || !strings.Contains(err.Error(), "stands for too much") {
		t.Error("merge keys without end are taken")
	}
}

// TestRevisions: a rule that changes gets another revision under the same ID, and what does not change
// the parameters changes neither.
func TestRevisions(t *testing.T) {
	t.Parallel()
	base := "domain: d\ndescriptors:\n- key: a\n  value: x\n  rate_limit: {unit: minute, requests_per_unit: 5}\n"
	of := func(content string, o rules.Options) *ratelimit.RateLimitPolicy {
		loaded, err := rules.Parse([]rules.File{inline(content)}, o)
		if err != nil {
			t.Fatal(err)
		}
		return loaded.Find("d", []rules.Entry{{Key: "a", Value: "x"}}).Rule.Policy
	}
	first := of(base, options)
	for name, content := range map[string]string{
		"another rule before it": strings.Replace(base, "descriptors:\n", "descriptors:\n- key: b\n  rate_limit: {unit: day, requests_per_unit: 1}\n", 1),
		"shadow_mode":            base + "  shadow_mode: true\n",
		"a name":                 strings.Replace(base, "5}", "5, name: n}", 1),
		"the default's own word": base + "  edgelimit: {algorithm: fixed-window, max_cost: 5}\n",
	} {
		if p := of(content, options); p.ID() != first.ID() || p.Revision() != first.Revision() || p.Fingerprint() != first.Fingerprint() {
			t.Errorf("%s: %s %d, was %s %d", name, p.ID(), p.Revision(), first.ID(), first.Revision())
		}
	}
	grace := options
	grace.CleanupGrace = time.Minute
	seen := map[int64]string{first.Revision(): "base"}
	for name, p := range map[string]*ratelimit.RateLimitPolicy{
		"limit":     of(strings.Replace(base, "5}", "6}", 1), options),
		"unit":      of(strings.Replace(base, "minute", "hour", 1), options),
		"algorithm": of(base+"  edgelimit: {algorithm: sliding-window-counter}\n", options),
		"max cost":  of(base+"  edgelimit: {max_cost: 4}\n", options),
		"grace":     of(base, grace),
	} {
		if p.ID() != first.ID() || seen[p.Revision()] != "" || p.Revision() < 1 || p.Revision() > ratelimit.MaxPolicyRevision {
			t.Errorf("%s: %s, revision %d is that of %q", name, p.ID(), p.Revision(), seen[p.Revision()])
		}
		seen[p.Revision()] = name
	}
}

// TestPolicyIDs: places that a separator could confuse have IDs of their own, all of them valid, and no
// value can be read in one.
func TestPolicyIDs(t *testing.T) {
	t.Parallel()
	const secret = "alice"
	loaded := parse(t, inline(`
domain: d
descriptors:
- {key: a, value: b_c, rate_limit: &l {unit: day, requests_per_unit: 1}}
- {key: a_b, value: c, rate_limit: *l}
- {key: a_b_c, rate_limit: *l}
- {key: a.b, rate_limit: *l}
- key: a
  rate_limit: *l
  descriptors: [{key: b, rate_limit: *l}, {key: b, value: c, rate_limit: *l}]
- {key: ключ, value: alice, rate_limit: *l}
- {key: "a/b c", value: alice, rate_limit: *l}
- {key: `+strings.Repeat("long", 100)+`, rate_limit: *l}
- {key: `+strings.Repeat("long", 100)+`, value: x, rate_limit: *l}
`), rules.File{Name: "2.yaml", Content: []byte("domain: d.a\ndescriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 1}}]")})
	seen := make(map[ratelimit.PolicyID]string)
	for _, r := range loaded.All() {
		id := r.Policy.ID()
		if other, twice := seen[id]; twice || id.Validate() != nil || !strings.HasPrefix(string(id), rules.PolicyPrefix) || strings.Contains(string(id), secret) {
			t.Errorf("%s of %s: %v, also that of %q", id, r.Descriptor, id.Validate(), other)
		}
		seen[id] = r.Descriptor
	}
	if len(seen) != 12 {
		t.Errorf("%d policies", len(seen))
	}
}

// TestFaultsAreBounded: a file of which everything is wrong does not make a log of it.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	_, err := rules.Parse([]rules.File{
		inline("domain: d\ndescriptors:\n" + strings.Repeat("- {}\n", 20_000)), {Name: "2.yaml", Content: []byte("domain: d\ndescriptors:\n" + strings.Repeat("- x\n", 20_000))},
	}, options)
	var report *rules.Error
	if !errors.As(err, &report) || len(report.Faults) != 1001 || !strings.Contains(err.Error(), "has more faults") {
		t.Errorf("%d faults", len(report.Faults))
	}
}
