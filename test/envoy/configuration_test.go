package envoy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	ratelimitfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3" // a type of the example
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3" // likewise
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
)

const exampleDir = "../../docs/examples/envoy"

// bootstrap reads the example's configuration of Envoy with Envoy's own types: an unknown field, a type
// that is not there and a value out of range are errors.
func bootstrap(t *testing.T) *bootstrapv3.Bootstrap {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(exampleDir, "envoy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := yaml.Unmarshal(content, &tree); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrapv3.Bootstrap{}
	if err := protojson.Unmarshal(encoded, b); err != nil {
		t.Fatal(err)
	}
	if err := b.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestExampleOfEnvoy(t *testing.T) {
	t.Parallel()
	b := bootstrap(t)
	manager := &managerv3.HttpConnectionManager{}
	if err := b.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
		t.Fatal(err)
	}
	if err := manager.ValidateAll(); err != nil {
		t.Error(err)
	}
	filter := &ratelimitfilterv3.RateLimit{}
	if err := manager.GetHttpFilters()[0].GetTypedConfig().UnmarshalTo(filter); err != nil {
		t.Fatal(err)
	}
	if err := filter.ValidateAll(); err != nil {
		t.Error(err)
	}
	if !filter.GetFailureModeDeny() {
		t.Error("what could not be decided is let through")
	}
	cfg, err := config.Load(config.Source{File: filepath.Join(exampleDir, "edgelimit.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if timeout := filter.GetTimeout().AsDuration(); timeout <= cfg.RateLimit.Redis.CommandTimeout {
		t.Errorf("Envoy waits %v, and one evaluation may take %v", timeout, cfg.RateLimit.Redis.CommandTimeout)
	}
	// What Envoy calls is where the door listens, and every limit that it asks for is one of the rules.
	name := filter.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName()
	found := false
	for _, c := range b.GetStaticResources().GetClusters() {
		if c.GetName() != name {
			continue
		}
		found = true
		address := c.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
		if got := address.GetAddress() + ":" + strconv.Itoa(int(address.GetPortValue())); got != cfg.EnvoyRLS.Address {
			t.Errorf("Envoy calls %s, the door is at %s", got, cfg.EnvoyRLS.Address)
		}
	}
	if !found {
		t.Errorf("no cluster %s", name)
	}
	loaded, directory, err := envoydoor.Import(filepath.Join(exampleDir, "rules"), envoydoor.Options{
		CleanupGrace: cfg.EnvoyRLS.CleanupGrace, MaxClockRegression: cfg.EnvoyRLS.MaxClockRegression,
	})
	if err != nil || len(directory.Ignored) > 0 || len(loaded.Notes()) > 0 {
		t.Fatalf("%v, %v", err, directory.Ignored)
	}
	if loaded.All()[0].Domain != filter.GetDomain() {
		t.Errorf("Envoy asks about %s, the rules are of %s", filter.GetDomain(), loaded.All()[0].Domain)
	}
	if cfg.EnvoyRLS.RulesDir != "docs/examples/envoy/rules" {
		t.Errorf("the rules are in %s", cfg.EnvoyRLS.RulesDir)
	}
	// The rules decide what Envoy's actions make of a request.
	_, client := open(t, exampleSettings(cfg), composed(t, ""), nil)
	for _, c := range []struct {
		ask  []string
		want string
	}{
		{[]string{"path=/login,remote_address=192.0.2.7", "remote_address=192.0.2.7"}, "OK"},
		{[]string{"path=/reports/1", "remote_address=192.0.2.7"}, "OK"},
		{[]string{"remote_address=203.0.113.9"}, "OVER_LIMIT"},
		{[]string{"api_key=k"}, "OK"},
	} {
		response, err := call(t.Context(), client, (step{Ask: c.ask}).request(t, filter.GetDomain()))
		if err != nil || response.GetOverallCode().String() != c.want {
			t.Errorf("%v: %v, %v", c.ask, response, err)
		}
	}
}

func exampleSettings(cfg config.Config) config.EnvoyRLS {
	e := cfg.EnvoyRLS
	e.Address, e.RulesDir = "127.0.0.1:0", filepath.Join(exampleDir, "rules")
	return e
}

// TestTheDocumentNamesEveryDifference: the program's list and the document's are one.
func TestTheDocumentNamesEveryDifference(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(content), "| here | there, and why |\n| --- | --- |\n")
	if !ok {
		t.Fatal("the table is missing")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	want := make([]string, 0, len(rules.Differences()))
	for _, d := range rules.Differences() {
		want = append(want, "| "+d.What+" | "+d.Why+" |")
	}
	if diff := cmp.Diff(want, strings.Split(table, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
