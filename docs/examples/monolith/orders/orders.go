// Package orders is a business module. One of its endpoints is limited where the application has a
// limiter, and works without one.
package orders

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/docs/examples/monolith/web"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Module provides the routes of orders.
var Module = fx.Module("orders", fx.Provide(routes))

type params struct {
	fx.In

	Limiter  ratelimit.EdgeRateLimitPort `optional:"true"`
	Digester *ratelimit.SubjectDigester  `optional:"true"`
}

type result struct {
	fx.Out

	Place web.Route `group:"routes"`
}

func routes(p params) result {
	var number atomic.Int64
	place := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "order %d placed\n", number.Add(1))
	})
	return result{Place: web.Route{Pattern: "POST /orders", Handler: web.Limit(p.Limiter, p.Digester, "place-order", place)}}
}
