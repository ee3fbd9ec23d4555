package service_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/service"
)

// ask starts the service and asks for paths.
func ask(t *testing.T, cfg config.Config, paths ...string) []string {
	t.Helper()
	var server *service.Server
	app := fxtest.New(t, fx.NopLogger, fx.Supply(slog.New(slog.DiscardHandler)),
		composition.Module(cfg.RateLimit), service.Module(cfg.Service, cfg.RateLimit.DefaultPolicy), fx.Populate(&server))
	app.RequireStart()
	defer app.RequireStop()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var answers []string
	for _, path := range paths {
		response, err := client.Get("http://" + server.Address().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		answers = append(answers, response.Status+" "+response.Header.Get("RateLimit")+" "+string(body))
	}
	return answers
}

func TestForwardAuthIsServed(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(config.Source{
		File: "../../docs/examples/service/edgelimit.yaml",
		Flags: map[string]any{
			"app.service.http-address":                 "127.0.0.1:0",
			"app.service.forward-auth.enabled":         true,
			"app.service.forward-auth.default-policy":  "login",
			"app.service.forward-auth.headers":         "draft-11",
			"app.service.forward-auth.trusted-proxies": "127.0.0.0/8",
			"app.rate-limit.policies.login.max-cost":   5,
			"app.rate-limit.policies.login.revision":   4,
			"app.rate-limit.policies.login.window":     "876000h",
			"app.service.default-deadline":             "10s",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	answers := ask(t, cfg, "/v1/check?cost=5", "/v1/check/any/path", "/v1/check?subject=other", "/v1/checks", "/livez")
	for i, want := range []string{`200 OK "login";r=0;t=`, "429 Too Many Requests", `200 OK "login";r=4;t=`, "404 Not Found", "200 OK"} {
		if !strings.HasPrefix(answers[i], want) {
			t.Errorf("%d: %s, want %s", i, answers[i], want)
		}
	}
}

func TestForwardAuthOffIsNoPath(t *testing.T) {
	t.Parallel()
	for _, answer := range ask(t, example(t), "/v1/check", "/v1/check/") {
		if !strings.HasPrefix(answer, "404 ") {
			t.Error(answer)
		}
	}
}
