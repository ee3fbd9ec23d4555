package main

import (
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/docs/examples/monolith/catalog"
	"github.com/edgelimit/edgelimit/docs/examples/monolith/orders"
	"github.com/edgelimit/edgelimit/docs/examples/monolith/web"
)

//go:embed config.yaml
var defaults []byte

func main() {
	k, err := load(os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fx.New(application(k)).Run()
}

// load reads the application's own configuration: what is embedded, then variables such as
// SHOP_APP__RATE_LIMIT__ENABLED=false.
func load(environ []string) (*koanf.Koanf, error) {
	k := koanf.New(".")
	if err := k.Load(rawbytes.Provider(defaults), yaml.Parser()); err != nil {
		return nil, err
	}
	return k, k.Load(env.Provider(".", env.Opt{
		Prefix:      "SHOP_",
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ToLower(strings.TrimPrefix(name, "SHOP_"))
			return strings.ReplaceAll(strings.ReplaceAll(key, "__", "."), "_", "-"), value
		},
	}), nil)
}

// application is all modules. The limiter is one of them, and the only line that names it.
func application(k *koanf.Koanf) fx.Option {
	return fx.Options(
		fx.NopLogger,
		fx.Supply(k),
		fx.Provide(func() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }),
		composition.FromHost(k),
		orders.Module,
		catalog.Module,
		web.Module,
	)
}
