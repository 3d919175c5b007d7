package whole

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Range of ports for FreeAddress. It is below Linux's ephemeral ports, because the system
// could assign an ephemeral port to another program after the check, and that program
// could be mistaken for the server under test.
const (
	lowestFreePort = 15000
	pastFreePort   = 32768
)

// FreeAddress returns a loopback address on which nothing listens.
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
