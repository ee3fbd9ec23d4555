package edge

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// UnixPeer is the entry of a list of trusted proxies that trusts peers without an address, which are
// those of a Unix domain socket.
const UnixPeer = "unix"

// MaxProxies bounds a list of trusted proxies.
const MaxProxies = 1024

// TrustedProxies are the peers whose word about a client's address counts. The zero value and nil
// trust nobody.
type TrustedProxies struct {
	networks []netip.Prefix
	unix     bool
}

// ParseTrustedProxies reads a list of networks (10.0.0.0/8), addresses (::1) and "unix". A network
// whose address has bits behind its prefix, an IPv4 network written as IPv6, and one that holds every
// address are refused, each with its entry; entries are shown.
func ParseTrustedProxies(entries []string) (*TrustedProxies, error) {
	if len(entries) > MaxProxies {
		return nil, fmt.Errorf("has %d entries, want at most %d", len(entries), MaxProxies)
	}
	trusted := &TrustedProxies{}
	var faults []error
	for _, entry := range entries {
		if entry == UnixPeer {
			trusted.unix = true
			continue
		}
		network, err := parseNetwork(entry)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		trusted.networks = append(trusted.networks, network)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return trusted, nil
}

func parseNetwork(entry string) (netip.Prefix, error) {
	refuse := func(reason string) (netip.Prefix, error) {
		return netip.Prefix{}, fmt.Errorf("has %q, %s", bounded(entry), reason)
	}
	if !strings.Contains(entry, "/") {
		address, err := netip.ParseAddr(entry)
		if err != nil || address.Zone() != "" || address.Is4In6() {
			return refuse("want a network such as 10.0.0.0/8, an address such as ::1, or unix")
		}
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(entry)
	switch {
	case err != nil || network.Addr().Is4In6():
		return refuse("want a network such as 10.0.0.0/8, an address such as ::1, or unix")
	case network.Bits() == 0:
		return refuse("which would trust every address: anybody could claim to be anyone")
	case network != network.Masked():
		return refuse("want " + network.Masked().String() + ": its address has bits behind the prefix")
	}
	return network, nil
}

const maxShown = 64

func bounded(s string) string {
	if len(s) > maxShown {
		return s[:maxShown] + "..."
	}
	return s
}

// Trusts reports whether an address is that of a trusted proxy. Its zone does not count: a network is
// the same on every link.
func (t *TrustedProxies) Trusts(address netip.Addr) bool {
	if t == nil || !address.IsValid() {
		return false
	}
	address = address.Unmap().WithZone("")
	for _, network := range t.networks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// trustsUnix reports whether peers without an address are trusted.
func (t *TrustedProxies) trustsUnix() bool { return t != nil && t.unix }
