package doors

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	extauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	"github.com/knadh/koanf/parsers/yaml"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/edgelimit/edgelimit/test/console"
)

// TestEnvoyBlock reads the block about Envoy of docs/http-edge.md with Envoy's own types, since Envoy
// itself may not be at hand: every field is one that Envoy has, with a value that it takes.
func TestEnvoyBlock(t *testing.T) {
	t.Parallel()
	found := 0
	for _, block := range console.Blocks(t, filepath.Join("..", "..", "docs", "http-edge.md")) {
		if !strings.Contains(block.Text, "ext_authz") {
			continue
		}
		found++
		tree, err := yaml.Parser().Unmarshal([]byte(block.Text))
		if err != nil {
			t.Fatal(err)
		}
		filters, ok := tree["http_filters"].([]any)
		if !ok || len(filters) != 1 {
			t.Fatalf("line %d: %v", block.Line, tree)
		}
		filter, ok := filters[0].(map[string]any)
		if !ok {
			t.Fatalf("line %d: %v", block.Line, filters)
		}
		typed, ok := filter["typed_config"].(map[string]any)
		if !ok {
			t.Fatalf("line %d: %v", block.Line, filter)
		}
		delete(typed, "@type")
		encoded, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		var config extauthz.ExtAuthz
		if err := protojson.Unmarshal(encoded, &config); err != nil {
			t.Fatalf("line %d: %v", block.Line, err)
		}
		if err := config.ValidateAll(); err != nil {
			t.Errorf("line %d: %v", block.Line, err)
		}
		if config.GetFailureModeAllow() || config.GetHttpService().GetPathPrefix() != "/v1/check" {
			t.Errorf("line %d: %v", block.Line, &config)
		}
	}
	if found != 1 {
		t.Errorf("%d blocks about Envoy, want 1", found)
	}
}
