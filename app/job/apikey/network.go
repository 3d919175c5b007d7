package apikey

import (
	"fmt"
	"net/netip"
)

// Network parses a CIDR block, such as 192.0.2.0/24, or a single address.
func Network(text string) (netip.Prefix, error) {
	block, err := netip.ParsePrefix(text)
	if address, notOne := netip.ParseAddr(text); notOne == nil && address.Zone() == "" {
		block, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	if err != nil || block.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not an address or CIDR block; write 10.0.0.7 or 192.0.2.0/24", text)
	}
	return block.Masked(), nil
}
