package edge

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// AddressHeader is the header in which trusted proxies tell a client's address. It is one, and it has
// to be the one that the proxy writes: a header that the proxy only passes on is the client's word.
type AddressHeader uint8

// The headers. The zero value is invalid.
const (
	AddressHeaderInvalid AddressHeader = iota
	// AddressHeaderForwardedFor is X-Forwarded-For.
	AddressHeaderForwardedFor
	// AddressHeaderForwarded is Forwarded (RFC 7239), of which the parameter for counts.
	AddressHeaderForwarded
)

var addressHeaderWords = []string{"INVALID", "x-forwarded-for", "forwarded"}

// String gives the header's name in lower case, as configuration spells it and as gRPC's metadata
// needs it.
func (h AddressHeader) String() string { return wordOf(addressHeaderWords, uint8(h)) }

// Canonical is the header's name as net/http keeps it.
func (h AddressHeader) Canonical() string {
	if h == AddressHeaderForwarded {
		return "Forwarded"
	}
	return "X-Forwarded-For"
}

// The bounds of what is read of a header: from its end, since that is where the proxies' own words
// stand.
const (
	maxHops           = 32
	maxElementBytes   = 128
	maxForwardedBytes = 4096
)

// AddressConfig says how a client's address becomes a subject.
type AddressConfig struct {
	// Proxies are the peers that are believed. Nil believes nobody: the peer itself is the client.
	Proxies *TrustedProxies
	// Header is where they tell the address. Required, also where nobody is believed.
	Header AddressHeader
	// IPv6Prefix is how many leading bits of an IPv6 address tell subjects apart, 1..128. Hosts usually
	// have a whole /64 to choose addresses from, so that 128 lets one of them be as many subjects as it
	// likes.
	IPv6Prefix int
}

// Check gives what is wrong with it.
func (c AddressConfig) Check() error {
	var faults []error
	if c.Header != AddressHeaderForwardedFor && c.Header != AddressHeaderForwarded {
		faults = append(faults, errors.New("field Header is none of the headers of addresses"))
	}
	if c.IPv6Prefix < 1 || c.IPv6Prefix > 128 {
		faults = append(faults, fmt.Errorf("field IPv6Prefix is %d, want 1..128", c.IPv6Prefix))
	}
	return errors.Join(faults...)
}

// Client finds the client's address: the peer's, or where the peer is a trusted proxy what the header
// says, read from the right as long as the addresses there are trusted proxies too. The first that is
// not is the client. Where an element cannot be read, or there are too many, it is the last address
// that could: whoever forges a header gains no fresh quota by it. peer is as net/http and gRPC give it;
// values are the header's lines in their order.
//
// believed reports whether the peer is a trusted proxy. Without any address the result is not valid.
func (c AddressConfig) Client(peer string, values []string) (client netip.Addr, believed bool) {
	client = parsePeer(peer)
	believed = c.Proxies.Trusts(client) || !client.IsValid() && c.Proxies.trustsUnix()
	if !believed {
		return client, false
	}
	walk := walker{proxies: c.Proxies, client: client}
	for i := len(values) - 1; i >= 0; i-- {
		more := false
		if c.Header == AddressHeaderForwarded {
			more = walk.forwarded(values[i])
		} else {
			more = walk.forwardedFor(values[i])
		}
		if !more {
			break
		}
	}
	return walk.client, true
}

// Subject is the client's address as a subject: "address:" and the address, of IPv6 its prefix. A peer
// without an address that nobody vouches for is nobody.
func (c AddressConfig) Subject(peer string, values []string) (Subject, bool, error) {
	client, believed := c.Client(peer, values)
	if !client.IsValid() {
		return Subject{}, believed, Refuse(RefusalSubjectMissing, "the peer has no address, and no trusted proxy gives one")
	}
	return c.name(client), believed, nil
}

const addressKind = "address:"

func (c AddressConfig) name(client netip.Addr) Subject {
	client = client.Unmap().WithZone("")
	var scratch [len(addressKind) + 48]byte
	text := append(scratch[:0], addressKind...)
	if client.Is4() || c.IPv6Prefix == 128 {
		return RawSubject(string(client.AppendTo(text)))
	}
	network, err := client.Prefix(c.IPv6Prefix)
	if err != nil {
		return Subject{} // Check holds the prefix in its range
	}
	return RawSubject(string(network.AppendTo(text)))
}

// parsePeer reads the address of a connection's other end, which for a Unix domain socket is none.
func parsePeer(peer string) netip.Addr {
	if len(peer) > maxElementBytes {
		return netip.Addr{}
	}
	if with, err := netip.ParseAddrPort(peer); err == nil {
		return with.Addr().Unmap()
	}
	address, err := netip.ParseAddr(peer)
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap()
}

// unknownNode is what a proxy writes that does not know, or does not say.
const unknownNode = "unknown"

// walker goes through addresses from the right.
type walker struct {
	proxies *TrustedProxies
	client  netip.Addr
	hops    int
}

