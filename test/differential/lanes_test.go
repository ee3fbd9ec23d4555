package differential

import (
	"testing"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// servers gives every lane's server by a name that says its version.
func servers(t *testing.T) map[string]*lanes.Server {
	t.Helper()
	byName := map[string]*lanes.Server{}
	for _, server := range []*lanes.Server{lanes.Default(t), lanes.Debian70(t)} {
		byName[server.Product+" "+server.Version] = server
	}
	return byName
}
