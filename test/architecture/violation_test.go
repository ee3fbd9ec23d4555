package architecture

import (
	"strings"
	"testing"
)

// Each made-up package breaks one rule; the engine must name it.
func TestTheEngineSeesViolations(t *testing.T) {
	t.Parallel()
	std := []listed{
		{ImportPath: "testing", Standard: true},
		{ImportPath: "fmt", Standard: true},
	}
	in := func(path string) string { return module + "/" + path }
	for _, test := range []struct {
		rule string
		pkg  listed
	}{
		{"shared-contract imports the standard library and itself", listed{
			ImportPath: in("shared-contract/ratelimit"), Imports: []string{"fmt"},
			Deps: []string{"fmt", "go.opentelemetry.io/otel"},
		}},
		{"contracttest imports what compares and generates values beside that", listed{
			ImportPath: in("shared-contract/contracttest"), Deps: []string{"testing", in("adapter/outbound/memory")},
		}},
		{"tests of shared-contract know no adapter", listed{
			ImportPath: in("shared-contract/store"), XTestImports: []string{"testing", in("adapter/outbound/memory")},
		}},
		{"lua imports shared-contract/store", listed{
			ImportPath: in("lua"), Imports: []string{in("shared-contract/store"), in("shared-contract/ratelimit")},
		}},
		{"only cacheredis has a Redis client", listed{
			ImportPath: in("app-bootstrap/service"), Imports: []string{"github.com/redis/go-redis/v9"},
		}},
		{"only cacheredis among the adapters has programs", listed{
			ImportPath: in("adapter/outbound/memory"), Imports: []string{in("lua")},
		}},
		{"only the composition knows fx and koanf", listed{
			ImportPath: in("adapter/outbound/cacheredis"), Deps: []string{"github.com/knadh/koanf/v2"},
		}},
		{"adapters do not import each other", listed{
			ImportPath: in("adapter/outbound/memory/sub"),
			Imports:    []string{in("adapter/outbound/memory"), in("adapter/outbound/cacheredis")},
		}},
		{"inbound adapters import shared-contract only", listed{
			ImportPath: in("adapter/inbound/httpapi"), Imports: []string{in("shared-contract/ratelimit"), in("app-bootstrap")},
		}},
		{"inbound adapters import shared-contract only", listed{
			ImportPath: in("adapter/inbound/internal/edge"), Imports: []string{in("adapter/outbound/memory")},
		}},
		{"the doors of HTTP bring no gRPC", listed{
			ImportPath: in("adapter/inbound/httpedge"), Deps: []string{"google.golang.org/grpc/codes"},
		}},
		{"only what doors have in common writes structured fields", listed{
			ImportPath: in("adapter/inbound/httpedge"), Imports: []string{"github.com/dunglas/httpsfv"},
		}},
		{"outbound adapters import shared-contract and lua", listed{
			ImportPath: in("adapter/outbound/cacheredis"), Imports: []string{in("lua"), in("cmd/edgelimit/internal/x")},
		}},
		{"the rate limiter's runtime knows no cache", listed{
			ImportPath: in("app-bootstrap/composition"), Deps: []string{"fmt", in("shared-contract/cache/failopen")},
		}},
		{"only the door for Envoy brings gRPC and Envoy's types", listed{
			ImportPath: in("app-bootstrap/config"), Deps: []string{"fmt", "google.golang.org/grpc"},
		}},
		{"only the door for Envoy watches files", listed{
			ImportPath: in("app-bootstrap/config"), Imports: []string{"github.com/fsnotify/fsnotify"}, Deps: []string{"github.com/fsnotify/fsnotify"},
		}},
		{"only the rules of Envoy read YAML by themselves", listed{
			ImportPath: in("app-bootstrap/config"), Imports: []string{"go.yaml.in/yaml/v3"},
		}},
		{"the rules of Envoy know no protocol", listed{
			ImportPath: in("adapter/inbound/envoyrls/rules"), Deps: []string{"google.golang.org/protobuf/proto"},
		}},
		{"app-bootstrap does not import programs or examples", listed{
			ImportPath: in("app-bootstrap"), Imports: []string{in("cmd/edgelimit/internal/x")},
		}},
		{"production code imports no test code", listed{
			ImportPath: in("cmd/edgelimit"), Imports: []string{"testing"},
		}},
		{"production code imports no test code", listed{
			ImportPath: in("app-bootstrap"), Imports: []string{in("test/lanes")},
		}},
	} {
		found := check(append(std, test.pkg), rules)
		if !holds(found, test.rule) {
			t.Errorf("%s: the rule %q is not among %v", test.pkg.ImportPath, test.rule, found)
		}
	}
	seen := map[string]bool{}
	for _, r := range rules {
		if seen[r.name] {
			t.Errorf("two rules are named %q", r.name)
		}
		seen[r.name] = true
	}
}

func TestTheEngineLeavesLawfulImportsAlone(t *testing.T) {
	t.Parallel()
	in := func(path string) string { return module + "/" + path }
	packages := []listed{
		{ImportPath: "fmt", Standard: true},
		{ImportPath: "testing", Standard: true},
		{ImportPath: in("shared-contract/ratelimit"), Imports: []string{"fmt"}, Deps: []string{"fmt", "unsafe"}},
		{ImportPath: in("shared-contract/contracttest"), Imports: []string{"testing"}, Deps: []string{"testing"}},
		{ImportPath: in("lua"), Imports: []string{in("shared-contract/store")}, TestImports: []string{"github.com/redis/go-redis/v9"}},
		{ImportPath: in("adapter/outbound/cacheredis"), Imports: []string{
			in("lua"), in("shared-contract/store"), in("adapter/outbound/cacheredis/internal/x"), "github.com/redis/go-redis/v9",
		}},
		{ImportPath: in("adapter/inbound/httpapi"), Imports: []string{in("shared-contract/ratelimit")}, XTestImports: []string{in("adapter/outbound/memory")}},
		{ImportPath: in("adapter/inbound/grpcedge"), Imports: []string{in("adapter/inbound/internal/edge"), "google.golang.org/grpc"}, Deps: []string{"google.golang.org/grpc"}},
		{ImportPath: in("adapter/inbound/internal/edge"), Imports: []string{in("shared-contract/ratelimit"), "github.com/dunglas/httpsfv"}},
		{ImportPath: in("app-bootstrap"), Imports: []string{in("adapter/outbound/memory"), "go.uber.org/fx"}, Deps: []string{"go.uber.org/fx"}},
		{ImportPath: in("test/lanes"), Imports: []string{"testing", "github.com/testcontainers/testcontainers-go"}},
		// A path that only begins alike is another one.
		{ImportPath: in("adapter/inbound/httpedge"), Imports: []string{in("shared-contract/ratelimit"), "github.com/redis/go-redis-like"}},
	}
	for _, v := range check(packages, rules) {
		t.Error(v)
	}
}

func TestAViolationTellsItsReason(t *testing.T) {
	t.Parallel()
	v := violation{importer: "a", imported: "b", rule: rule{name: "n", why: "because"}}
	for _, want := range []string{"a imports b", "n", "because"} {
		if !strings.Contains(v.String(), want) {
			t.Errorf("%q is not in %q", want, v)
		}
	}
}

func holds(found []violation, name string) bool {
	for _, v := range found {
		if v.rule.name == name {
			return true
		}
	}
	return false
}
