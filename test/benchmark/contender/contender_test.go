package contender

import (
	"testing"

	"github.com/edgelimit/edgelimit/test/benchmark/redisproc"
)

// What is compared decides what its cell says: allowances all pass, and of a spent key nothing does.
func TestEveryContenderOverRedisDecides(t *testing.T) {
	t.Parallel()
	server, err := redisproc.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range OverRedis() {
		for _, kind := range []Kind{Allow, Deny} {
			if c.Fixed && kind == Deny {
				continue
			}
			t.Run(c.Name+" "+string(kind), func(t *testing.T) {
				decide(t, c, Setting{Address: server.Address, Kind: kind, Keys: 3, PoolSize: 2, Callers: 1, Policies: 2})
			})
		}
	}
}

func TestEveryContenderInMemoryDecides(t *testing.T) {
	t.Parallel()
	for _, c := range InMemory() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			decide(t, c, Setting{Kind: Allow, Keys: 3, Callers: 1})
		})
	}
}

func decide(t *testing.T, c Contender, setting Setting) {
	t.Helper()
	decider, err := c.Open(t.Context(), setting)
	if err != nil {
		t.Fatal(err)
	}
	for key := range setting.Keys {
		for again := range 3 {
			want := setting.Kind == Allow || again == 0
			if allowed, err := decider.Decide(t.Context(), key); err != nil || allowed != want {
				t.Errorf("key %d, call %d: %v, %v, want %v", key, again+1, allowed, err, want)
			}
		}
	}
	if err := decider.Close(); err != nil {
		t.Error(err)
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	for _, list := range [][]Contender{OverRedis(), InMemory()} {
		seen := make(map[string]bool)
		for _, c := range list {
			if seen[c.Name] || c.Name == "" || c.Module == "" || c.Role == "" || c.Algorithm == "" || c.Note == "" {
				t.Errorf("%+v", c)
			}
			seen[c.Name] = true
		}
	}
}

func TestSubjectsDiffer(t *testing.T) {
	t.Parallel()
	all, err := subjects(10_000)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool, len(all))
	for _, subject := range all {
		seen[subject.String()] = true
	}
	if len(seen) != len(all) {
		t.Errorf("%d of %d", len(seen), len(all))
	}
}
