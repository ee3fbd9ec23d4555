package chaos

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/test/lanes"
)

// clusterArgs make a server a node of a cluster. Its bus has a port below those that the kernel takes
// outgoing ports from.
func clusterArgs(t testing.TB) (args []string, bus string) {
	t.Helper()
	for port := 10000; port < 20000; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		bus = strconv.Itoa(port)
		return []string{"--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-port", bus}, bus
	}
	t.Fatal("no free port for the bus of a cluster")
	return nil, ""
}

// byCluster are the rows of a server that is a node of a cluster, which b.other is too.
func byCluster() []certainty {
	slot := func(b *bench, r request) any { return b.do("CLUSTER", "KEYSLOT", b.key(r)) }
	return []certainty{
		{
			name: "cluster-down", says: "the server is a cluster's node, and nobody serves the key's slot (`CLUSTERDOWN`)", outcome: "Unavailable CLUSTER", passed: 1,
			act: func(b *bench, r request) ratelimit.Outcome {
				b.do("CLUSTER", "DELSLOTS", slot(b, r))
				defer b.do("CLUSTER", "ADDSLOTS", slot(b, r))
				return b.evaluate(r)
			},
		},
		{
			name: "moved", says: "the server is a cluster's node, and another one serves the key's slot (`MOVED`)", outcome: "Unavailable CLUSTER", passed: 1,
			act: func(b *bench, r request) ratelimit.Outcome {
				b.do("CLUSTER", "SETSLOT", slot(b, r), "NODE", b.other)
				defer b.do("CLUSTER", "SETSLOT", slot(b, r), "NODE", b.do("CLUSTER", "MYID"))
				return b.evaluate(r)
			},
		},
		{
			name: "ask", says: "the server is a cluster's node, and the key's slot moves to another one (`ASK`)", outcome: "Unavailable CLUSTER", passed: 1,
			act: func(b *bench, r request) ratelimit.Outcome {
				b.do("CLUSTER", "SETSLOT", slot(b, r), "MIGRATING", b.other)
				defer b.do("CLUSTER", "SETSLOT", slot(b, r), "STABLE")
				return b.evaluate(r)
			},
		},
	}
}

// TestCertaintyByCluster makes the refusals of a cluster's node.
func TestCertaintyByCluster(t *testing.T) {
	t.Parallel()
	args, _ := clusterArgs(t)
	b := newBench(t, options{args: args, cold: true, timeout: 5 * waits})
	args, bus := clusterArgs(t)
	second := lanes.StartProcess(t, lanes.Options{Args: args})
	b.do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	b.do("CLUSTER", "MEET", "127.0.0.1", second.Port, bus)
	client := connect(t, plainOptions(second.Addr))
	var err error
	if b.other, err = client.Do(t.Context(), "CLUSTER", "MYID").Text(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the nodes are a cluster", func() error {
		nodes, err := b.admin.ClusterNodes(t.Context()).Result()
		if err != nil {
			return err
		}
		if !strings.Contains(nodes, b.other) || strings.Contains(nodes, "handshake") {
			return errors.New(nodes)
		}
		state, err := b.admin.ClusterInfo(t.Context()).Result()
		if err == nil && !strings.Contains(state, "cluster_state:ok") {
			err = errors.New(state)
		}
		return err
	})
	b.store.Start()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.store.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	for i, row := range byCluster() {
		t.Run(row.name, func(t *testing.T) { row.holdOn(t, b, i) })
	}
	b.settle()
}
