package whole

import (
	"net"
	"os"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestAddressIsFreeAndGivenToNobodyElse(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skip("only Linux shows its ephemeral port range: ", err)
	}
	first, err := net.LookupPort("tcp", strings.Fields(string(text))[0])
	must.OK(t, err)
	for range 200 {
		address, err := FreeAddress()
		must.OK(t, err)
		l, err := net.Listen("tcp", address)
		must.OK(t, err)
		if port := l.Addr().(*net.TCPAddr).Port; port >= first {
			t.Errorf("port %d is one that Linux gives away from %d on", port, first)
		}
		must.OK(t, l.Close())
	}
}
