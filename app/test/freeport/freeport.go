// Package freeport finds an address for a server that has to be told one before it
// listens, as benchmarks and tests start them.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports that are drawn from. They lie below those that Linux gives to sockets that
// ask for any: another server or a client on the machine could be given such a port
// between the look and the use, and then be taken for the one that was started.
const (
	lowest = 15000
	past   = 32768
)

// Address returns an address of the loopback interface at which nobody listens.
func Address() (string, error) {
	var err error
	for range 100 {
		var l net.Listener
		l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(past-lowest)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}
