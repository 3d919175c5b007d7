package whole

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports of FreeAddress. They are below Linux's ephemeral ports: another server or client
// on the machine could be assigned such a port between the check and its use, and then be
// mistaken for the started server.
const (
	lowestFreePort = 15000
	pastFreePort   = 32768
)

// FreeAddress returns a loopback address on which nothing is listening.
func FreeAddress() (string, error) {
	var err error
	for range 100 {
		var l net.Listener
		l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowestFreePort+rand.IntN(pastFreePort-lowestFreePort)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}
