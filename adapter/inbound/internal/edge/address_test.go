package edge

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func trusted(t testing.TB, entries ...string) *TrustedProxies {
	t.Helper()
	p, err := ParseTrustedProxies(entries)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseTrustedProxies(t *testing.T) {
	t.Parallel()
	p := trusted(t, "10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1", "fe80::/10", "unix")
	for address, want := range map[string]bool{
		"10.255.0.1": true, "11.0.0.1": false, "192.0.2.1": true, "192.0.2.2": false,
		"2001:db8:ffff::1": true, "2001:db9::1": false, "::1": true, "::2": false,
		"fe80::1%eth0": true, "::ffff:10.0.0.1": true, "::ffff:11.0.0.1": false,
	} {
		if got := p.Trusts(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is trusted: %v", address, got)
		}
	}
	var nobody *TrustedProxies
	if nobody.Trusts(netip.MustParseAddr("::1")) || (&TrustedProxies{}).Trusts(netip.MustParseAddr("::1")) || p.Trusts(netip.Addr{}) {
		t.Error("nobody is somebody")
	}
	_, err := ParseTrustedProxies([]string{
		"", "proxy", "10.0.0.1/8", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.0/33", "10.0.0.0/8 ",
		strings.Repeat("x", 1000),
	})
	if err == nil {
		t.Fatal("bad entries are accepted")
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 11 {
		t.Errorf("%d faults: %v", len(lines), err)
	}
	for _, want := range []string{`has "10.0.0.1/8", want 10.0.0.0/8`, `has "0.0.0.0/0", which would trust every address`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %v", want, err)
		}
	}
	if len(err.Error()) > 2000 {
		t.Error("the error repeats a long entry as a whole")
	}
	if _, err := ParseTrustedProxies(make([]string, MaxProxies+1)); err == nil {
		t.Error("too many entries are accepted")
	}
}

func TestClient(t *testing.T) {
	t.Parallel()
	hops := make([]string, maxHops+5)
	for i := range hops {
		hops[i] = fmt.Sprintf("10.0.1.%d", i)
	}
	many := "192.0.2.1, " + strings.Join(hops, ", ")
	forHops := "for=192.0.2.1, for=" + strings.Join(hops, ", for=")
	for name, test := range map[string]struct {
		header AddressHeader
		peer   string
		values []string
		want   string // "" is none
	}{
		"no header":                             {AddressHeaderForwardedFor, "10.0.0.1:80", nil, "10.0.0.1"},
		"an untrusted peer is not believed":     {AddressHeaderForwardedFor, "198.51.100.1:80", []string{"192.0.2.1"}, "198.51.100.1"},
		"a trusted one is":                      {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"192.0.2.1"}, "192.0.2.1"},
		"what a client forged is not reached":   {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"10.9.9.9, 203.0.113.7, 192.0.2.1"}, "192.0.2.1"},
		"through several proxies":               {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"203.0.113.7, 192.0.2.1, 10.0.0.3, 10.0.0.2"}, "192.0.2.1"},
		"through several lines":                 {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"203.0.113.7", "192.0.2.1", "10.0.0.3,10.0.0.2"}, "192.0.2.1"},
		"all of them are proxies":               {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"an address with a port":                {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"192.0.2.1:4711"}, "192.0.2.1"},
		"IPv6":                                  {AddressHeaderForwardedFor, "[::1]:80", []string{"2001:db8::7"}, "2001:db8::7"},
		"IPv6 in brackets":                      {AddressHeaderForwardedFor, "[::1]:80", []string{"[2001:db8::7]"}, "2001:db8::7"},
		"IPv6 in brackets with a port":          {AddressHeaderForwardedFor, "[::1]:80", []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		"a peer with a zone":                    {AddressHeaderForwardedFor, "[fe80::1%eth0]:80", []string{"192.0.2.1"}, "192.0.2.1"},
		"IPv4 as IPv6":                          {AddressHeaderForwardedFor, "[::ffff:10.0.0.1]:80", []string{"::ffff:192.0.2.1"}, "192.0.2.1"},
		"a peer without a port":                 {AddressHeaderForwardedFor, "10.0.0.1", []string{"192.0.2.1"}, "192.0.2.1"},
		"a Unix socket":                         {AddressHeaderForwardedFor, "@", []string{"192.0.2.1"}, "192.0.2.1"},
		"a Unix socket without a header":        {AddressHeaderForwardedFor, "@", nil, ""},
		"what cannot be read ends the walk":     {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"192.0.2.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		"nothing that can be read":              {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"unknown"}, "10.0.0.1"},
		"empty elements":                        {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"192.0.2.1, ,,", ""}, "192.0.2.1"},
		"too many hops":                         {AddressHeaderForwardedFor, "10.0.0.1:80", []string{many}, hops[len(hops)-maxHops]},
		"an element longer than any address":    {AddressHeaderForwardedFor, "10.0.0.1:80", []string{strings.Repeat("x", 1<<20) + ",10.0.0.2"}, "10.0.0.2"},
		"one long element":                      {AddressHeaderForwardedFor, "10.0.0.1:80", []string{strings.Repeat("x", 1<<20)}, "10.0.0.1"},
		"a port that is none":                   {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"192.0.2.1:"}, "10.0.0.1"},
		"IPv4 in brackets":                      {AddressHeaderForwardedFor, "10.0.0.1:80", []string{"[192.0.2.1]"}, "10.0.0.1"},
		"Forwarded":                             {AddressHeaderForwarded, "10.0.0.1:80", []string{"for=192.0.2.1"}, "192.0.2.1"},
		"Forwarded, other parameters":           {AddressHeaderForwarded, "10.0.0.1:80", []string{`by=10.0.0.1;For="192.0.2.1:4711";proto=https;host="a,b"`}, "192.0.2.1"},
		"Forwarded, IPv6":                       {AddressHeaderForwarded, "10.0.0.1:80", []string{`for="[2001:db8::7]:_port"`}, "2001:db8::7"},
		"Forwarded, unquoted IPv6":              {AddressHeaderForwarded, "10.0.0.1:80", []string{`for=[2001:db8::7]:80`}, "2001:db8::7"},
		"Forwarded, several":                    {AddressHeaderForwarded, "10.0.0.1:80", []string{`for=203.0.113.7, for=192.0.2.1`, `for=10.0.0.3, for=10.0.0.2`}, "192.0.2.1"},
		"Forwarded, obfuscated":                 {AddressHeaderForwarded, "10.0.0.1:80", []string{`for=192.0.2.1, for=_hidden, for=10.0.0.2`}, "10.0.0.2"},
		"Forwarded, an element without for":     {AddressHeaderForwarded, "10.0.0.1:80", []string{`for=192.0.2.1, proto=https, for=10.0.0.2`}, "10.0.0.2"},
		"Forwarded, a quote that does not end":  {AddressHeaderForwarded, "10.0.0.1:80", []string{`for="192.0.2.1, for=203.0.113.7`}, "10.0.0.1"},
		"Forwarded, for twice":                  {AddressHeaderForwarded, "10.0.0.1:80", []string{`for=192.0.2.1;for=203.0.113.7`}, "10.0.0.1"},
		"Forwarded, a comma in quotes":          {AddressHeaderForwarded, "10.0.0.1:80", []string{`host="x, for=203.0.113.7";for=192.0.2.1`}, "192.0.2.1"},
		"Forwarded, too long":                   {AddressHeaderForwarded, "10.0.0.1:80", []string{`for=192.0.2.1;host=` + strings.Repeat("x", maxForwardedBytes)}, "10.0.0.1"},
		"Forwarded, too many":                   {AddressHeaderForwarded, "10.0.0.1:80", []string{forHops}, hops[len(hops)-maxHops]},
		"Forwarded, from a peer not believed":   {AddressHeaderForwarded, "198.51.100.1:80", []string{"for=192.0.2.1"}, "198.51.100.1"},
		"Forwarded, no space and no value":      {AddressHeaderForwarded, "10.0.0.1:80", []string{"for="}, "10.0.0.1"},
		"Forwarded, what follows a quoted text": {AddressHeaderForwarded, "10.0.0.1:80", []string{`for="192.0.2.1"x`}, "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := AddressConfig{Proxies: trusted(t, "10.0.0.0/8", "::1", "fe80::/10", "unix"), Header: test.header, IPv6Prefix: 64}
			got, _ := c.Client(test.peer, test.values)
			if test.want == "" && got.IsValid() || test.want != "" && got != netip.MustParseAddr(test.want) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func TestSubjectOfAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		peer   string
		prefix int
		want   string
	}{
		{"192.0.2.1:80", 64, "address:192.0.2.1"},
		{"[::ffff:192.0.2.1]:80", 64, "address:192.0.2.1"},
		{"[2001:db8:1:2:3:4:5:6]:80", 64, "address:2001:db8:1:2::/64"},
		{"[2001:db8:1:2:3:4:5:6]:80", 56, "address:2001:db8:1::/56"},
		{"[2001:db8:1:2:3:4:5:6]:80", 128, "address:2001:db8:1:2:3:4:5:6"},
		{"[fe80::1%eth0]:80", 128, "address:fe80::1"},
		{"[fe80::1%eth0]:80", 64, "address:fe80::/64"},
	} {
		c := AddressConfig{Header: AddressHeaderForwardedFor, IPv6Prefix: test.prefix}
		got, believed, err := c.Subject(test.peer, []string{"203.0.113.7"})
		if err != nil || believed || got != RawSubject(test.want) {
			t.Errorf("%s by /%d: %q, want %q (%v %v)", test.peer, test.prefix, got.raw, test.want, believed, err)
		}
	}
	var refusal *RefusalError
	if _, _, err := (AddressConfig{Header: AddressHeaderForwarded, IPv6Prefix: 64}).Subject("@", []string{"for=192.0.2.1"}); !errors.As(err, &refusal) || refusal.Refusal != RefusalSubjectMissing {
		t.Errorf("%v", err)
	}
	for _, bad := range []AddressConfig{{}, {Header: AddressHeaderForwardedFor}, {Header: AddressHeaderForwardedFor, IPv6Prefix: 129}, {Header: 3, IPv6Prefix: 64}} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// FuzzTrustedProxies holds what a list of one entry trusts to what netip says that the entry is.
