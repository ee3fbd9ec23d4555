package envoydoor_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// host is the koanf of an application that has a limiter in memory, and perhaps a door.
func host(t *testing.T, door map[string]any) *koanf.Koanf {
	t.Helper()
	k := koanf.New(".")
	app := map[string]any{"rate-limit": map[string]any{
		"enabled": true, "provider": "memory", "default-policy": "p",
		"policies": map[string]any{"p": map[string]any{"revision": 1, "algorithm": "fixed-window", "limit": 1, "window": "1s"}},
	}}
	if door != nil {
		app["envoy-rls"] = door
	}
	if err := k.Load(confmap.Provider(map[string]any{"app": app}, "."), nil); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestModule: in a whole application, the door decides by the limiter's own memory.
func TestModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), []byte("domain: d\ndescriptors: [{key: a, rate_limit: {unit: year, requests_per_unit: 2}}]\n"))
	k := host(t, map[string]any{"enabled": true, "rules-dir": dir, "address": "127.0.0.1:0"})
	var door *envoydoor.Door
	app := fxtest.New(t, fx.Supply(slog.New(slog.DiscardHandler)), composition.FromHost(k), envoydoor.FromHost(k), fx.Populate(&door))
	app.RequireStart()
	conn := dial(t, door, nil)
	for i, want := range []string{"OK", "OK", "OVER_LIMIT"} {
		response, err := ask(t.Context(), conn)
		if err != nil || response.GetOverallCode().String() != want {
			t.Errorf("%d: %v, %v", i, response, err)
		}
	}
	app.RequireStop()
	if !door.Stopping() {
		t.Error("the door is open")
	}
}

func TestDisabledModule(t *testing.T) {
	t.Parallel()
	for name, door := range map[string]map[string]any{"off": {"enabled": false}, "absent": nil} {
		k := host(t, door)
		var found struct {
			fx.In
			Door *envoydoor.Door `optional:"true"`
		}
		app := fxtest.New(t, composition.FromHost(k), envoydoor.FromHost(k), fx.Invoke(func(p struct {
			fx.In
			Door *envoydoor.Door `optional:"true"`
		},
		) {
			found.Door = p.Door
		}))
		app.RequireStart().RequireStop()
		if found.Door != nil {
			t.Errorf("%s: there is a door", name)
		}
	}
}

func TestGraph(t *testing.T) {
	t.Parallel()
	cfg := settings(directory(t, 1))
	limiter, err := config.RateLimitFromKoanf(host(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := fx.ValidateApp(fx.NopLogger, composition.Module(limiter), envoydoor.Module(cfg)); err != nil {
		t.Error(err)
	}
	if err := fx.ValidateApp(fx.NopLogger, envoydoor.Module(cfg)); err == nil {
		t.Error("a door without a limiter is a graph")
	}
	wrong := fx.New(fx.NopLogger, envoydoor.FromHost(host(t, map[string]any{"enabled": true})))
	if wrong.Err() == nil || !strings.Contains(wrong.Err().Error(), "app.envoy-rls.rules-dir: is missing") {
		t.Errorf("%v", wrong.Err())
	}
	// A port that cannot decide by other policies cannot stand behind the door.
	fixed := fx.New(fx.NopLogger, envoydoor.Module(cfg), fx.Provide(
		func() ratelimit.EdgeRateLimitPort {
			return portFunc(func(context.Context, ratelimit.RateLimitRequest) (ratelimit.Outcome, error) { return nil, nil })
		},
		func() *ratelimit.SubjectDigester { return parts(t, &logBuffer{}).Digester },
		func() composition.Readiness { return nil },
	))
	if fixed.Err() == nil || !strings.Contains(fixed.Err().Error(), "gives no ports of other policies") {
		t.Errorf("%v", fixed.Err())
	}
}
