package whole

import (
	"net"
	"os"
	"strings"
	"testing"
)

func TestAddressIsFreeAndGivenToNobodyElse(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skip("Linux alone says which ports it gives away: ", err)
	}
	first, err := net.LookupPort("tcp", strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		address, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if port := l.Addr().(*net.TCPAddr).Port; port >= first {
			t.Errorf("port %d is one that Linux gives away from %d on", port, first)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
