// Package catalog is a business module that knows nothing of limits.
package catalog

import (
	"fmt"
	"net/http"

	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/docs/examples/monolith/web"
)

// Module provides the routes of the catalog.
var Module = fx.Module("catalog", fx.Provide(routes))

type result struct {
	fx.Out

	List web.Route `group:"routes"`
}

func routes() result {
	return result{List: web.Route{Pattern: "GET /catalog", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "a lamp, a chair, a table")
	})}}
}
