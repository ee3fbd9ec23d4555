package config_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgelimit/edgelimit/adapter/inbound/httpedge"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

const forwardAuthVariables = "EDGELIMIT_APP__SERVICE__FORWARD_AUTH__"

func TestForwardAuth(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(config.Source{File: "testdata/ok_minimal_memory.yaml", Environ: []string{
		forwardAuthVariables + "ENABLED=true",
		forwardAuthVariables + "DENY_STATUS=403",
		forwardAuthVariables + "MODE=shadow",
		forwardAuthVariables + "HEADERS=draft-11, x-ratelimit",
		forwardAuthVariables + "TRUSTED_PROXIES=10.0.0.0/8, ::1,unix",
		forwardAuthVariables + "ADDRESS_HEADER=forwarded",
		forwardAuthVariables + "SUBJECT_HEADER=Edgelimit-Subject",
	}})
	if err != nil {
		t.Fatal(err)
	}
	f := cfg.Service.ForwardAuth
	proxies := f.Address.Proxies
	for address, want := range map[string]bool{"10.1.2.3": true, "::1": true, "::2": false, "11.0.0.1": false} {
		if got := proxies.Trusts(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is trusted: %v", address, got)
		}
	}
	f.Address.Proxies = nil
	want := config.ForwardAuth{
		Enabled: true, DefaultPolicy: cfg.RateLimit.DefaultPolicy, DenyStatus: 403, Mode: httpedge.ModeShadow,
		Headers: []httpedge.HeaderStyle{httpedge.HeadersDraft11, httpedge.HeadersXRateLimit},
		Address: httpedge.AddressConfig{Header: httpedge.AddressHeaderForwarded, IPv6Prefix: 64},
		Names:   httpedge.HeaderNames{Subject: "Edgelimit-Subject"},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestForwardAuthOff holds a section that is off, or absent, to give nothing.
func TestForwardAuthOff(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"testdata/ok_forward_auth_disabled.yaml", "testdata/ok_minimal_memory.yaml", "testdata/ok_empty.yaml"} {
		cfg, err := config.Load(config.Source{File: file})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(config.ForwardAuth{}, cfg.Service.ForwardAuth); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// TestForwardAuthWords holds the words of the configuration to those of the door.
func TestForwardAuthWords(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"draft-12", "draft-11", "ratelimit", "x-ratelimit"} {
		style, err := httpedge.ParseHeaderStyle(word)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Source{File: "testdata/ok_minimal_memory.yaml", Environ: []string{
			forwardAuthVariables + "ENABLED=true", forwardAuthVariables + "HEADERS=" + word,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Service.ForwardAuth.Headers; len(got) != 1 || got[0] != style {
			t.Errorf("%s is %v, want %v", word, got, style)
		}
	}
	for word, want := range map[string]httpedge.AddressHeader{"x-forwarded-for": httpedge.AddressHeaderForwardedFor, "forwarded": httpedge.AddressHeaderForwarded} {
		if want.String() != word {
			t.Errorf("%v, want %s", want, word)
		}
	}
}