func FuzzTrustedProxies(f *testing.F) {
	for _, entry := range []string{"10.0.0.0/8", "::1", "unix", "0.0.0.0/0", "::ffff:1.2.3.4", "fe80::1%0/64", "1.2.3.4/31"} {
		f.Add(entry, "10.1.2.3")
	}
	f.Fuzz(func(t *testing.T, entry, address string) {
		p, err := ParseTrustedProxies([]string{entry})
		if err != nil {
			return
		}
		a, err := netip.ParseAddr(address)
		if err != nil {
			return
		}
		want := false
		plain := a.Unmap().WithZone("")
		if network, err := netip.ParsePrefix(entry); err == nil {
			want = network.Contains(plain)
			if network.Bits() == 0 {
				t.Errorf("%q trusts everybody", entry)
			}
		} else if one, err := netip.ParseAddr(entry); err == nil {
			want = one == plain
		} else if entry != UnixPeer {
			t.Errorf("%q is accepted", entry)
		}
		if got := p.Trusts(a); got != want {
			t.Errorf("%q trusts %s: %v", entry, a, got)
		}
	})
}

// forOf gives the parameter for of an element of Forwarded without quotes.
func forOf(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		if key, value, ok := strings.Cut(strings.Trim(pair, " \t"), "="); ok && strings.EqualFold(key, "for") {
			return value
		}
	}
	return unknownNode
}