// step takes the next element and reports whether to go on.
func (w *walker) step(element string) bool {
	if w.hops++; w.hops > maxHops {
		return false
	}
	if element == "" {
		return true // a list may have empty elements, which count for the bound
	}
	address, ok := parseNode(element)
	if !ok {
		return false
	}
	w.client = address
	return w.proxies.Trusts(address)
}

// forwardedFor walks one line of X-Forwarded-For.
func (w *walker) forwardedFor(line string) bool {
	for {
		// No element that could be an address is longer, so the search need not go further.
		tail := line[max(0, len(line)-maxElementBytes):]
		comma := strings.LastIndexByte(tail, ',')
		if comma < 0 && len(tail) < len(line) {
			return false
		}
		if !w.step(strings.Trim(tail[comma+1:], " \t")) {
			return false
		}
		if comma < 0 {
			return true
		}
		line = line[:len(line)-len(tail)+comma]
	}
}

// parseNode reads an address with or without a port. What is obfuscated or unknown is none.
func parseNode(node string) (netip.Addr, bool) {
	if node == "" || len(node) > maxElementBytes {
		return netip.Addr{}, false
	}
	if node[0] == '[' {
		end := strings.IndexByte(node, ']')
		if end < 0 || end+1 < len(node) && !isPort(node[end+1:]) {
			return netip.Addr{}, false
		}
		address, err := netip.ParseAddr(node[1:end])
		return address.Unmap(), err == nil && address.Is6()
	}
	if first := strings.IndexByte(node, ':'); first >= 0 && first == strings.LastIndexByte(node, ':') {
		if !isPort(node[first:]) {
			return netip.Addr{}, false
		}
		node = node[:first]
	}
	address, err := netip.ParseAddr(node)
	return address.Unmap(), err == nil
}

// isPort reports whether text is a colon and a port, which may be an obfuscated one (RFC 7239).
func isPort(text string) bool {
	if len(text) < 2 || len(text) > 32 || text[0] != ':' {
		return false
	}
	for i := 1; i < len(text); i++ {
		if !isToken(text[i]) {
			return false
		}
	}
	return true
}

// forwarded walks one line of Forwarded. Elements are found from the left, since commas may stand in
// quotes, and only the last maxHops are kept. A line that is not well formed as a whole says nothing.
func (w *walker) forwarded(line string) bool {
	var nodes [maxHops]string
	count, ok := splitForwarded(line, &nodes)
	if !ok {
		return false
	}
	for i := range min(count, maxHops) {
		if !w.step(nodes[(count-1-i)%maxHops]) {
			return false
		}
	}
	return count <= maxHops
}

// splitForwarded gives the for parameter of each element, "" where it has none. It keeps the last
// maxHops of them, the element of number i at i modulo maxHops.
func splitForwarded(line string, nodes *[maxHops]string) (count int, ok bool) {
	if len(line) > maxForwardedBytes {
		return 0, false
	}
	rest := line
	for {
		node, seen, pairs := "", false, 0
		for {
			rest = strings.TrimLeft(rest, " \t")
			if rest == "" || rest[0] == ',' {
				break
			}
			if rest[0] == ';' {
				rest = rest[1:]
				continue
			}
			key, value, after, fine := forwardedPair(rest)
			if !fine {
				return 0, false
			}
			pairs++
			if strings.EqualFold(key, "for") {
				if seen {
					return 0, false
				}
				node, seen = value, true
			}
			if rest = strings.TrimLeft(after, " \t"); rest != "" && rest[0] != ';' && rest[0] != ',' {
				return 0, false
			}
		}
		if pairs > 0 {
			if node == "" {
				node = unknownNode // an element that names nobody hides whoever is behind it
			}
			nodes[count%maxHops] = node
			count++
		}
		if rest == "" {
			return count, true
		}
		rest = rest[1:]
	}
}

// forwardedPair reads key=value, the value a token or a quoted string. An address has no character that
// would need an escape, so a value with one is no address.
func forwardedPair(text string) (key, value, rest string, ok bool) {
	end := 0
	for end < len(text) && isToken(text[end]) {
		end++
	}
	if end == 0 || end == len(text) || text[end] != '=' {
		return "", "", "", false
	}
	key, rest = text[:end], text[end+1:]
	if rest == "" || rest[0] != '"' {
		// Addresses with a port or of IPv6 should be quoted, and often are not.
		end = 0
		for end < len(rest) && (isToken(rest[end]) || strings.IndexByte(":[]", rest[end]) >= 0) {
			end++
		}
		return key, rest[:end], rest[end:], end > 0
	}
	for end = 1; end < len(rest); end++ {
		switch rest[end] {
		case '\\':
			end++
		case '"':
			return key, rest[1:end], rest[end+1:], true
		}
	}
	return "", "", "", false
}

// isToken reports whether c may stand in a token of HTTP.
func isToken(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
