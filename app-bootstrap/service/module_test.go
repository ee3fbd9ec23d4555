package service_test

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/service"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func example(t *testing.T) config.Config {
	t.Helper()
	cfg, err := config.Load(config.Source{
		File:  filepath.Join("..", "..", "docs", "examples", "service", "edgelimit.yaml"),
		Flags: map[string]any{"app.service.http-address": "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestModuleServesTheLimiter(t *testing.T) {
	t.Parallel()
	cfg := example(t)
	var server *service.Server
	app := fxtest.New(t, fx.NopLogger, fx.Supply(slog.New(slog.DiscardHandler)),
		composition.Module(cfg.RateLimit), service.Module(cfg.Service, cfg.RateLimit.DefaultPolicy), fx.Populate(&server))
	app.RequireStart()
	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	response, err := client.Post("http://"+server.Address().String()+"/v1/rate-limit/evaluate", "application/json", strings.NewReader(`{"subject":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), `"policyId":"api-default"`) {
		t.Errorf("%v %d %s", err, response.StatusCode, body)
	}
	transport.CloseIdleConnections()
	app.RequireStop()
	if _, err := client.Get("http://" + server.Address().String() + "/livez"); err == nil {
		t.Error("the service still answers")
	}
}

// TestModuleNeedsTheLimiter holds that an open door without a limiter is an error, not an open door.
func TestModuleNeedsTheLimiter(t *testing.T) {
	t.Parallel()
	cfg := example(t)
	cfg.RateLimit = config.RateLimit{}
	app := fx.New(fx.NopLogger, fx.Supply(slog.New(slog.DiscardHandler)),
		composition.Module(cfg.RateLimit), service.Module(cfg.Service, cfg.RateLimit.DefaultPolicy))
	if err := app.Err(); err == nil || !strings.Contains(err.Error(), "ratelimit.EdgeRateLimitPort") {
		t.Errorf("error %v", err)
	}
}

func TestModuleRefusesWhatTheAPICannotServe(t *testing.T) {
	t.Parallel()
	cfg := example(t)
	cfg.Service.MaxBodyBytes = 0
	app := fx.New(fx.NopLogger, fx.Supply(slog.New(slog.DiscardHandler)),
		composition.Module(cfg.RateLimit), service.Module(cfg.Service, cfg.RateLimit.DefaultPolicy))
	if err := app.Err(); err == nil || !strings.Contains(err.Error(), "MaxBodyBytes") {
		t.Errorf("error %v", err)
	}
}

func TestPresent(t *testing.T) {
	t.Parallel()
	shape, ok := service.Present(ratelimit.Incompatible{PolicyID: "p", Category: ratelimit.IncompatibleReply})
	if !ok || shape != (service.Outcome{Outcome: "INCOMPATIBLE", PolicyID: "p", Category: "REPLY"}) {
		t.Errorf("%+v %v", shape, ok)
	}
	if _, ok := service.Present(nil); ok {
		t.Error("no outcome was taken")
	}
}
