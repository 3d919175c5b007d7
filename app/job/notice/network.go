package notice

import (
	"net/netip"
	"slices"
)

// notPublic are the blocks that only some networks know, or that lead back into one:
// the special-purpose registries of IANA.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"::/3", "4000::/2", "8000::/1", // all but 2000::/3, which alone is global: also what NAT64 makes of IPv4
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// MayReach reports whether the service may connect to an address. own are the
// addresses of the machine itself, which are as little public as its loopback.
func (p Policy) MayReach(a netip.Addr, own []netip.Addr) bool {
	a = a.WithZone("").Unmap() // an IPv4 address in another form is what it contains
	in := func(block netip.Prefix) bool { return block.Contains(a) }
	return a.IsValid() && (slices.ContainsFunc(p.Allowed, in) || !slices.ContainsFunc(notPublic, in) && !slices.Contains(own, a))
}
