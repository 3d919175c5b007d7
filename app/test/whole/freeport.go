package whole

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports of FreeAddress. They lie below those that Linux gives to sockets that
// ask for any: another server or a client on the machine could be given such a port
// between the look and the use, and then be taken for the one that was started.
const (
	lowestFreePort = 15000
	pastFreePort   = 32768
)

// FreeAddress returns an address of the loopback interface at which nobody listens.
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
