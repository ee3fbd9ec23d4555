package service

import (
	"net/http"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

// withForwardAuth puts the check that reverse proxies ask beside the API. Where it is off, its path is
// one that the API does not know.
func withForwardAuth(cfg config.Service, d dependencies, api http.Handler) (http.Handler, error) {
	door := cfg.ForwardAuth
	if !door.Enabled {
		return api, nil
	}
	check, err := httpedge.NewForwardAuth(httpedge.ForwardAuthConfig{
		Limiter:       d.Limiter,
		Policies:      d.Policies,
		Digester:      d.Digester,
		DefaultPolicy: door.DefaultPolicy,
		Deadline:      cfg.DefaultDeadline,
		Headers:       door.Headers,
		DenyStatus:    door.DenyStatus,
		Mode:          door.Mode,
		Address:       door.Address,
		Names:         door.Names,
		Logger:        d.Logger,
	})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if httpedge.IsCheck(r.URL.Path) {
			check.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}), nil
}
