package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/cli"
)

const (
	envoyExample = "docs/examples/envoy/edgelimit.yaml"
	envoyRules   = "docs/examples/envoy/rules"
	rulesData    = "adapter/inbound/envoyrls/rules/testdata"
)

func TestPolicyImport(t *testing.T) {
	t.Parallel()
	r := run(t, "", nil, "policy", "import", envoyRules)
	r.expect(t, 0, "1 files, 1 domains, 6 rules", "")
	text := strings.Join(strings.Fields(r.stdout), " ")
	for _, want := range []string{
		"edge remote_address 20/second enforce envoy.edge.remote_address-d5312fb4e6f643e8 915375266 gcra 40 60 in any 1s",
		"edge path=/reports/* 100/hour enforce envoy.edge.path-6c7a8e2c4f02d012 423557327 fixed-window 100 200 in any 1h",
		"edge api_key 10000/day shadow", "edge path=/healthz unlimited enforce none", "edge remote_address=203.0.113.9 0/second enforce none",
		"Of all rules, other than elsewhere:", "- A denied request spends nothing",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	// Grace and regression are parameters of a policy, so each makes another revision of it.
	for _, flag := range []string{"--cleanup-grace=1m", "--max-clock-regression=3s"} {
		other := run(t, "", nil, "policy", "import", envoyRules, flag)
		if other.code != 0 || strings.Contains(other.stdout, "915375266") {
			t.Errorf("%s: %d %s", flag, other.code, other.stdout)
		}
	}
	dir := t.TempDir()
	file := func(name, content string) { writeIn(t, dir, name, content) }
	file("a.yaml", "domain: d\ndescriptors: [{key: a, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}]\n")
	file("b.yml", "domain: d\ndescriptors: [{key: b}]\n")
	file("c.txt", "no rules")
	run(t, "", nil, "policy", "import", dir).expect(t, cli.ExitUsage, "", "b.yml:1: domain: is \"d\", which a.yaml has as well")
	r = run(t, "", nil, "policy", "import", "--merge-domains", dir)
	r.expect(t, 0, "- a.yaml:2: descriptors[0].detailed_metric: has no effect", "")
	r.expect(t, 0, "- c.txt: is not read", "")
	run(t, "", nil, "policy", "import").expect(t, cli.ExitUsage, "", "accepts 1 arg")
	run(t, "", nil, "policy", "import", "/nonexistent").expect(t, cli.ExitUsage, "", "no such file")
	run(t, "", nil, "policy", "import", rulesData).expect(t, cli.ExitUsage, "", "bad_replaces.yaml:11: descriptors[0].descriptors[0].rate_limit.replaces[0].name: is \"self\"")
}

var doorOpen = regexp.MustCompile(`envoy door open" address=([0-9.:]+)`)

// TestServeOpensTheDoor: the door opens with the service and closes with it, after the door's own word.
func TestServeOpensTheDoor(t *testing.T) {
	address, log, stop := serving(t, []string{"EDGELIMIT_APP__ENVOY_RLS__ADDRESS=127.0.0.1:0"}, "--config", envoyExample)
	for deadline := time.Now().Add(10 * time.Second); doorOpen.FindStringSubmatch(log.String()) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the door at %s stays closed: %s", address, log)
		}
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, log)
	}
	for _, want := range []string{"rules=6", "policies=4", "envoy door closed"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log)
		}
	}
	bad := t.TempDir()
	writeIn(t, bad, "rules.yaml", "domain: d\ndescriptors: [{key: a, rate_limit: {unit: second}}, {}]\n")
	environ := []string{"EDGELIMIT_APP__ENVOY_RLS__RULES_DIR=" + bad, "EDGELIMIT_APP__SERVICE__HTTP_ADDRESS=127.0.0.1:0"}
	for _, args := range [][]string{{"serve", "--config", envoyExample}, {"policy", "validate", envoyExample}} {
		run(t, "", environ, args...).expect(t, cli.ExitUsage, "", "edgelimit: rules: 1 fault\n  rules.yaml:2: descriptors[1].key: is missing")
	}
	run(t, "", nil, "policy", "validate", envoyExample).expect(t, 0, "unused *", "")
}

func writeIn(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
