package chaos

import (
	"encoding/json"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// toxic is a fault of the library's, by its name in the library.
type toxic struct {
	kind       string
	upstream   bool // else on the way back
	attributes map[string]int
}

// startToxic starts a proxy of the library with one fault before a server and gives its address. The
// fault is there before the first connection and until the last: the library can wait for ever where
// faults are added to, or taken from, a connection that another fault has ended.
func startToxic(t testing.TB, upstream string, what toxic) (address string, stop func()) {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, what.kind, "127.0.0.1:0", upstream)
	if err := p.Start(); err != nil {
		t.Errorf("toxiproxy: %v", err)
		return upstream, func() {}
	}
	addToxic(t, p, what)
	return p.Listen, p.Stop
}

// addToxic adds a fault to a proxy that has no connections.
func addToxic(t testing.TB, p *toxiproxy.Proxy, what toxic) {
	t.Helper()
	direction := "downstream"
	if what.upstream {
		direction = "upstream"
	}
	text, err := json.Marshal(map[string]any{"type": what.kind, "stream": direction, "attributes": what.attributes})
	if err == nil {
		_, err = p.Toxics.AddToxicJson(strings.NewReader(string(text)))
	}
	if err != nil {
		t.Errorf("toxiproxy: %v", err)
	}
}
