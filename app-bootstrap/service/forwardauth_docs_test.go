package service_test

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/service"
	"github.com/edgelimit/edgelimit/test/console"
)

// seconds are what differs between two runs of a check.
var seconds = regexp.MustCompile(`(a=\d+;w=|r=\d+;t=|Retry-After: )\d+`)

func settled(output string) string { return seconds.ReplaceAllString(output, "${1}S") }

var repeated = regexp.MustCompile(`^for i in ([0-9 ]+); do (.*); done$`)

// TestForwardAuthDocument runs the commands of docs/http-edge.md with the configuration that it names.
func TestForwardAuthDocument(t *testing.T) {
	t.Parallel()
	all := console.Commands(t, "../../docs/http-edge.md")
	// The examples count within one minute. Where that ends between two of them they are run again.
	for attempt := 1; ; attempt++ {
		began := time.Now().Truncate(time.Minute)
		faults := checkDocument(t, all)
		if len(faults) == 0 {
			return
		}
		if time.Now().Truncate(time.Minute).Equal(began) || attempt == 3 {
			t.Fatal(strings.Join(faults, "\n"))
		}
	}
}

func checkDocument(t *testing.T, all []console.Command) (faults []string) {
	t.Helper()
	cfg, err := config.Load(config.Source{
		File:  "../../docs/examples/nginx/edgelimit.yaml",
		Flags: map[string]any{"app.service.http-address": "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var server *service.Server
	app := fxtest.New(t, fx.NopLogger, fx.Supply(slog.New(slog.DiscardHandler)),
		composition.Module(cfg.RateLimit), service.Module(cfg.Service, cfg.RateLimit.DefaultPolicy), fx.Populate(&server))
	app.RequireStart()
	defer app.RequireStop()
	for _, command := range all {
		text, times := command.Text, 1
		if m := repeated.FindStringSubmatch(text); m != nil {
			text, times = m[2], len(strings.Fields(m[1]))
		}
		var output strings.Builder
		for range times {
			if err := console.Curl(t.Context(), words(text, server.Address().String())[1:], &output); err != nil {
				t.Fatal(err)
			}
		}
		command.Output = settled(command.Output)
		if difference, differs := command.Differs(settled(output.String())); differs {
			faults = append(faults, difference)
		}
	}
	return faults
}

// words takes a line apart as a shell would, as far as single quotes go.
func words(text, address string) []string {
	var all []string
	for i, piece := range strings.Split(strings.ReplaceAll(text, "127.0.0.1:8080", address), "'") {
		if i%2 == 1 {
			all = append(all, piece)
		} else {
			all = append(all, strings.Fields(piece)...)
		}
	}
	return all
}
