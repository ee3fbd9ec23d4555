package contract

import (
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestLowestVersionHasALane holds the manifest to what really runs: the lowest version is that of a
// lane, and no program claims a lower one.
func TestLowestVersionHasALane(t *testing.T) {
	lowest := ""
	for _, server := range lanes.All(t) {
		t.Logf("lane %s: %s %s", server.Lane, server.Product, server.Version)
		if server.Product == "redis" && strings.HasPrefix(server.Version, lua.LowestRedis+".") {
			lowest = server.Version
		}
	}
	if lowest == "" {
		t.Errorf("no lane runs Redis %s, the lowest of the manifest", lua.LowestRedis)
	}
	for _, program := range lua.Programs() {
		if program.LowestRedis != lua.LowestRedis {
			t.Errorf("%s claims %s", program.Descriptor.ID(), program.LowestRedis)
		}
	}
}