// FuzzClient holds that headers of an untrusted peer do nothing, that an address comes from the header
// or is the peer, and that everything to the right of it is a trusted proxy.
func FuzzClient(f *testing.F) {
	f.Add("10.0.0.1:80", "192.0.2.1, 10.0.0.2", "10.0.0.3", true)
	f.Add("[::1]:80", `for="[2001:db8::1]:80";by=_x, for=10.0.0.1`, "", false)
	f.Add("@", " ,, 1.2.3.4:5", "unknown", true)
	f.Add("198.51.100.1:80", "10.0.0.1", "", true)
	f.Fuzz(func(t *testing.T, peer, first, second string, forwardedFor bool) {
		c := AddressConfig{Proxies: trusted(t, "10.0.0.0/8", "::1", "unix"), Header: AddressHeaderForwarded, IPv6Prefix: 64}
		if forwardedFor {
			c.Header = AddressHeaderForwardedFor
		}
		values := []string{first, second}
		got, believed := c.Client(peer, values)
		alone, _ := c.Client(peer, nil)
		if !believed && got != alone {
			t.Fatalf("%q is not believed, and %v is not %v", peer, got, alone)
		}
		if subject, _, err := c.Subject(peer, values); (err == nil) != got.IsValid() || err == nil && subject.IsZero() {
			t.Fatalf("%v gives %q: %v", got, subject.raw, err)
		}
		if got == alone {
			return
		}
		// Slowly and simply: everything right of the client is a proxy.
		elements := strings.Split(first+","+second, ",")
		if !forwardedFor && strings.Contains(first+second, `"`) {
			return // a comma may be quoted, which is not simple
		}
		slices.Reverse(elements)
		for _, e := range elements {
			e = strings.Trim(e, " \t")
			if !forwardedFor && strings.Trim(e, "; \t") != "" {
				e = forOf(e)
			}
			if strings.Trim(e, "; \t") == "" {
				continue
			}
			a, ok := parseNode(e)
			if !ok {
				break
			}
			if a == got {
				return
			}
			if !c.Proxies.Trusts(a) {
				break
			}
		}
		t.Fatalf("%v was not reached through proxies in %q", got, values)
	})
}
