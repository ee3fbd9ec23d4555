package httpapi

import "net/http"

// probe is the answer of both probes.
type probe struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// live answers whenever the process does.
func (a *api) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, probe{Status: "alive"})
}

// ready says whether evaluations can be decided.
func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	if err := a.Ready(); err != nil {
		writeJSON(w, http.StatusServiceUnavailable, probe{Status: "not-ready", Reason: err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, probe{Status: "ready"})
}
