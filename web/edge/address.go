package edge

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// withClientAddress returns the request with the client's own address. Behind trusted
// proxies, that is the last forwarded address that is not a trusted proxy's.
func withClientAddress(r *http.Request, trusted []netip.Prefix) *http.Request {
	from, ok := remoteAddr(r)
	if !ok || !contains(trusted, from) {
		return r
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		address, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return r // no trusted proxy wrote the entries before this one
		}
		if address = address.Unmap().WithZone(""); !contains(trusted, address) {
			client := r.WithContext(r.Context()) // a copy, because callers keep the original
			client.RemoteAddr = netip.AddrPortFrom(address, 0).String()
			return client
		}
	}
	return r
}

// ClientIn reports whether the client of a request that has not passed a Policy is in one
// of networks.
func ClientIn(networks []netip.Prefix, r *http.Request, trusted []netip.Prefix) bool {
	ip := Address(withClientAddress(r, trusted))
	return ip.IsValid() && contains(networks, ip)
}

func contains(prefixes []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Address returns the client's address without its zone. It is invalid if the request did
// not arrive over TCP.
func Address(r *http.Request) netip.Addr {
	ip, _ := remoteAddr(r)
	return ip.WithZone("")
}

// Remote returns the client's address for logs, or "" if the request did not arrive over
// TCP.
func Remote(r *http.Request) string {
	ip := Address(r)
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// Network identifies the client for rate limits by its IPv4 address, or by the IPv6
// network that one customer gets.
func Network(r *http.Request) string {
	ip, ok := remoteAddr(r)
	if !ok {
		return ""
	}
	return networkOf(ip)
}

func networkOf(ip netip.Addr) string {
	if ip.Is4() {
		return ip.String()
	}
	network, _ := ip.WithZone("").Prefix(64) // always valid for an IPv6 address
	return network.String()
}

// Shared reports whether many users could share the address of the request, which is true
// for this machine, a local socket and trusted proxies.
func Shared(r *http.Request, trusted []netip.Prefix) bool {
	ip, ok := remoteAddr(r)
	return !ok || ip.IsLoopback() || contains(trusted, ip)
}

// remoteAddr returns the IP address of a request that arrived over TCP.
func remoteAddr(r *http.Request) (ip netip.Addr, ok bool) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	return from.Addr().Unmap(), true
}
