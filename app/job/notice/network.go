package notice

import (
	"net/netip"
	"slices"
)

// notPublic lists the blocks of IANA's special-purpose registries, which are reachable
// only within some networks or lead back into one.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"::/3", "4000::/2", "8000::/1", // all but 2000::/3, the only global block; also covers NAT64
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Allows reports whether the service is allowed to connect to an address. own lists the
// machine's own addresses, which are blocked like its loopback address.
func (p Policy) Allows(a netip.Addr, own []netip.Addr) bool {
	a = a.WithZone("").Unmap() // unwraps an IPv4 address mapped to IPv6
	in := func(block netip.Prefix) bool { return block.Contains(a) }
	return a.IsValid() && (slices.ContainsFunc(p.Allowed, in) || !slices.ContainsFunc(notPublic, in) && !slices.Contains(own, a))
}
